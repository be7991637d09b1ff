//! The front page, the run, and pages on single cells and workloads.

pub(crate) mod cell;
pub(crate) mod cells;
pub(crate) mod run;
pub(crate) mod show;
pub(crate) mod summary;
pub(crate) mod workload;
