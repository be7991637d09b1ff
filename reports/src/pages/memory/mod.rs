//! Pages on the memory that nets need.

pub(crate) mod budgets;
pub(crate) mod models;
pub(crate) mod nets;
