//! Converts values to columns and back.

use std::sync::Arc;

use planlab_dsa::performance::{CallTime, End, Missed, Performance, Sample, Work};
use planlab_dsa::{Evidence, Scope, Stop};
use polars::prelude::*;
use serde::Deserialize;
use serde::de::IntoDeserializer;
use serde::de::value::{Error, StrDeserializer};

use super::parquet::{Table, lists_of, lists_opt_u64, lists_text};
use crate::StoreError;

/// A value of a row: one or several columns of a table.
pub(crate) trait Field: Sized {
    /// Adds the columns of these values.
    fn write(name: &str, values: &[&Self], columns: &mut Vec<Column>);

    /// Reads the values of all rows.
    fn read(table: &Table, name: &str) -> Result<Vec<Self>, StoreError>;
}

/// The next value of a column; all columns of a table are equally long.
pub(crate) fn next<T>(column: &mut std::vec::IntoIter<T>) -> T {
    column.next().expect("every column has a value for each row")
}

/// Generates columns from the fields of a struct.
macro_rules! columns {
    ($name:ident$(<$inner:ident>)? as $prefix:literal { $($field:ident $(= $default:expr)?),* $(,)? }) => {
        impl$(<$inner: $crate::columns::Field>)? $crate::columns::Field for $name$(<$inner>)? {
            fn write(_: &str, rows: &[&Self], columns: &mut Vec<polars::prelude::Column>) {
                $({
                    let values: Vec<_> = rows.iter().map(|row| &row.$field).collect();
                    $crate::columns::Field::write(concat!($prefix, stringify!($field)), &values, columns);
                })*
            }

            fn read(table: &$crate::columns::Table, _: &str) -> Result<Vec<Self>, $crate::StoreError> {
                $(let mut $field = {
                    let name = concat!($prefix, stringify!($field));
                    let values = $crate::columns::Field::read(table, name);
                    $(let values =
                        if table.has_column(name) { values } else { Ok(vec![$default; table.height()]) };)?
                    values?.into_iter()
                };)*
                let mut rows = Vec::with_capacity(table.height());
                for _ in 0..table.height() {
                    rows.push(Self { $($field: $crate::columns::next(&mut $field),)* });
                }
                Ok(rows)
            }
        }
    };
}

/// Values with a polars type: how to convert them to it and back.
macro_rules! plain {
    ($($kind:ty: $shown:expr, $getter:ident;)*) => {
        $(impl Field for $kind {
            fn write(name: &str, values: &[&Self], columns: &mut Vec<Column>) {
                let shown: Vec<_> = values.iter().copied().map($shown).collect();
                columns.push(Column::new(name.into(), shown));
            }

            fn read(table: &Table, name: &str) -> Result<Vec<Self>, StoreError> {
                table.$getter(name)
            }
        })*
    };
}

plain! {
    u64: |value: &u64| *value, u64;
    u32: |value: &u32| *value, u32;
    bool: |value: &bool| *value, bool;
    f64: |value: &f64| *value, f64;
    String: String::as_str, text_column;
    Arc<str>: |value: &Arc<str>| value.to_string(), shared_text;
    Option<u64>: |value: &Option<u64>| *value, opt_u64;
    Option<u32>: |value: &Option<u32>| *value, opt_u32;
    Option<i32>: |value: &Option<i32>| *value, opt_i32;
    Option<f64>: |value: &Option<f64>| *value, opt_f64;
    Option<String>: Option::as_deref, opt_text;
    Option<Arc<str>>: Option::as_deref, opt_shared_text;
}

/// Types whose values are texts in files, and the methods that give the text.
macro_rules! names {
    ($($kind:ident::$name:ident),* $(,)?) => {
        $(impl $crate::columns::Field for $kind {
            fn write(name: &str, values: &[&Self], columns: &mut Vec<polars::prelude::Column>) {
                let names: Vec<&str> = values.iter().map(|value| value.$name()).collect();
                columns.push(polars::prelude::Column::new(name.into(), names));
            }

            fn read(table: &$crate::columns::Table, name: &str) -> Result<Vec<Self>, $crate::StoreError> {
                table.text_column(name)?.iter().map(|text| $crate::columns::named(table, name, text)).collect()
            }
        })*
    };
}

names!(Evidence::name, Scope::name, End::name, Work::name);

impl Field for Option<Stop> {
    fn write(name: &str, values: &[&Self], columns: &mut Vec<Column>) {
        let names: Vec<Option<&str>> = values.iter().map(|stop| stop.map(Stop::name)).collect();
        columns.push(Column::new(name.into(), names));
    }

    fn read(table: &Table, name: &str) -> Result<Vec<Self>, StoreError> {
        let texts = table.opt_text(name)?;
        texts.iter().map(|text| text.as_deref().map(|text| named(table, name, text)).transpose()).collect()
    }
}

/// The value with this name in files.
pub(crate) fn named<T: for<'de> Deserialize<'de>>(
    table: &Table,
    column: &str,
    text: &str,
) -> Result<T, StoreError> {
    let text: StrDeserializer<'_, Error> = text.into_deserializer();
    T::deserialize(text).map_err(|error| table.bad_file(&format!("column `{column}`: {error}")))
}

/// Lists of values: how to make a column of them and read it.
macro_rules! lists {
    ($($kind:ty: $column:expr, $getter:ident;)*) => {
        $(impl Field for Vec<$kind> {
            fn write(name: &str, values: &[&Self], columns: &mut Vec<Column>) {
                columns.push($column(name, values.iter().map(|list| list.as_slice())));
            }

            fn read(table: &Table, name: &str) -> Result<Vec<Self>, StoreError> {
                table.$getter(name)
            }
        })*
    };
}

