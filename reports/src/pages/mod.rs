//! The pages of a report.

pub(crate) mod cell;
pub(crate) mod cells;
pub(crate) mod index;
pub(crate) mod layout;
pub(crate) mod show;
pub(crate) mod tables;
pub(crate) mod workload;
