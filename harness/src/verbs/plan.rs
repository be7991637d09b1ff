//! `plan`: runs one cell, isolated as in `bench`.

use std::path::{Path, PathBuf};

use planlab_dsa::{Bytes, Digest, Stop, VerifiedPlan};
use planlab_results::Record;
use planlab_workloads::Trace;
use planlab_workloads::formats::write_plan;
use serde_json::Value;

use super::arenas::ArenaSizes;
use super::view;
use crate::cli::PlanArgs;
use crate::inputs::{self, Carried, Hints, Source, carried_plan, hints};
use crate::kinds::placement::cache::Shelf;
use crate::kinds::placement::{Cell, Judgement, Runner, Samples, Subject, in_process, planners, record};
use crate::shell::clock::now_ns;
use crate::shell::exit::{Failure, Verdict};
use crate::shell::output::{self, Output, print_note};
use crate::shell::signals::cancel_token;
use crate::shell::target::{Target, scratch_folder};
use crate::shell::text::Text;

pub(crate) fn run(args: &PlanArgs, output: Output) -> Verdict {
    check_args(args, output)?;
    // A plan may replace the one that it started from.
    let read = [Some(&args.trace), args.carry.as_ref(), args.of.as_ref()];
    let read = || read.into_iter().flatten().map(String::as_str);
    let target = args.output.as_deref().map(|path| Target::open_argument(path, read())).transpose()?;
    let scratch = scratch_folder()?;
    let source = Source::resolve_argument(&args.trace, &args.reading, scratch.path())?;
    let trace = inputs::open_trace(&source)?;
    trace.notices.iter().for_each(|notice| print_note(notice));
    tell_unused(args);
    let digest = trace.instance.digest();
    let task = Task { args, source: &source, trace: &trace, digest, scratch: scratch.path() };
    let mut shelf = task.open_shelf()?;
    let carried = carried_plan(args, &trace, scratch.path())?;
    let carried_height = carried.as_ref().map(|plan| plan.height);
    let made = match shelf.as_ref().and_then(Shelf::kept_answer) {
        Some(kept) => task.serve_kept(kept)?,
        None => task.run_planner(task.starting_hints(carried, shelf.as_ref())?, shelf.as_ref())?,
    };
    let lost = match (target, &made.answer) {
        (Some(target), Some(plan)) => write_answer(target, &write_plan(&trace, plan.as_plan()))?,
        _ => None,
    };
    let heights = made.answer.as_ref().map(VerifiedPlan::arena_heights);
    let (arenas, heights) = (ArenaSizes::from_instance(&trace.instance), heights.as_deref());
    let permissions = trace.instance.in_place().len();
    let cached = made.cached;
    let extras = PlanCardExtras { cached, carried: carried_height, permissions, arenas: &arenas, heights };
    let shown = show_result(args, output, &made.row, extras, lost.as_ref());
    // A closed pipe is not an error, but a lost plan is: report the latter.
    if lost.is_none() {
        shown?;
    }
    keep_for_next(shelf.as_mut(), &made);
    lost.map_or_else(|| Ok(view::exit_of_plan(&made.row, made.answer.is_some())), |lost| Err(lost.failure))
}

/// Refuses impossible arguments before any file is read.
fn check_args(args: &PlanArgs, output: Output) -> Result<(), Failure> {
    planners::find(&args.planner)?;
    output.refuse_stdout("plan", args.output.as_deref().unwrap_or_default())?;
    if args.trace == "-" && args.start.as_deref() == Some("-") {
        return Err(Failure::from_usage("the trace and the plan to start from cannot both come from stdin"));
    }
    Ok(())
}

/// The planning task.
struct Task<'a> {
    args: &'a PlanArgs,
    source: &'a Source,
    trace: &'a Trace,
    digest: Digest,
    scratch: &'a Path,
}

