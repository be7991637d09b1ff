//! Without Parquet there are no columns, and any value will do.

pub(crate) trait Field {}

impl<T> Field for T {}

macro_rules! columns {
    ($($nothing:tt)*) => {};
}

macro_rules! names {
    ($($nothing:tt)*) => {};
}

macro_rules! numbers {
    ($($nothing:tt)*) => {};
}

pub(crate) use {columns, names, numbers};
