//! The rows that a store keeps: one a cell and repetition.

mod builds;
mod framework;
mod key;
mod kinds;
mod older;
mod placement;
mod provenance;
mod replay;
mod row;
mod schedule;
mod status;

pub use builds::latest_builds;
pub use framework::{FRAMEWORK_SCHEMA, FrameworkRow, PLANLAB};
pub use key::{NetParts, WorkloadKey};
pub(crate) use kinds::each_kind;
#[cfg(feature = "parquet")]
pub(crate) use older::SEARCHES;
pub(crate) use older::against_any_plan;
pub use placement::{Point, Record, SCHEMA, planner_label, threads};
pub use provenance::Provenance;
pub use replay::{REPLAY_SCHEMA, ReplayRow};
pub(crate) use row::{Row, row_table};
pub use schedule::{Disturbance, Improvement, SCHEDULE_SCHEMA, ScheduleRow};
pub use status::{Lane, Status};
