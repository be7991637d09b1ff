//! `plan`: one cell, isolated as `bench` does it.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use planlab_dsa::{CancelToken, VerifiedPlan};
use planlab_results::{Lane, Record, Status};
use planlab_workloads::Trace;
use planlab_workloads::formats::write_plan;
use serde_json::Value;

use crate::cache::Shelf;
use crate::carried::{Carried, carried};
use crate::cell::Cell;
use crate::cli::{LimitArgs, PlanArgs};
use crate::exit::{Exit, Failure, Verdict};
use crate::hints::{self, Hints};
use crate::input::{self, Source};
use crate::isolation::{CellEnd, child, mailbox};
use crate::judge::{Judgement, judge};
use crate::output::{self, Output, note};
use crate::runner::{RowContext, Runner, Samples, Subject, now_ns, record};
use crate::signals::cancel_token;
use crate::target::{Target, scratch};
use crate::{planners, provenance, view};

/// Wall limit of a cell that names none.
const DEFAULT_WALL: std::time::Duration = std::time::Duration::from_secs(10);

pub(crate) fn run(args: &PlanArgs, output: Output) -> Verdict {
    let cancel = cancel_token();
    planners::find(&args.planner)?;
    output.refuse_stdout("plan", args.output.as_deref().unwrap_or_default())?;
    if args.trace == "-" && args.start.as_deref() == Some("-") {
        return Err(Failure::usage("the trace and the plan to start from cannot both come from stdin"));
    }
    let target = args.output.as_deref().map(Target::open).transpose()?;
    let scratch = scratch()?;
    let source = Source::resolve(&args.trace, &args.reading, scratch.path())?;
    let trace = input::open(&source)?;
    trace.notices.iter().for_each(|notice| note(notice));
    tell_unused(args);
    let bare = Cell { target: args.capacity, ..cell(&source, &args.planner, &args.limits) };
    let open = |folder: &PathBuf| Shelf::open(folder, &bare, &trace.instance);
    let mut shelf = args.cache.as_ref().map(open).transpose()?;
    let found = shelf.as_ref().and_then(Shelf::answer);
    let carried = carried(args, &trace, scratch.path())?;
    let beside = Beside { cached: found.is_some(), carried: carried.as_ref().map(|plan| plan.height) };
    let given = match &found {
        Some(_) => None,
        None => given_hints(args, &trace, carried, shelf.as_ref())?,
    };
    let cell = Cell { hints: given.as_deref().map(hints::digest), ..bare };
    let digest = trace.instance.digest();
    let subject = Subject { source: &source, instance: &trace.instance, digest, hints: given };
    let runner = Runner::new(cancel.clone(), Samples::ONCE)?;
    let started_ns = now_ns();
    let judgement = match found {
        Some(found) => found,
        None if args.in_process => in_process(&cell, &subject, &cancel, scratch.path())?,
        None => runner.run(&subject, std::slice::from_ref(&cell), None)?.pop().ok_or_else(no_end)?,
    };
    let stop = judgement.stop;
    let kept = shelf.as_ref().filter(|_| !beside.cached).and_then(|shelf| shelf.lower_than(&judgement));
    let new = judgement.plan.clone().filter(|_| !beside.cached);
    let beside = Beside { cached: beside.cached || kept.is_some(), ..beside };
    let judgement = kept.unwrap_or(judgement);
    let row = record(&cell, &subject, &judgement, None, context(&runner, started_ns));
    let counts = matches!(row.status, Status::Optimal | Status::Feasible);
    let counts = counts || view::left_a_plan(&row);
    let fits = |plan: &VerifiedPlan<'_>| args.capacity.is_none_or(|capacity| plan.height().get() <= capacity);
    let answer = judgement.plan.filter(|plan| counts && fits(plan));
    let lost = match (target, &answer) {
        (Some(target), Some(plan)) => write_answer(target, &write_plan(&trace, plan.as_plan()))?,
        _ => None,
    };
    let shown = show(args, output, &row, beside, lost.as_ref());
    // A closed pipe is not an error, a lost plan is: report the latter.
    if lost.is_none() {
        shown?;
    }
    if let (Some(shelf), Some(plan)) = (&mut shelf, &new) {
        // The answer is out: a cache that cannot take it costs the next run only.
        shelf.keep(plan, stop).unwrap_or_else(|failure| note(&format!("not kept: {:#}", failure.error)));
    }
    lost.map_or_else(|| Ok(exit_of(&row, answer.is_some())), |lost| Err(lost.failure))
}

/// A plan that could not be written where it was to go.
struct Lost {
    plan: String,
    failure: Failure,
}

/// Writes the plan; gives it back where a file does not take it.
fn write_answer(target: Target, plan: &[u8]) -> Result<Option<Lost>, Failure> {
    let is_file = matches!(target, Target::File(_));
    match target.write(plan) {
        Err(failure) if is_file => {
            Ok(Some(Lost { plan: String::from_utf8_lossy(plan).into_owned(), failure }))
        }
        written => written.map(|()| None),
    }
}

