//! The messages between parent and child.

use std::path::PathBuf;

use planlab_dsa::{Bound, Offset, Outcome, PlanError, Scope, Violation};
use serde::{Deserialize, Serialize};

use crate::inputs::Source;
use crate::kinds::external::{Fate, Report};
use crate::shell::quantity::nanoseconds;

/// A child's task: to load one trace and run planners on it, one after the other.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Request {
    pub(crate) source: Source,
    /// The id of the asking process, which the child does not outlive.
    pub(crate) parent: u32,
    /// Folder of the mailboxes, one file per cell.
    pub(crate) mailboxes: PathBuf,
    /// Address-space limit in bytes, if no cgroup enforces the memory limit.
    pub(crate) address_space: Option<u64>,
    /// The core to pin the child to.
    pub(crate) core: Option<usize>,
    /// For each buffer an offset to start from, or none, for cells with hints.
    pub(crate) hints: Option<Vec<Option<Offset>>>,
    pub(crate) cells: Vec<CellRequest>,
}

/// One planner under its limits.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct CellRequest {
    pub(crate) planner: String,
    pub(crate) seed: u64,
    pub(crate) wall_ns: Option<u64>,
    pub(crate) work: Option<u64>,
    pub(crate) target: Option<u64>,
    pub(crate) threads: usize,
    /// Whether the planner gets the request's hints.
    pub(crate) hinted: bool,
    /// Timed runs after the first, if that took less than `repeat_below_ns`.
    pub(crate) repeats: u32,
    pub(crate) repeat_below_ns: u64,
}

/// A line from the child.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Reply {
    /// The trace was read.
    Loaded { digest: String },
    /// The trace cannot be read; the child ends.
    Unreadable { reason: String },
    /// A run of cell `cell` begins.
    Started { cell: usize },
    /// Cell `cell` is done.
    Finished { cell: usize, answer: Box<Answer> },
}

/// A child's answer for a cell. The plan is in the mailbox.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Answer {
    pub(crate) stop: Option<planlab_dsa::Stop>,
    pub(crate) error: Option<Complaint>,
    pub(crate) height: Option<u64>,
    pub(crate) bound: Bound,
    /// The scope of the run's bound.
    pub(crate) scope: Scope,
    pub(crate) samples_ns: Vec<u64>,
    /// The time that an external planner reports.
    pub(crate) reported_ns: Option<u64>,
    /// How an external planner's program died.
    pub(crate) exit_code: Option<i32>,
    pub(crate) signal: Option<i32>,
    pub(crate) stderr_tail: String,
    pub(crate) cpu_ns: u64,
    pub(crate) peak_rss_bytes: Option<u64>,
    pub(crate) work: u64,
    pub(crate) trajectory: Vec<planlab_results::Point>,
}

/// Why a planner failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Complaint {
    pub(crate) kind: ComplaintKind,
    pub(crate) message: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum ComplaintKind {
    Unsupported,
    Overlap,
    Misaligned,
    OverCapacity,
    /// The plan breaks another rule.
    Broken,
    Refuted,
    /// An external planner's program died.
    Crashed,
    /// It was killed from outside.
    Killed,
    OutOfMemory,
    /// Its output is not a plan.
    Nonsense,
    Failed,
}

impl Answer {
    pub(crate) fn new(outcome: &Outcome<'_>, cpu_ns: u64, peak_rss_bytes: Option<u64>) -> Self {
        let point = |mark: &planlab_dsa::Mark| planlab_results::Point {
            elapsed_ns: nanoseconds(mark.elapsed),
            height: mark.height.map(|height| height.get()),
            bound: mark.bound.get(),
        };
        Self {
            stop: outcome.end.as_ref().ok().copied(),
            error: outcome.end.as_ref().err().map(Complaint::new),
            height: outcome.height().map(|height| height.get()),
            bound: outcome.bound,
            scope: outcome.scope,
            samples_ns: vec![nanoseconds(outcome.planning)],
            reported_ns: None,
            exit_code: None,
            signal: None,
            stderr_tail: String::new(),
            cpu_ns,
            peak_rss_bytes,
            work: outcome.work,
            trajectory: outcome.trajectory.iter().map(point).collect(),
        }
    }
}

impl Answer {
    /// Takes over the measurements of an external planner's program: its times and memory instead of ours.
    pub(crate) fn take_report(&mut self, report: &Report) {
        self.samples_ns = vec![nanoseconds(report.wall)];
        self.reported_ns = report.reported.map(nanoseconds);
        self.peak_rss_bytes = report.peak_rss_bytes;
        // Checks of the clock are not work of the program.
        self.work = 0;
        let Some(complaint) = self.error.as_mut().filter(|complaint| complaint.kind == ComplaintKind::Failed)
        else {
            return;
        };
        match report.fate {
            Fate::Ended => return,
            Fate::Nonsense => complaint.kind = ComplaintKind::Nonsense,
            Fate::Died { signal, code } => {
                // KILL comes from outside; a program that crashes ends with ABRT, SEGV, ...
                let killed = signal == Some(9);
                complaint.kind = if killed { ComplaintKind::Killed } else { ComplaintKind::Crashed };
                (self.signal, self.exit_code) = (signal, code);
            }
        }
        self.stderr_tail.clone_from(&report.stderr);
    }
}

impl Complaint {
    pub(crate) fn new(error: &PlanError) -> Self {
        let kind = match error {
            PlanError::Unsupported(_) => ComplaintKind::Unsupported,
            PlanError::Invalid(violation) => ComplaintKind::of(violation),
            PlanError::Refuted { .. } => ComplaintKind::Refuted,
            _ => ComplaintKind::Failed,
        };
        Self { kind, message: error.to_string() }
    }
}

impl ComplaintKind {
    /// The kind of complaint for a violation.
    pub(crate) fn of(violation: &Violation) -> Self {
        match violation {
            Violation::Misaligned { .. } => Self::Misaligned,
            Violation::OverCapacity { .. } => Self::OverCapacity,
            Violation::Overlap { .. } => Self::Overlap,
            _ => Self::Broken,
        }
    }
}
