//! Writes and reads tables as Parquet files with typed columns.

use std::cell::Cell;
use std::io::Cursor;
use std::panic::AssertUnwindSafe;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::{panic, thread};

use polars::prelude::*;
use polars_io::SerReader as _;
use polars_io::parquet::read::ParquetReader;
use polars_io::parquet::write::{KeyValueMetadata, ParquetWriter};
use rustc_hash::FxHashMap;

use crate::StoreError;

const KIND: &str = "planlab.kind";
const VERSION: &str = "planlab.schema";

/// The number of files being decoded now.
static DECODING: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    static IS_DECODING: Cell<bool> = const { Cell::new(false) };
}

/// Whether a panic may come from decoding a damaged file, which becomes an error; a panic hook can then stay silent.
/// polars decodes on threads of its own, which cannot be identified. So every panic counts while a file is being
/// decoded.
#[must_use]
pub fn is_decoding() -> bool {
    let is_of_polars = || thread::current().name().is_some_and(|name| name.starts_with("polars-"));
    IS_DECODING.get() || (DECODING.load(Ordering::SeqCst) > 0 && is_of_polars())
}

/// Runs code that may panic inside polars, with the panic hook silent meanwhile.
pub(crate) fn caught<T>(decode: impl FnOnce() -> T + panic::UnwindSafe) -> thread::Result<T> {
    DECODING.fetch_add(1, Ordering::SeqCst);
    IS_DECODING.set(true);
    let decoded = panic::catch_unwind(decode);
    IS_DECODING.set(false);
    DECODING.fetch_sub(1, Ordering::SeqCst);
    decoded
}

/// The kind of a file (`records`, `instance`, `plan`) and the version of its columns.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kind {
    pub(crate) name: &'static str,
    pub(crate) version: u32,
}

/// Encodes `frame` as a Parquet file in memory.
pub(crate) fn encode(
    kind: Kind,
    mut extra: Vec<(String, String)>,
    frame: &mut DataFrame,
) -> PolarsResult<Vec<u8>> {
    extra.push((KIND.to_owned(), kind.name.to_owned()));
    extra.push((VERSION.to_owned(), kind.version.to_string()));
    let mut bytes = Vec::new();
    ParquetWriter::new(&mut bytes)
        .with_key_value_metadata(Some(KeyValueMetadata::from_static(extra)))
        .finish(frame)?;
    Ok(bytes)
}

/// A list column of `u64` with missing values.
pub(crate) fn lists_opt_u64(name: &str, rows: impl ExactSizeIterator<Item = Vec<Option<u64>>>) -> Column {
    let mut lists =
        ListPrimitiveChunkedBuilder::<UInt64Type>::new(name.into(), rows.len(), rows.len(), DataType::UInt64);
    rows.for_each(|row| lists.append_iter(row.into_iter()));
    lists.finish().into_column()
}

/// A list column of numbers, one slice per row.
pub(crate) fn lists_of<'a, T: PolarsNumericType>(
    name: &str,
    rows: impl ExactSizeIterator<Item = &'a [T::Native]>,
) -> Column {
    let dtype = T::get_static_dtype();
    let mut lists = ListPrimitiveChunkedBuilder::<T>::new(name.into(), rows.len(), rows.len(), dtype);
    rows.for_each(|row| lists.append_slice(row));
    lists.finish().into_column()
}

/// A list column of strings.
pub(crate) fn lists_text<'a>(name: &str, rows: impl ExactSizeIterator<Item = &'a [String]>) -> Column {
    let mut lists = ListStringChunkedBuilder::new(name.into(), rows.len(), rows.len());
    rows.for_each(|row| lists.append_values_iter(row.iter().map(String::as_str)));
    lists.finish().into_column()
}

/// A table from a file; errors of every getter name the file.
#[derive(Debug)]
pub(crate) struct Table {
    path: PathBuf,
    frame: DataFrame,
    metadata: Vec<(String, Option<String>)>,
}

/// Getters of columns, without and with missing values.
macro_rules! getters {
    ($($kind:ident, $opt:ident);*) => {
        $(pub(crate) fn $kind(&self, name: &str) -> Result<Vec<$kind>, StoreError> {
            self.require_all(name, self.$opt(name)?)
        }

        pub(crate) fn $opt(&self, name: &str) -> Result<Vec<Option<$kind>>, StoreError> {
            let column = self.column(name)?.$kind().map_err(|error| self.bad_file(&error))?;
            Ok(column.iter().collect())
        })*
    };
}

