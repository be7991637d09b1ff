//! Scheduling as a kind of cell: a scheduler under its limits on one problem.

use std::fs;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use planlab_graph::{ScheduleBudget, SchedulingProblem, Verified, execute_scheduler_observed};

use super::messages::{Answer, CellRequest};
use super::{question, saboteurs};
use crate::cells::{CellContext, FOREVER, Kind, MailboxWriter, latest};
use crate::inputs;
use crate::process::measured;
use crate::shell::exit::Failure;

/// The shortest interval between two kept schedules; the last one is always kept.
const KEEPING: Duration = Duration::from_millis(20);
/// The time past its wall limit that a child gets to read its problem and write its answer.
const RESERVE: Duration = Duration::from_secs(2);
/// What the mailbox keeps.
const SCHEDULE: &str = "schedule";

/// Schedulers on a problem.
pub(crate) struct Scheduling;

impl Kind for Scheduling {
    const VERB: &'static str = "run-schedule";

    /// The problem's file, as `SchedulingProblem::write_jsonl` makes it.
    type Source = PathBuf;
    type Problem = SchedulingProblem;
    type Asked = CellRequest;
    type Found = Answer;
    /// The best schedule in its file format.
    type Kept = Option<String>;

    fn open(source: &PathBuf) -> Result<SchedulingProblem, Failure> {
        let name = source.display().to_string();
        Ok(SchedulingProblem::read_jsonl(&name, &fs::read_to_string(source)?, None)?)
    }

    fn perform(
        problem: &SchedulingProblem,
        asked: &CellRequest,
        context: CellContext<'_>,
    ) -> Result<Answer, Failure> {
        let scheduler = question::resolve_scheduler(&asked.scheduler)?;
        let budget = ScheduleBudget {
            wall: asked.wall_ns.map(Duration::from_nanos),
            work: asked.work,
            target: asked.target,
            threads: NonZeroUsize::new(asked.threads),
            cancel: context.cancel.clone(),
            ..ScheduleBudget::default()
        };
        let mut writer = MailboxWriter::create(context.mailbox, SCHEDULE)?;
        let mut last: Option<Instant> = None;
        let keep_now_and_then = |better: &Verified| {
            let is_time = last.is_none_or(|last| last.elapsed() >= KEEPING);
            // If it cannot be kept the run continues, because its answer still counts.
            if is_time && writer.put(better.schedule().write_jsonl().as_bytes()).is_ok() {
                last = Some(Instant::now());
            }
        };
        let (outcome, usage) = measured(|| {
            execute_scheduler_observed(&*scheduler, problem, budget, asked.seed, keep_now_and_then)
        });
        let mut answer = Answer::new(&outcome, usage);
        let mut best = outcome.best.as_ref().map(|best| best.schedule().write_jsonl());
        saboteurs::tamper(&asked.scheduler, &mut answer, &mut best)?;
        if let Some(best) = best {
            writer.put(best.as_bytes())?;
        }
        Ok(answer)
    }

    fn limit_to_begin(asked: &CellRequest) -> Duration {
        let wall = asked.wall_ns.map(Duration::from_nanos);
        wall.map_or(FOREVER, |wall| wall + wall / 20 + RESERVE)
    }

    fn kept(_: &PathBuf, mailbox: &Path) -> Option<String> {
        latest(mailbox, SCHEDULE, inputs::input_limits().unpacked_bytes())
            .and_then(|text| String::from_utf8(text).ok())
    }
}
