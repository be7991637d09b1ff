//! The fields of a row as typed columns of Parquet files.

mod fields;
#[cfg(feature = "parquet")]
mod parquet;
#[cfg(feature = "parquet")]
mod values;
#[cfg(not(feature = "parquet"))]
mod without;

pub(crate) use fields::table;
#[cfg(feature = "parquet")]
pub use parquet::is_decoding;
#[cfg(feature = "parquet")]
pub(crate) use parquet::{Kind, Table, caught, decode_columns, encode, lists_of, lists_opt_u64};
#[cfg(feature = "parquet")]
pub(crate) use values::{Field, Number, Numbers, columns, named, names, next, numbers};
#[cfg(not(feature = "parquet"))]
pub(crate) use without::{Field, columns, names, numbers};
