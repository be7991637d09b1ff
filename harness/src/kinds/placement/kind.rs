//! Placement as a kind of cell: a planner under its limits on one instance.

use std::io;
use std::num::NonZeroUsize;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use planlab_dsa::{
    Bound, Budget, Bytes, CancelToken, Event, Instance, Plan, Planner, execute, execute_observed,
};
use planlab_workloads::Trace;

use super::mailbox::{self, Mailbox};
use super::messages::{Answer, CellRequest, PlacementSource};
use super::{planners, saboteurs};
use crate::cells::{CellContext, FOREVER, Kind};
use crate::cli::PLANNERS;
use crate::inputs::{self, Hints};
use crate::kinds::external::{self, External};
use crate::process::measured;
use crate::shell::exit::Failure;
use crate::shell::quantity::as_nanoseconds;

/// How long a child may take to read its trace, and between two cells.
const LOADING_LIMIT: Duration = Duration::from_secs(300);
/// The time per buffer that a child gets past its wall limit to verify its last plan.
const VERIFY_PER_BUFFER: Duration = Duration::from_micros(4);

/// Planners on an instance.
pub(crate) struct Placement;

impl Kind for Placement {
    const VERB: &'static str = "run-cells";
    const GRACE: Duration = Duration::from_secs(1);

    type Source = PlacementSource;
    type Problem = (Trace, Option<Hints>);
    type Asked = CellRequest;
    type Found = Answer;
    type Kept = (Option<Plan>, Option<Bound>);

    fn open(source: &PlacementSource) -> Result<(Trace, Option<Hints>), Failure> {
        let trace = inputs::open_trace(&source.source)?;
        if trace.instance.digest() != source.digest {
            return Err(Failure::from_usage("the child read another trace"));
        }
        Ok((trace, source.hints.as_deref().map(Hints::from)))
    }

    fn perform(
        (trace, hints): &(Trace, Option<Hints>),
        asked: &CellRequest,
        mut context: CellContext<'_>,
    ) -> Result<Answer, Failure> {
        perform(&trace.instance, hints.as_ref(), asked, &mut context)
    }

    fn limit_to_begin(_: &CellRequest) -> Duration {
        LOADING_LIMIT
    }

    fn limit_from_begin(source: &PlacementSource, asked: &CellRequest) -> Duration {
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
    context: &mut CellContext<'_>,
) -> Result<Answer, Failure> {
    let external = external::find(&asked.planner, context.mailbox.parent());
    let ours = if external.is_none() { Some(planners::find(&asked.planner)?) } else { None };
    let planner: &dyn Planner = match (&external, &ours) {
        (Some(external), _) => external,
        (None, Some(ours)) => &**ours,
        (None, None) => return Err(anyhow::anyhow!("no planner `{}`", asked.planner).into()),
    };
    let budget = budget(asked, hints, context.cancel);
    let mut mailbox = Mailbox::create(context.mailbox)?;
    let (first, observe) = (budget.clone(), |event: Event<'_>, _: u64| mailbox.take(&event));
    (context.begin)()?;
    let (outcome, usage) = measured(|| execute_observed(planner, instance, first, asked.seed, observe));
    let mut answer = Answer::new(&outcome, usage);
    drop(outcome);
    if let Some(report) = external.as_ref().and_then(External::take_report) {
        answer.take_report(&report);
    }
    if let Some(error) = mailbox.into_failure() {
        let mailbox = context.mailbox.display();
        return Err(anyhow::anyhow!("{mailbox}: the plan could not be kept: {error}").into());
    }
    let quick = answer.samples_ns[0] < asked.repeat_below_ns;
    if quick && asked.repeats > 0 && answer.run.error.is_none() {
        let mut again = || -> io::Result<u64> {
            (context.begin)()?;
            let outcome = execute(planner, instance, budget.clone(), asked.seed);
            let report = external.as_ref().and_then(External::take_report);
            Ok(as_nanoseconds(report.map_or(outcome.planning, |report| report.wall)))
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
