//! A store as tables: lazy frames, which SQL sees too. [`COLUMNS`] gives the meaning of each column.

mod collect;
mod frames;
mod glossary;
pub(crate) mod rows;
mod scan;
mod sql;

pub(crate) use collect::{collect, columns_of, read, refused, small};
pub use frames::Tables;
pub use glossary::{COLUMNS, ColumnDoc};
pub use sql::{Cell, QueryAnswer, STACK};