impl Table {
    /// Decodes the bytes of a file of `kind`.
    pub(crate) fn decode_parquet(path: &Path, bytes: Vec<u8>, kind: Kind) -> Result<Self, StoreError> {
        // polars panics on some damaged files.
        let decoded = caught(|| Self::decode_whole(path, bytes, kind));
        decoded.unwrap_or_else(|_| Err(StoreError::bad_file(path, &"it is damaged")))
    }

    fn decode_whole(path: &Path, bytes: Vec<u8>, kind: Kind) -> Result<Self, StoreError> {
        let (reader, metadata) = open(path, bytes, kind)?;
        let frame = reader.finish().map_err(|error| StoreError::bad_file(path, &error))?;
        Ok(Self { path: path.to_path_buf(), frame, metadata })
    }

    /// A table that is already in memory; errors name `path`.
    pub(crate) fn of_frame(path: &Path, frame: DataFrame) -> Self {
        Self { path: path.to_path_buf(), frame, metadata: Vec::new() }
    }

    pub(crate) fn into_lazy(self) -> LazyFrame {
        self.frame.lazy()
    }

    pub(crate) fn height(&self) -> usize {
        self.frame.height()
    }

    pub(crate) fn metadata_value(&self, key: &str) -> Result<&str, StoreError> {
        find(&self.metadata, key).ok_or_else(|| self.bad_file(&format!("it has no metadata `{key}`")))
    }

    pub(crate) fn bad_file(&self, reason: &impl ToString) -> StoreError {
        StoreError::bad_file(&self.path, reason)
    }

    fn column(&self, name: &str) -> Result<&Column, StoreError> {
        self.frame.column(name).map_err(|error| self.bad_file(&error))
    }

    fn require_all<T>(&self, name: &str, values: Vec<Option<T>>) -> Result<Vec<T>, StoreError> {
        let whole: Option<Vec<T>> = values.into_iter().collect();
        whole.ok_or_else(|| self.bad_file(&format!("column `{name}` lacks a value")))
    }

    getters! { u64, opt_u64; u32, opt_u32; f64, opt_f64; bool, opt_bool }

    pub(crate) fn opt_i32(&self, name: &str) -> Result<Vec<Option<i32>>, StoreError> {
        let column = self.column(name)?.i32().map_err(|error| self.bad_file(&error))?;
        Ok(column.iter().collect())
    }

    pub(crate) fn opt_text(&self, name: &str) -> Result<Vec<Option<String>>, StoreError> {
        let column = self.column(name)?.str().map_err(|error| self.bad_file(&error))?;
        Ok(column.iter().map(|value| value.map(str::to_owned)).collect())
    }

    pub(crate) fn text_column(&self, name: &str) -> Result<Vec<String>, StoreError> {
        self.require_all(name, self.opt_text(name)?)
    }

    /// Strings, with equal ones stored once.
    pub(crate) fn opt_shared_text(&self, name: &str) -> Result<Vec<Option<Arc<str>>>, StoreError> {
        let column = self.column(name)?.str().map_err(|error| self.bad_file(&error))?;
        let mut known: FxHashMap<&str, Arc<str>> = FxHashMap::default();
        let mut once = |text| known.entry(text).or_insert_with(|| text.into()).clone();
        Ok(column.iter().map(|text| text.map(&mut once)).collect())
    }

    pub(crate) fn shared_text(&self, name: &str) -> Result<Vec<Arc<str>>, StoreError> {
        self.require_all(name, self.opt_shared_text(name)?)
    }

    /// The lists of a column, each converted by `values`.
    fn lists_of<T>(
        &self,
        name: &str,
        values: impl Fn(&Series) -> PolarsResult<Vec<Option<T>>>,
    ) -> Result<Vec<Vec<Option<T>>>, StoreError> {
        let column = self.column(name)?.list().map_err(|error| self.bad_file(&error))?;
        let mut rows = Vec::with_capacity(column.len());
        for row in column.amortized_iter() {
            let row = row.ok_or_else(|| self.bad_file(&format!("column `{name}` lacks a list")))?;
            rows.push(values(row.as_ref()).map_err(|error| self.bad_file(&error))?);
        }
        Ok(rows)
    }

    /// A list column; `None` inside a list is a missing value.
    pub(crate) fn list_column(&self, name: &str) -> Result<Vec<Vec<Option<u64>>>, StoreError> {
        self.lists_of(name, |row| Ok(row.u64()?.iter().collect()))
    }