lists! {
    u64: lists_of::<UInt64Type>, lists_u64;
    f64: lists_of::<Float64Type>, lists_f64;
    String: lists_text, lists_text;
}

impl Field for usize {
    fn write(name: &str, values: &[&Self], columns: &mut Vec<Column>) {
        let numbers: Vec<u64> = values.iter().map(|&&value| value as u64).collect();
        columns.push(Column::new(name.into(), numbers));
    }

    fn read(table: &Table, name: &str) -> Result<Vec<Self>, StoreError> {
        let number = |number| Self::try_from(number).map_err(|error| table.bad_file(&error));
        table.u64(name)?.into_iter().map(number).collect()
    }
}

/// A group of numbers that a row contains several times, or not at all.
pub(crate) trait Numbers: Sized {
    /// The suffixes of their column names.
    const NAMES: &'static [&'static str];

    fn number_at(&self, at: usize) -> Option<u64>;

    /// `None` if a required number is missing.
    fn from_numbers(numbers: &[Option<u64>]) -> Option<Self>;
}

/// A number, optional or required.
pub(crate) trait Number: Copy {
    fn as_option(self) -> Option<u64>;

    fn from_option(number: Option<u64>) -> Option<Self>;
}

impl Number for u64 {
    fn as_option(self) -> Option<u64> {
        Some(self)
    }

    fn from_option(number: Option<u64>) -> Option<Self> {
        number
    }
}

impl Number for u32 {
    fn as_option(self) -> Option<u64> {
        Some(self.into())
    }

    fn from_option(number: Option<u64>) -> Option<Self> {
        number?.try_into().ok()
    }
}

impl Number for Option<u64> {
    fn as_option(self) -> Option<u64> {
        self
    }

    fn from_option(number: Option<u64>) -> Option<Self> {
        Some(number)
    }
}

/// The numbers of each group.
macro_rules! numbers {
    ($($name:ident { $($field:ident),* })*) => {
        $(impl $crate::columns::Numbers for $name {
            const NAMES: &'static [&'static str] = &[$(stringify!($field)),*];

            fn number_at(&self, at: usize) -> Option<u64> {
                [$($crate::columns::Number::as_option(self.$field)),*][at]
            }

            fn from_numbers(numbers: &[Option<u64>]) -> Option<Self> {
                let mut numbers = numbers.iter().copied();
                Some(Self { $($field: $crate::columns::Number::from_option(numbers.next()?)?),* })
            }
        })*
    };
}

numbers! {
    Sample {
        propagations, wall_ns, cpu_ns, enqueue_ns, device_ns, reserved, reserved_peak, plans, planning_ns,
        planned, missed
    }
    Missed { unknown, larger, taken, outliving, no_memory }
    CallTime { median_ps, p99_ps, batches }
}

impl<T: Numbers> Field for Vec<T> {
    fn write(name: &str, values: &[&Self], columns: &mut Vec<Column>) {
        for (at, part) in T::NAMES.iter().enumerate() {
            let lists = values.iter().map(|list| list.iter().map(|one| one.number_at(at)).collect());
            columns.push(lists_opt_u64(&format!("{name}_{part}"), lists));
        }
    }

    fn read(table: &Table, name: &str) -> Result<Vec<Self>, StoreError> {
        let first = table.list_column(&format!("{name}_{}", T::NAMES[0]))?;
        let nothing = || first.iter().map(|list| vec![None; list.len()]).collect();
        let part = |part: &&str| {
            let name = format!("{name}_{part}");
            // Files older than this number lack it.
            if table.has_column(&name) { table.list_column(&name) } else { Ok(nothing()) }
        };
        let parts: Vec<Vec<Vec<Option<u64>>>> = T::NAMES.iter().map(part).collect::<Result<_, _>>()?;
        let bad = |what: &str| table.bad_file(&format!("columns `{name}_*`: {what}"));
        let row = |row: usize| {
            let length = parts[0][row].len();
            if parts.iter().any(|part| part[row].len() != length) {
                return Err(bad("lists of a row have different lengths"));
            }
            let one = |at: usize| parts.iter().map(|part| part[row][at]).collect::<Vec<_>>();
            (0..length).map(|at| T::from_numbers(&one(at)).ok_or_else(|| bad("a value lacks"))).collect()
        };
        (0..table.height()).map(row).collect()
    }
}

impl<T: Numbers> Field for Option<T> {
    fn write(name: &str, values: &[&Self], columns: &mut Vec<Column>) {
        for (at, part) in T::NAMES.iter().enumerate() {
            let numbers = values.iter().map(|value| value.as_ref().and_then(|value| value.number_at(at)));
            columns.push(Column::new(format!("{name}_{part}").into(), numbers.collect::<Vec<_>>()));
        }
    }

    fn read(table: &Table, name: &str) -> Result<Vec<Self>, StoreError> {
        let part = |part: &&str| {
            let name = format!("{name}_{part}");
            if table.has_column(&name) { table.opt_u64(&name) } else { Ok(vec![None; table.height()]) }
        };
        let parts: Vec<Vec<Option<u64>>> = T::NAMES.iter().map(part).collect::<Result<_, _>>()?;
        let row = |row: usize| {
            let numbers: Vec<Option<u64>> = parts.iter().map(|part| part[row]).collect();
            let value = T::from_numbers(&numbers);
            match value.is_some() || numbers.iter().all(Option::is_none) {
                true => Ok(value),
                false => Err(table.bad_file(&format!("columns `{name}_*`: a value lacks"))),
            }
        };
        (0..table.height()).map(row).collect()
    }
}

columns!(Performance as "" {
    status, reason, warm_up, is_steady, samples, alloc, free, reserved_peak, used_peak, physical_peak,
    device_allocations, search_steps, lock_wait_ns, refusals, missed,
});

pub(crate) use {columns, names, numbers};
