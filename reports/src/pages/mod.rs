//! The pages of a report.

pub(crate) mod boards;
pub(crate) mod cell;
pub(crate) mod cells;
pub(crate) mod claims;
pub(crate) mod index;
pub(crate) mod layout;
pub(crate) mod replays;
pub(crate) mod scale;
pub(crate) mod show;
pub(crate) mod tables;
pub(crate) mod workload;
