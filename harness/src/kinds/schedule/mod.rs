//! Schedules: a scheduler under limits in a child process, with a verdict whatever the child does.
//!
//! ```text
//!   Cell --Runner--> CellRequest --cells--> child: scheduler --Answer--> judge (validated here) --placing--> Judgement --> ScheduleRow
//! ```
//!
//! The child receives the problem as text and answers with its best schedule. The parent validates that schedule
//! itself, has a planner place its buffers (in a child of its own), and simulates it with other times.

mod audit;
mod cell;
mod disturb;
mod judge;
mod kind;
mod messages;
mod question;
mod row;
mod runner;
mod saboteurs;

pub(crate) use audit::audit;
pub(crate) use cell::{Cell, PLANNER_WALL, WALL, usable_threads};
pub(crate) use judge::{Judgement, classes, counts};
pub(crate) use kind::Scheduling;
pub(crate) use question::{
    DEFAULT_MACHINE, FileShape, Question, has_any_batch, known_schedulers, matching_schedulers,
    resolve_machine,
};
pub(crate) use row::keep;
#[cfg(feature = "reports")]
pub(crate) use row::task_object;
pub(crate) use runner::Runner;
