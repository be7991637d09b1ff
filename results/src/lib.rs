//! The record, the crash-safe store, and the statistics.
//!
//! A [`Row`] is a cell and a repetition, with the run of its kind; a [`Record`] has that of a planner. A [`Store`] keeps
//! rows, instances and plans in a folder, and a report needs only that folder. With the feature `parquet` (on by
//! default), rows are compacted into Parquet shards; without it there is only the journal.
//!
//! Rooms from the ground up; each uses only those before it:
//!
//! - `show` (numbers and tables as text), `statistics`, `columns` (fields as Parquet columns), `rows`
//! - `files` (journal, shards, manifest), `diff` (over `rows` and `statistics`), `store`
//! - `audit`, `tables` (the store as lazy frames and SQL), `queries` (the tables of a report)

pub mod audit;
mod columns;
pub mod diff;
mod error;
mod files;
#[cfg(feature = "parquet")]
pub mod queries;
pub mod recorded_peak;
mod rows;
mod show;
pub mod statistics;
mod store;
#[cfg(feature = "parquet")]
mod tables;

#[cfg(feature = "parquet")]
pub use columns::is_decoding;
pub use error::StoreError;
#[cfg(feature = "parquet")]
pub use files::frame;
pub use files::{MissingShard, missing_shards};
#[cfg(feature = "parquet")]
pub use queries::scale;
pub use rows::{
    Lane, NetParts, PlannerRun, Point, Provenance, Record, Row, SCHEMA, Status, WorkloadKey, group_by,
    latest_builds, planner_label, threads,
};
pub use show::{format, table};
pub use store::{Merged, Notice, Repair, Store, keeps_plans, merge_stores, read_records, repair_store};
#[cfg(feature = "parquet")]
pub use store::{load_instance, load_plan};

/// Rows of replays: what it costs to serve a workload's requests.
pub mod replay {
    pub use crate::rows::{REPLAY_SCHEMA, ReplayRow, ReplayRun};
    pub use crate::store::{ReplayWriter, append_rows, read_rows};
}

/// Rows of schedules, and the documents that they name.
pub mod schedule {
    pub use crate::rows::{Disturbance, Improvement, SCHEDULE_SCHEMA, ScheduleRow, SchedulerRun, time_gap};
    pub use crate::store::{
        Document, MemoryStep, Timeline, TimelineSpan, load_document, load_timeline, read_schedules,
    };
}

/// Rows of framework measurements.
pub mod framework {
    pub use crate::rows::{FRAMEWORK_SCHEMA, FrameworkRow, FrameworkRun, PLANLAB, StepBudget, UNCONSTRAINED};
    pub use crate::store::read_frameworks;
}
