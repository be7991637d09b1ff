//! What a parent asks of a scheduler's child, and what the child answers.

use planlab_graph::{
    ScheduleBound, ScheduleError, ScheduleEvidence, ScheduleMark, ScheduleOutcome, Verified,
};
use planlab_results::Status;
use planlab_results::schedule::Improvement;
use serde::{Deserialize, Serialize};

use crate::cells::{ReportedFailure, RunEnd};
use crate::process::ProcessUsage;
use crate::shell::quantity::{as_nanoseconds, nanoseconds_of};

/// A question about one scheduler.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct CellRequest {
    pub(super) scheduler: String,
    pub(super) seed: u64,
    pub(super) wall_ns: Option<u64>,
    pub(super) work: Option<u64>,
    /// Stop once a schedule's iteration takes at most this many seconds.
    pub(super) target: Option<f64>,
    pub(super) threads: usize,
}

/// What a scheduler found. The schedule is in the mailbox.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Answer {
    pub(super) run: RunEnd,
    /// Seconds of an iteration by the schedule in the mailbox, if there is one.
    pub(super) seconds: Option<f64>,
    pub(super) bound: ScheduleBound,
    /// The evidence for the bound on the memory of every schedule.
    pub(super) memory_evidence: ScheduleEvidence,
    pub(super) shortfall: Option<String>,
    pub(super) trajectory: Vec<Improvement>,
    pub(super) elapsed_ns: u64,
}

impl Answer {
    pub(super) fn new(outcome: &ScheduleOutcome, usage: ProcessUsage) -> Self {
        let improvement = |mark: &ScheduleMark| Improvement {
            elapsed_ns: as_nanoseconds(mark.elapsed),
            work: mark.work,
            iteration_ns: nanoseconds_of(mark.seconds),
        };
        let error = outcome.end.as_ref().err().map(|error| ReportedFailure::new(status_of(error), error));
        Self {
            run: RunEnd { stop: outcome.end.as_ref().ok().copied(), error, usage, work: outcome.work },
            seconds: outcome.best.as_ref().map(Verified::seconds),
            bound: outcome.bound,
            memory_evidence: outcome.least_memory.evidence,
            shortfall: outcome.shortfall.clone(),
            trajectory: outcome.trajectory.iter().map(improvement).collect(),
            elapsed_ns: as_nanoseconds(outcome.elapsed),
        }
    }
}

/// The status of a row whose scheduler failed; [`Status::Unknown`] for an error that says nothing of the schedule.
const fn status_of(error: &ScheduleError) -> Status {
    match error {
        ScheduleError::Stuck(_) | ScheduleError::Invalid(_) => Status::InvalidPlan,
        ScheduleError::Refuted { .. } | ScheduleError::Fits { .. } => Status::BoundRefuted,
        _ => Status::Unknown,
    }
}
