//! The messages between parent and child.

use planlab_dsa::Stop;
use planlab_graph::{ScheduleBound, ScheduleError, ScheduleOutcome};
use planlab_results::schedule::Improvement;
use serde::{Deserialize, Serialize};

use crate::shell::quantity::{nanoseconds, nanoseconds_of};

/// A request to run one scheduler on one problem.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Request {
    /// The id of the asking process, which the child does not outlive.
    pub(crate) parent: u32,
    /// The problem's file, as `SchedulingProblem::write_jsonl` makes it.
    pub(crate) problem: std::path::PathBuf,
    /// Where the child keeps its best schedule, so that a hard kill does not lose it.
    pub(crate) mailbox: std::path::PathBuf,
    pub(crate) scheduler: String,
    pub(crate) seed: u64,
    pub(crate) wall_ns: Option<u64>,
    pub(crate) work: Option<u64>,
    /// Stop once a schedule's iteration takes at most this many seconds.
    pub(crate) target: Option<f64>,
    /// Address-space limit in bytes, if no cgroup enforces the memory limit.
    pub(crate) address_space: Option<u64>,
}

/// A line from the child.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Reply {
    /// The problem cannot be read.
    Unreadable { reason: String },
    /// The run is done; the schedule is in the mailbox.
    Finished(Box<Answer>),
}

/// A child's answer for a run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Answer {
    pub(crate) stop: Option<Stop>,
    pub(crate) error: Option<Complaint>,
    /// Seconds of an iteration by the schedule in the mailbox, if there is one.
    pub(crate) seconds: Option<f64>,
    pub(crate) bound: ScheduleBound,
    pub(crate) shortfall: Option<String>,
    pub(crate) trajectory: Vec<Improvement>,
    pub(crate) elapsed_ns: u64,
    pub(crate) cpu_ns: u64,
    pub(crate) peak_rss_bytes: Option<u64>,
    pub(crate) work: u64,
}

/// Why a scheduler failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Complaint {
    pub(crate) kind: ComplaintKind,
    pub(crate) message: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum ComplaintKind {
    /// A schedule that the validator refuses, or that does not run.
    Invalid,
    /// A bound above the time of a valid schedule.
    Refuted,
    Failed,
}

impl Complaint {
    fn new(error: &ScheduleError) -> Self {
        let kind = match error {
            ScheduleError::Stuck(_) | ScheduleError::Invalid(_) => ComplaintKind::Invalid,
            ScheduleError::Refuted { .. } => ComplaintKind::Refuted,
            _ => ComplaintKind::Failed,
        };
        Self { kind, message: error.to_string() }
    }
}

impl Answer {
    pub(crate) fn new(outcome: &ScheduleOutcome, cpu_ns: u64, peak_rss_bytes: Option<u64>) -> Self {
        let improvement = |mark: &planlab_graph::ScheduleMark| Improvement {
            elapsed_ns: nanoseconds(mark.elapsed),
            work: mark.work,
            iteration_ns: nanoseconds_of(mark.seconds),
        };
        Self {
            stop: outcome.end.as_ref().ok().copied(),
            error: outcome.end.as_ref().err().map(Complaint::new),
            seconds: outcome.best.as_ref().map(planlab_graph::Verified::seconds),
            bound: outcome.bound,
            shortfall: outcome.shortfall.clone(),
            trajectory: outcome.trajectory.iter().map(improvement).collect(),
            elapsed_ns: nanoseconds(outcome.elapsed),
            cpu_ns,
            peak_rss_bytes,
            work: outcome.work,
        }
    }
}
