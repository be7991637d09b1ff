//! What a parent asks of a planner's child, and what the child answers.

use planlab_dsa::{Bound, Digest, Mark, Offset, Outcome, PlanError, Scope, Violation};
use planlab_results::{Point, Status};
use serde::{Deserialize, Serialize};

use crate::cells::{ReportedFailure, RunEnd};
use crate::inputs::Source;
use crate::kinds::external::{Fate, Report};
use crate::process::ProcessUsage;
use crate::shell::quantity::as_nanoseconds;

/// A trace, as the parent knows it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct PlacementSource {
    pub(super) source: Source,
    pub(super) digest: Digest,
    pub(super) buffers: usize,
    /// In-place permissions.
    pub(super) permissions: usize,
    /// For each buffer an offset to start from, or none, for cells with hints.
    pub(super) hints: Option<Vec<Option<Offset>>>,
}

/// One planner under its limits.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct CellRequest {
    pub(super) planner: String,
    pub(super) seed: u64,
    pub(super) wall_ns: Option<u64>,
    pub(super) work: Option<u64>,
    pub(super) target: Option<u64>,
    pub(super) threads: usize,
    /// Whether the planner gets the source's hints.
    pub(super) hinted: bool,
    /// Timed runs after the first, if that took less than `repeat_below_ns`.
    pub(super) repeats: u32,
    pub(super) repeat_below_ns: u64,
}

/// What a planner found. The plan is in the mailbox.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Answer {
    pub(super) run: RunEnd,
    pub(super) height: Option<u64>,
    pub(super) bound: Bound,
    /// The scope of the run's bound.
    pub(super) scope: Scope,
    pub(super) samples_ns: Vec<u64>,
    /// The time that an external planner reports.
    pub(super) reported_ns: Option<u64>,
    /// How an external planner's program died.
    pub(super) exit_code: Option<i32>,
    pub(super) signal: Option<i32>,
    pub(super) stderr_tail: String,
    pub(super) trajectory: Vec<Point>,
}

impl Answer {
    pub(super) fn new(outcome: &Outcome<'_>, usage: ProcessUsage) -> Self {
        let point = |mark: &Mark| Point {
            elapsed_ns: as_nanoseconds(mark.elapsed),
            height: mark.height.map(|height| height.get()),
            bound: mark.bound.get(),
        };
        let error = outcome.end.as_ref().err().map(|error| ReportedFailure::new(status_of(error), error));
        Self {
            run: RunEnd { stop: outcome.end.as_ref().ok().copied(), error, usage, work: outcome.work },
            height: outcome.height().map(|height| height.get()),
            bound: outcome.bound,
            scope: outcome.scope,
            samples_ns: vec![as_nanoseconds(outcome.planning)],
            reported_ns: None,
            exit_code: None,
            signal: None,
            stderr_tail: String::new(),
            trajectory: outcome.trajectory.iter().map(point).collect(),
        }
    }

    /// Takes over the measurements of an external planner's program: its times and memory instead of ours.
    pub(super) fn take_report(&mut self, report: &Report) {
        self.samples_ns = vec![as_nanoseconds(report.wall)];
        self.reported_ns = report.reported.map(as_nanoseconds);
        self.run.usage.peak_rss_bytes = report.peak_rss_bytes;
        // Checks of the clock are not work of the program.
        self.run.work = 0;
        let Some(failure) = self.run.error.as_mut().filter(|error| error.status == Status::Unknown) else {
            return;
        };
        match report.fate {
            Fate::Ended => return,
            Fate::Nonsense => failure.status = Status::BadOutput,
            Fate::Died { signal, code } => {
                // KILL comes from outside; a program that crashes ends with ABRT, SEGV, ...
                failure.status = if signal == Some(9) { Status::Killed } else { Status::Crashed };
                (self.signal, self.exit_code) = (signal, code);
            }
        }
        self.stderr_tail.clone_from(&report.stderr);
    }
}

/// The status of a row whose planner failed; [`Status::Unknown`] for an error that says nothing of the plan.
const fn status_of(error: &PlanError) -> Status {
    match error {
        PlanError::Unsupported(_) => Status::Unsupported,
        PlanError::Invalid(violation) => status_of_violation(violation),
        PlanError::Refuted { .. } => Status::BoundRefuted,
        _ => Status::Unknown,
    }
}

/// The status of a row whose plan breaks a rule.
pub(super) const fn status_of_violation(violation: &Violation) -> Status {
    match violation {
        Violation::Misaligned { .. } => Status::Misaligned,
        Violation::OverCapacity { .. } => Status::OverCapacity,
        Violation::Overlap { .. } => Status::InvalidOverlap,
        _ => Status::InvalidPlan,
    }
}
