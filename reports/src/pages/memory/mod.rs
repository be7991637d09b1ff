//! Pages on the memory that nets need.

pub(crate) mod models;
pub(crate) mod nets;