/// The result of planning.
struct PlanningResult<'i> {
    row: Record,
    /// The plan that answers the request.
    answer: Option<VerifiedPlan<'i>>,
    /// Whether the answer comes from the cache.
    cached: bool,
    /// The plan of this run, and why the run ended, for the cache.
    new: Option<(VerifiedPlan<'i>, Option<Stop>)>,
}

impl<'a> Task<'a> {
    /// The cell without hints, as in the cache's key.
    fn planning_cell(&self) -> Cell {
        Cell { target: self.args.capacity, ..Cell::of(self.source, &self.args.planner, &self.args.limits) }
    }

    /// The kept plans of the trace, if a cache is named.
    fn open_shelf(&self) -> Result<Option<Shelf<'a>>, Failure> {
        let open = |folder: &PathBuf| Shelf::open_folder(folder, &self.planning_cell(), &self.trace.instance);
        self.args.cache.as_ref().map(open).transpose()
    }

    /// The offsets that the planner starts from; `None` if it does not honour hints. A kept plan that does not answer
    /// the request is the last choice.
    fn starting_hints(
        &self,
        carried: Option<Carried>,
        shelf: Option<&Shelf<'_>>,
    ) -> Result<Option<Hints>, Failure> {
        let honours = planners::honours(&self.args.planner).hint;
        if let Some(carried) = carried {
            return Ok(honours.then_some(carried.hints));
        }
        match &self.args.start {
            Some(plan) => {
                let hints = hints::of_plan(plan, self.trace)?;
                if !honours {
                    print_note(&format!(
                        "`{}` does not honour hints: it starts without them",
                        self.args.planner
                    ));
                }
                Ok(Some(hints).filter(|_| honours))
            }
            None if self.args.no_hints || !honours => Ok(None),
            None => Ok(hints::of_trace(self.trace).or_else(|| shelf?.kept_hints())),
        }
    }

    /// Answers with a kept plan.
    fn serve_kept(&self, kept: Judgement<'a>) -> Result<PlanningResult<'a>, Failure> {
        let context = self.new_runner()?.supervisor().context("", 1, now_ns());
        let row = record(&self.planning_cell(), &self.plan_subject(None), &kept, None, context);
        Ok(PlanningResult { answer: self.answer_of(&row, kept), row, cached: true, new: None })
    }

    /// Runs the planner. If the cache holds a lower plan, that is the answer.
    fn run_planner(
        &self,
        hints: Option<Hints>,
        shelf: Option<&Shelf<'a>>,
    ) -> Result<PlanningResult<'a>, Failure> {
        let cell = Cell { hints: hints.as_deref().map(hints::hints_digest), ..self.planning_cell() };
        let runner = self.new_runner()?;
        let context = runner.supervisor().context("", 1, now_ns());
        let subject = self.plan_subject(hints);
        let found = if self.args.in_process {
            in_process(&cell, &subject, runner.cancel(), self.scratch)?
        } else {
            runner.run_one(&subject, &cell)?
        };
        let new = found.plan.clone().map(|plan| (plan, found.ending.stop));
        let kept = shelf.and_then(|shelf| shelf.lower_than(&found));
        let cached = kept.is_some();
        let judgement = kept.unwrap_or(found);
        let row = record(&cell, &subject, &judgement, None, context);
        Ok(PlanningResult { answer: self.answer_of(&row, judgement), row, cached, new })
    }

    fn new_runner(&self) -> Result<Runner, Failure> {
        Ok(Runner::new(cancel_token(), Samples::ONCE)?)
    }

    fn plan_subject(&self, hints: Option<Hints>) -> Subject<'a> {
        Subject { source: self.source, instance: &self.trace.instance, digest: self.digest, hints }
    }

    /// The plan of a row, if the row counts and the plan fits.
    fn answer_of(&self, row: &Record, judgement: Judgement<'a>) -> Option<VerifiedPlan<'a>> {
        let capacity = self.args.capacity;
        let fits = |plan: &VerifiedPlan<'_>| capacity.is_none_or(|capacity| plan.height().get() <= capacity);
        judgement.plan.filter(|plan| view::counts_plan(row) && fits(plan))
    }
}