/// What is told besides the row.
#[derive(Clone, Copy)]
struct Beside {
    /// Whether the plan was there already.
    cached: bool,
    /// The height of the plan that was carried over.
    carried: Option<u64>,
}

impl Beside {
    fn card(self, row: &Record) -> String {
        let mut card = view::card(row);
        if let Some(height) = self.carried {
            card += &format!("{:<13}  {height}\n", "carried over");
        }
        if self.cached {
            card += &format!("{:<13}  the plan was there already\n", "cached");
        }
        card
    }

    fn object(self, row: &Record) -> Value {
        let mut object = view::object(row);
        object["cached"] = self.cached.into();
        object["carried"] = self.carried.into();
        object
    }
}

fn show(
    args: &PlanArgs,
    output: Output,
    row: &Record,
    beside: Beside,
    lost: Option<&Lost>,
) -> Result<(), Failure> {
    let plan = lost.map(|lost| lost.plan.as_str());
    match (args.output.as_deref() == Some("-"), output.json) {
        (true, _) => note(&format!("{}\n{}", row.planner, beside.card(row))),
        (false, true) => {
            let mut object = beside.object(row);
            if let Some(plan) = plan {
                object["plan"] = plan.into();
            }
            output.value(&object)?;
        }
        (false, false) => {
            output.text(&beside.card(row))?;
            if let Some(plan) = plan {
                // As `-o -` prints it, so that it can be read again.
                output::bytes(format!("\n{plan}").as_bytes())?;
            }
        }
    }
    Ok(())
}

/// Says which limits were named in vain.
fn tell_unused(args: &PlanArgs) {
    let honours = planners::honours(&args.planner);
    if args.limits.threads.is_some_and(|threads| threads.get() > 1) && !honours.threads {
        note(&format!("`{}` does not honour threads: it uses one", args.planner));
    }
    if args.limits.work_limit.is_some() && !honours.work_limit {
        note(&format!("`{}` does not honour a work limit: it has none", args.planner));
    }
}

/// What the planner is given to start from; nothing where it does not honour hints. A kept plan that is no
/// answer comes last.
fn given_hints(
    args: &PlanArgs,
    trace: &Trace,
    carried: Option<Carried>,
    shelf: Option<&Shelf<'_>>,
) -> Result<Option<Hints>, Failure> {
    let honours = planners::honours(&args.planner).hint;
    if let Some(carried) = carried {
        return Ok(honours.then_some(carried.hints));
    }
    match &args.start {
        Some(plan) => {
            let hints = hints::of_plan(plan, trace)?;
            if !honours {
                note(&format!("`{}` does not honour hints: it starts from nothing", args.planner));
            }
            Ok(Some(hints).filter(|_| honours))
        }
        None if args.no_hints || !honours => Ok(None),
        None => Ok(hints::of_trace(trace).or_else(|| shelf?.hints())),
    }
}

fn no_end() -> Failure {
    Failure::new(Exit::Incomplete, "the child was asked for one cell and has none")
}

/// Every core where nobody says how many.
fn default_threads() -> usize {
    std::thread::available_parallelism().map_or(1, NonZeroUsize::get)
}

/// The cell of a trace with a planner; limits that the planner does not honour are left out of it.
pub(crate) fn cell(source: &Source, planner: &str, limits: &LimitArgs) -> Cell {
    let honours = planners::honours(planner);
    let threads = limits.threads.map_or_else(default_threads, NonZeroUsize::get);
    Cell {
        workload: source.name.clone(),
        planner: planner.to_owned(),
        wall: Some(limits.time_limit.unwrap_or(DEFAULT_WALL)),
        memory: Some(limits.memory_limit),
        work: limits.work_limit.filter(|_| honours.work_limit),
        target: None,
        seed: limits.seed,
        threads: if honours.threads { threads } else { 1 },
        hints: None,
        repetition: 0,
    }
}

pub(crate) fn context(runner: &Runner, started_ns: u64) -> RowContext<'static> {
    RowContext {
        lane: Lane::Timing,
        suite: "",
        mechanism: runner.mechanism(),
        started_ns,
        provenance: provenance::here(1),
    }
}

fn exit_of(row: &Record, has_plan: bool) -> Exit {
    match row.status {
        Status::Interrupted => Exit::Interrupted,
        status if status.is_lie() => Exit::Invalid,
        _ if has_plan => Exit::Complete,
        _ => Exit::Incomplete,
    }
}

fn in_process<'i>(
    cell: &Cell,
    subject: &Subject<'i>,
    cancel: &CancelToken,
    scratch: &std::path::Path,
) -> Result<Judgement<'i>, Failure> {
    let path = scratch.join("mailbox");
    let instance = subject.instance;
    let asked = crate::runner::ask(cell, Samples::ONCE);
    let answer = child::perform(instance, &asked, subject.hints.as_ref(), &path, cancel, &mut || Ok(()))?;
    let (plan, bound) = mailbox::read(&path, instance.len(), instance.in_place().len());
    let end = CellEnd {
        end: Ok(answer),
        plan,
        bound,
        stderr_tail: String::new(),
        interrupted: cancel.is_cancelled(),
    };
    Ok(judge(end, instance, cell.target))
}
