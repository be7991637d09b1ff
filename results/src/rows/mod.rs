//! The rows that a store keeps: one a cell and repetition.

mod framework;
mod key;
mod older;
mod placement;
mod provenance;
mod replay;
mod row;
mod schedule;
mod status;

pub use framework::{FRAMEWORK_SCHEMA, FrameworkRow, FrameworkRun, PLANLAB, StepBudget, UNCONSTRAINED};
pub use key::{NetParts, WorkloadKey};
#[cfg(feature = "parquet")]
pub(crate) use older::SEARCHES;
pub(crate) use older::against_any_plan;
pub use placement::{PlannerRun, Point, Record, SCHEMA, latest_builds, planner_label, threads};
pub use provenance::Provenance;
pub use replay::{REPLAY_SCHEMA, ReplayRow, ReplayRun};
pub use row::{Row, group_by};
pub(crate) use row::{RowKind, ShardedKind, each_kind, rank_row, run_table};
pub use schedule::{Disturbance, Improvement, SCHEDULE_SCHEMA, ScheduleRow, SchedulerRun, time_gap};
pub use status::{Lane, Status};
