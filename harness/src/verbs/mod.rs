//! One file per verb, or per few that are alike.

pub(crate) mod add_workload;
mod arenas;
pub(crate) mod bench;
pub(crate) mod bound;
mod certificate;
pub(crate) mod compare;
pub(crate) mod convert;
pub(crate) mod diff;
pub(crate) mod doctor;
pub(crate) mod explain;
mod fit;
pub(crate) mod graph;
pub(crate) mod list;
pub(crate) mod model;
#[cfg(feature = "reports")]
mod page;
#[cfg(feature = "reports")]
pub(crate) mod picture;
pub(crate) mod plan;
#[cfg(feature = "reports")]
pub(crate) mod query;
pub(crate) mod replay;
pub(crate) mod run;
pub(crate) mod schedule;
#[cfg(feature = "reports")]
mod schedule_names;
#[cfg(feature = "reports")]
mod schedule_page;
pub(crate) mod simulate;
pub(crate) mod store;
pub(crate) mod sweep;
#[cfg(feature = "reports")]
pub(crate) mod tables;
pub(crate) mod verify;
mod view;
