//! Schedules: the rows grouped by the question that they answer.

pub(crate) mod asked;
mod cases;
pub(crate) mod fronts;
pub(crate) mod track;

pub(crate) use cases::{Case, IN_CORE, Run, Schedules, gigabytes, rate};
