//! Placement as a kind of cell: a planner under its limits on one instance.

use std::io;
use std::num::NonZeroUsize;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use planlab_dsa::{
    Bound, Budget, Bytes, CancelToken, Digest, Event, Instance, Mark, Offset, Outcome, Plan, Planner, Scope,
    execute, execute_observed,
};
use planlab_results::{Point, Status};
use planlab_workloads::Trace;
use serde::{Deserialize, Serialize};

use super::complaint;
use super::mailbox::{self, Mailbox};
use super::{planners, saboteurs};
use crate::cells::{Complaint, Desk, FOREVER, Kind, RunEnd};
use crate::cli::PLANNERS;
use crate::inputs::{self, Hints, Source};
use crate::kinds::external::{self, External, Fate, Report};
use crate::process::{ProcessUsage, measured};
use crate::shell::exit::Failure;
use crate::shell::quantity::nanoseconds;

/// How long a child may take to read its trace, and between two cells.
const LOADING: Duration = Duration::from_secs(300);
/// The time per buffer that a child gets past its wall limit to verify its last plan.
const VERIFY_PER_BUFFER: Duration = Duration::from_micros(4);

/// Planners on an instance.
pub(crate) struct Placement;

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

impl Kind for Placement {
    const VERB: &'static str = "run-cells";
    const GRACE: Duration = Duration::from_secs(1);

    type Source = PlacementSource;
    type Problem = (Trace, Option<Hints>);
    type Asked = CellRequest;
    type Found = Answer;
    type Kept = (Option<Plan>, Option<Bound>);

    fn open(source: &PlacementSource) -> Result<(Trace, Option<Hints>), Failure> {
        let trace = inputs::open(&source.source)?;
        if trace.instance.digest() != source.digest {
            return Err(Failure::usage("the child read another trace"));
        }
        Ok((trace, source.hints.as_deref().map(Hints::from)))
    }

    fn perform(
        (trace, hints): &(Trace, Option<Hints>),
        asked: &CellRequest,
        desk: Desk<'_>,
    ) -> Result<Answer, Failure> {
        perform(&trace.instance, hints.as_ref(), asked, desk)
    }

    fn loading(_: &CellRequest) -> Duration {
        LOADING
    }

    fn limit(source: &PlacementSource, asked: &CellRequest) -> Duration {
        let Some(wall) = asked.wall_ns.map(Duration::from_nanos) else { return FOREVER };
        let buffers = u32::try_from(source.buffers).unwrap_or(u32::MAX);
        wall + wall / 20 + Duration::from_millis(50) + VERIFY_PER_BUFFER * buffers
    }

    fn kept(source: &PlacementSource, mailbox: &Path) -> Self::Kept {
        mailbox::read(mailbox, source.buffers, source.permissions)
    }

    fn prepare(_: &CellRequest, command: &mut Command) {
        command.env(PLANNERS, external::file());
    }

    fn leaves_orphans(asked: &CellRequest) -> bool {
        asked.planner.starts_with(external::PREFIX)
    }
}

/// Runs one cell: once for the answer and, if that was quick, again for the times.
pub(super) fn perform(
    instance: &Instance,
    hints: Option<&Hints>,
    asked: &CellRequest,
    desk: Desk<'_>,
) -> Result<Answer, Failure> {
    let external = external::find(&asked.planner, desk.mailbox.parent());
    let ours = if external.is_none() { Some(planners::find(&asked.planner)?) } else { None };
    let planner: &dyn Planner = match (&external, &ours) {
        (Some(external), _) => external,
        (None, Some(ours)) => &**ours,
        (None, None) => return Err(anyhow::anyhow!("no planner `{}`", asked.planner).into()),
    };
    let budget = budget(asked, hints, desk.cancel);
    let mut mailbox = Mailbox::create(desk.mailbox)?;
    let (first, observe) = (budget.clone(), |event: Event<'_>, _: u64| mailbox.take(&event));
    (desk.begin)()?;
    let (outcome, usage) = measured(|| execute_observed(planner, instance, first, asked.seed, observe));
    let mut answer = Answer::new(&outcome, usage);
    drop(outcome);
    if let Some(report) = external.as_ref().and_then(External::take_report) {
        answer.take_report(&report);
    }
    if let Some(error) = mailbox.into_failure() {
        let mailbox = desk.mailbox.display();
        return Err(anyhow::anyhow!("{mailbox}: the plan could not be kept: {error}").into());
    }
    let quick = answer.samples_ns[0] < asked.repeat_below_ns;
    if quick && asked.repeats > 0 && answer.run.error.is_none() {
        let mut again = || -> io::Result<u64> {
            (desk.begin)()?;
            let outcome = execute(planner, instance, budget.clone(), asked.seed);
            let report = external.as_ref().and_then(External::take_report);
            Ok(nanoseconds(report.map_or(outcome.planning, |report| report.wall)))
        };
        answer.samples_ns = (0..asked.repeats).map(|_| again()).collect::<Result<_, _>>()?;
    }
    saboteurs::tamper(&asked.planner, &mut answer);
    Ok(answer)
}

fn budget(asked: &CellRequest, hints: Option<&Hints>, cancel: &CancelToken) -> Budget {
    Budget {
        wall: asked.wall_ns.map(Duration::from_nanos),
        work: asked.work,
        target: asked.target.map(Bytes::new),
        cancel: cancel.clone(),
        threads: NonZeroUsize::new(asked.threads),
        hints: hints.filter(|_| asked.hinted).cloned(),
        ..Budget::default()
    }
}

impl Answer {
    fn new(outcome: &Outcome<'_>, usage: ProcessUsage) -> Self {
        let point = |mark: &Mark| Point {
            elapsed_ns: nanoseconds(mark.elapsed),
            height: mark.height.map(|height| height.get()),
            bound: mark.bound.get(),
        };
        let error =
            outcome.end.as_ref().err().map(|error| Complaint::new(complaint::status_of(error), error));
        Self {
            run: RunEnd { stop: outcome.end.as_ref().ok().copied(), error, usage, work: outcome.work },
            height: outcome.height().map(|height| height.get()),
            bound: outcome.bound,
            scope: outcome.scope,
            samples_ns: vec![nanoseconds(outcome.planning)],
            reported_ns: None,
            exit_code: None,
            signal: None,
            stderr_tail: String::new(),
            trajectory: outcome.trajectory.iter().map(point).collect(),
        }
    }

    /// Takes over the measurements of an external planner's program: its times and memory instead of ours.
    fn take_report(&mut self, report: &Report) {
        self.samples_ns = vec![nanoseconds(report.wall)];
        self.reported_ns = report.reported.map(nanoseconds);
        self.run.usage.peak_rss_bytes = report.peak_rss_bytes;
        // Checks of the clock are not work of the program.
        self.run.work = 0;
        let Some(complaint) = self.run.error.as_mut().filter(|error| error.status == Status::Unknown) else {
            return;
        };
        match report.fate {
            Fate::Ended => return,
            Fate::Nonsense => complaint.status = Status::BadOutput,
            Fate::Died { signal, code } => {
                // KILL comes from outside; a program that crashes ends with ABRT, SEGV, ...
                complaint.status = if signal == Some(9) { Status::Killed } else { Status::Crashed };
                (self.signal, self.exit_code) = (signal, code);
            }
        }
        self.stderr_tail.clone_from(&report.stderr);
    }
}