/// Keeps the plan of this run for the next one.
fn keep_for_next(shelf: Option<&mut Shelf<'_>>, made: &PlanningResult<'_>) {
    if let (Some(shelf), Some((plan, stop))) = (shelf, &made.new) {
        // The answer is printed already: if the cache cannot take it, only the next run suffers.
        shelf
            .keep_plan(plan, *stop)
            .unwrap_or_else(|failure| print_note(&format!("not kept: {:#}", failure.error)));
    }
}

/// A plan that could not be written to its file.
struct Lost {
    plan: String,
    failure: Failure,
}

/// Writes the plan; returns it if the file cannot be written.
fn write_answer(target: Target, plan: &[u8]) -> Result<Option<Lost>, Failure> {
    let is_file = matches!(target, Target::File(_));
    match target.write_all(plan) {
        Err(failure) if is_file => {
            Ok(Some(Lost { plan: String::from_utf8_lossy(plan).into_owned(), failure }))
        }
        written => written.map(|()| None),
    }
}

/// Facts to print besides the row.
#[derive(Clone, Copy)]
struct PlanCardExtras<'a> {
    /// Whether the plan comes from the cache.
    cached: bool,
    /// The height of the `--carry` plan.
    carried: Option<u64>,
    /// In-place permissions of the trace.
    permissions: usize,
    arenas: &'a ArenaSizes<'a>,
    /// The height of each arena, if there is a plan.
    heights: Option<&'a [Bytes]>,
}

impl PlanCardExtras<'_> {
    fn card_with(self, row: &Record) -> Text {
        let mut card = view::record_card(row, self.permissions, &self.arenas.sum_remark());
        if let Some(height) = self.carried {
            card += &format!("{:<13}  {height}\n", "carried over");
        }
        if self.cached {
            card += &format!("{:<13}  the plan was in the cache\n", "cached");
        }
        match self.arenas.arena_table(self.heights) {
            Some(table) => Text::from(card) + "\n" + table,
            None => card.into(),
        }
    }

    fn object_with(self, row: &Record) -> Value {
        let mut object = view::record_object(row);
        object["cached"] = self.cached.into();
        object["carried"] = self.carried.into();
        object["permissions"] = self.permissions.into();
        object["arenas"] = self.arenas.arena_objects(self.heights);
        object
    }
}

fn show_result(
    args: &PlanArgs,
    output: Output,
    row: &Record,
    extras: PlanCardExtras<'_>,
    lost: Option<&Lost>,
) -> Result<(), Failure> {
    let plan = lost.map(|lost| lost.plan.as_str());
    match (args.output.as_deref() == Some("-"), output.json) {
        (true, _) => print_note(&format!("{}\n{}", row.planner, extras.card_with(row).plain())),
        (false, true) => {
            let mut object = extras.object_with(row);
            if let Some(plan) = plan {
                object["plan"] = plan.into();
            }
            output.print_value(&object)?;
        }
        (false, false) => {
            output.print_text(extras.card_with(row))?;
            if let Some(plan) = plan {
                // In the same form as `-o -`, so that it can be read again.
                output::print_bytes(format!("\n{plan}").as_bytes())?;
            }
        }
    }
    Ok(())
}

/// Notes which limits the planner does not honour.
fn tell_unused(args: &PlanArgs) {
    let honours = planners::honours(&args.planner);
    if args.limits.threads.is_some_and(|threads| threads.get() > 1) && !honours.threads {
        print_note(&format!("`{}` does not honour threads: it uses one", args.planner));
    }
    if args.limits.work_limit.is_some() && !honours.work_limit {
        print_note(&format!("`{}` does not honour a work limit: it runs without one", args.planner));
    }
}
