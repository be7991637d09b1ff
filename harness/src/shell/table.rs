//! Tables for terminals.

pub(crate) use planlab_results::table::Table;
