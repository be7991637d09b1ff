//! The record, the crash-safe store, and the statistics.
//!
//! A [`Record`] is one row: a cell and a repetition. A [`Store`] keeps rows, instances and plans in a folder, and a
//! report needs only that folder. With the feature `parquet` (on by default), rows are compacted into Parquet shards;
//! without it there is only the journal.

pub mod audit;
mod cells;
#[cfg(feature = "parquet")]
mod columns;
pub mod diff;
mod error;
mod fields;
mod files;
pub mod format;
#[cfg(feature = "parquet")]
pub mod frame;
pub mod framework;
#[cfg(feature = "parquet")]
mod instances;
mod journal;
mod key;
mod latest;
mod manifest;
mod merge;
#[cfg(feature = "parquet")]
pub mod queries;
mod record;
pub mod recorded_peak;
mod repair;
pub mod replay;
#[cfg(feature = "parquet")]
pub mod scale;
pub mod schedule;
mod shards;
pub mod statistics;
mod store;
pub mod table;

pub use cells::latest_builds;
#[cfg(feature = "parquet")]
pub use columns::is_decoding;
pub use error::StoreError;
#[cfg(feature = "parquet")]
pub use instances::{load_instance, load_plan};
pub use key::{NetParts, WorkloadKey};
pub use manifest::{MissingShard, missing_shards};
pub use merge::{Merged, merge};
pub use record::{Lane, Point, Provenance, Record, SCHEMA, Status, planner_label, threads};
pub use repair::{Repair, repair};
pub use store::{Notice, Store, keeps_plans, read_records};
