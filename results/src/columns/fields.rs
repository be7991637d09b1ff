//! Declares the fields of a row once, for all file formats.
//!
//! [`table!`] declares the struct of a row. serde writes it as a journal line; [`Field`](crate::columns::Field)
//! converts it to the columns of a Parquet file and back. A plain value is one column. A group or a list of values is several columns with a common
//! prefix: `machine_cpu`, `trajectory_height`.

/// Declares a struct whose fields each become one or several columns; `as` gives the prefix of the column names. A
/// field with a value after it was added later: older rows lack it and read as that value, which must be its default.
/// A struct may have one type parameter, whose fields become columns as well.
macro_rules! table {
    ($(#[$meta:meta])* $vis:vis struct $name:ident$(<$inner:ident>)? as $prefix:literal {
        $($(#[$field_meta:meta])* $field_vis:vis $field:ident: $kind:ty $(= $default:expr)?,)*
    }) => {
        $(#[$meta])*
        $vis struct $name$(<$inner>)? {
            $($(#[$field_meta])*
            $(#[doc = concat!("\n\nOlder rows read as `", stringify!($default), "`.")] #[serde(default)])?
            $field_vis $field: $kind,)*
        }
        $crate::columns::columns!($name$(<$inner>)? as $prefix { $($field $(= $default)?,)* });
    };
}

pub(crate) use table;