    /// A list column of strings without missing values.
    pub(crate) fn lists_text(&self, name: &str) -> Result<Vec<Vec<String>>, StoreError> {
        let texts = |row: &Series| Ok(row.str()?.iter().map(|text| text.map(str::to_owned)).collect());
        self.lists_of(name, texts)?.into_iter().map(|row| self.require_all(name, row)).collect()
    }

    /// A list column without missing values.
    pub(crate) fn lists_u64(&self, name: &str) -> Result<Vec<Vec<u64>>, StoreError> {
        self.list_column(name)?.into_iter().map(|row| self.require_all(name, row)).collect()
    }

    /// A list column of floating-point numbers without missing values.
    pub(crate) fn lists_f64(&self, name: &str) -> Result<Vec<Vec<f64>>, StoreError> {
        let lists = self.lists_of(name, |row| Ok(row.f64()?.iter().collect()))?;
        lists.into_iter().map(|row| self.require_all(name, row)).collect()
    }

    pub(crate) fn has_column(&self, name: &str) -> bool {
        self.frame.column(name).is_ok()
    }
}

type Reader = ParquetReader<Cursor<Vec<u8>>>;
type Metadata = Vec<(String, Option<String>)>;

/// Opens a file of `kind` without decoding its columns; returns it with its metadata.
fn open(path: &Path, bytes: Vec<u8>, kind: Kind) -> Result<(Reader, Metadata), StoreError> {
    let mut reader = ParquetReader::new(Cursor::new(bytes));
    let metadata = reader.get_metadata().map_err(|error| StoreError::bad_file(path, &error))?;
    let pairs = metadata.key_value_metadata.iter().flatten();
    let metadata: Metadata = pairs.map(|pair| (pair.key.clone(), pair.value.clone())).collect();
    check_kind(path, &metadata, kind)?;
    Ok((reader, metadata))
}

/// Some columns of a file of `kind`, in the order and with the types of `schema`. A missing column is filled with nulls
/// if `later` contains it.
pub(crate) fn decode_columns(
    path: &Path,
    bytes: Vec<u8>,
    kind: Kind,
    schema: &Schema,
    later: &[&str],
) -> Result<DataFrame, StoreError> {
    let decoded = caught(AssertUnwindSafe(|| {
        let (reader, _) = open(path, bytes, kind)?;
        decode_some(reader, schema, later).map_err(|error| StoreError::bad_file(path, &error))
    }));
    decoded.unwrap_or_else(|_| Err(StoreError::bad_file(path, &"it is damaged")))
}

fn decode_some(mut reader: Reader, schema: &Schema, later: &[&str]) -> PolarsResult<DataFrame> {
    let (rows, there) = (reader.num_rows()?, reader.schema()?);
    let is_read = |name: &&PlSmallStr| !later.contains(&name.as_str()) || there.contains(name.as_str());
    let names: Vec<String> = schema.iter_names().filter(is_read).map(ToString::to_string).collect();
    let frame = reader.with_columns(Some(names)).finish()?;
    let column = |(name, dtype): (&PlSmallStr, &DataType)| match frame.column(name) {
        Ok(column) if column.dtype() == dtype => Ok(column.clone()),
        Ok(column) => {
            polars_bail!(SchemaMismatch: "column `{name}` is of type {}, not {dtype}", column.dtype())
        }
        Err(_) => Ok(Column::full_null(name.clone(), rows, dtype)),
    };
    DataFrame::new(rows, schema.iter().map(column).collect::<PolarsResult<_>>()?)
}

fn find<'a>(metadata: &'a [(String, Option<String>)], key: &str) -> Option<&'a str> {
    metadata.iter().find(|(name, _)| name == key)?.1.as_deref()
}

fn check_kind(path: &Path, metadata: &[(String, Option<String>)], kind: Kind) -> Result<(), StoreError> {
    if find(metadata, KIND) != Some(kind.name) {
        let reason = format!("it is not a file of planlab's kind `{}`", kind.name);
        return Err(StoreError::bad_file(path, &reason));
    }
    let version: Option<u32> = find(metadata, VERSION).and_then(|version| version.parse().ok());
    let found = version.ok_or_else(|| StoreError::bad_file(path, &"it names no schema version"))?;
    if found > kind.version {
        return Err(StoreError::Schema { path: path.to_path_buf(), found, known: kind.version });
    }
    Ok(())
}
