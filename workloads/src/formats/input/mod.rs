//! From a file to its bytes, its lines and its numbers.

pub(crate) mod limits;
pub(crate) mod lines;
pub(crate) mod numbers;
pub(crate) mod packing;
pub(crate) mod unpacked;
