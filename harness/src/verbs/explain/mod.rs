//! `explain`: what a framework reserved against the best plan, what makes the difference, and why memory ran out.

mod failure;
#[cfg(feature = "reports")]
mod page;
mod shown;

use std::path::Path;

use planlab_dsa::{BufferId, Plan, VerifiedPlan};
use planlab_results::{Record, Status};
use planlab_workloads::Trace;
use planlab_workloads::formats::import::{Dropped, Framework};
use planlab_workloads::formats::write_trace;
use planlab_workloads::waste::{self, Waste};

use super::view;
use crate::cli::ExplainArgs;
use crate::inputs::network::source_file;
use crate::inputs::{self, Source};
use crate::planning::{Cell, Judgement, RowContext, Runner, Samples, Subject, planners, record};
use crate::shell::clock::now_ns;
use crate::shell::exit::{Exit, Failure, Verdict};
use crate::shell::output::{Output, note};
use crate::shell::signals::cancel_token;
use crate::shell::target::scratch;
use failure::Failed;

pub(crate) fn run(args: &ExplainArgs, output: Output) -> Verdict {
    planners::find(&args.planner)?;
    #[cfg(feature = "reports")]
    let page = page::Asked::open(args)?;
    let scratch = scratch()?;
    let source = Source::resolve(&args.file, &args.reading, scratch.path())?;
    let mut imported = inputs::open_parts(&source)?;
    let dropped = std::mem::take(&mut imported.dropped);
    dropped.iter().for_each(|dropped| note(&dropped.to_string()));
    let part = imported.part(&source.name, &source.options()?)?;
    part.trace.notices.iter().for_each(|notice| note(notice));
    let framework = part.framework.unwrap_or_default();
    let planning = Planning { args, name: &source.name, scratch: scratch.path() };
    let best = planning.best(&part.trace, None)?;
    let failed = match best.height {
        Some(height) => Failed::of(&part.trace, &framework, height, &planning)?,
        None => None,
    };
    let (peak_step, peak) = waste::peak(&part.trace);
    let explained = Explained {
        file: &source.name,
        part: &part.name,
        waste: Waste::of(&part.trace, &framework),
        trace: &part.trace,
        framework: &framework,
        dropped: &dropped,
        best: &best.row,
        peak_step,
        peak,
        failed,
    };
    let text = shown::text(&explained, args.top);
    output.put(&shown::object(&explained), &text)?;
    #[cfg(feature = "reports")]
    page.write(&explained, best.plan.clone(), &text)?;
    Ok(exit_of(&best))
}

/// Everything that is printed.
struct Explained<'e> {
    file: &'e str,
    part: &'e str,
    trace: &'e Trace,
    framework: &'e Framework,
    dropped: &'e [Dropped],
    best: &'e Record,
    waste: Option<Waste>,
    /// The step of the load, and the buffers that are in use then, largest first.
    peak_step: u64,
    peak: Vec<BufferId>,
    failed: Option<Failed>,
}

impl Explained<'_> {
    /// The most bytes that were asked for at once.
    fn requested(&self) -> u64 {
        let sizes = self.peak.iter().map(|id| self.asked(*id));
        sizes.fold(0, u64::saturating_add)
    }

    /// Bytes that were asked for, before any rounding.
    fn asked(&self, id: BufferId) -> u64 {
        let label = &self.trace.labels.buffers[id.index()];
        label.requested.unwrap_or(self.trace.instance.buffer(id).size).get()
    }
}

/// How plans are made.
struct Planning<'a> {
    args: &'a ExplainArgs,
    name: &'a str,
    scratch: &'a Path,
}

/// The best plan that was found.
struct Best {
    row: Record,
    /// Of the plan, if one was found.
    height: Option<u64>,
    #[cfg_attr(not(feature = "reports"), expect(dead_code, reason = "for the page"))]
    plan: Option<Plan>,
}

impl Planning<'_> {
    /// Plans a trace in a process of its own; with a capacity it ends at the first plan that fits.
    fn best(&self, trace: &Trace, capacity: Option<u64>) -> Result<Best, Failure> {
        let path = self.scratch.join(if capacity.is_some() { "failed.csv" } else { "explained.csv" });
        std::fs::write(&path, write_trace(trace))?;
        // The copy is not compressed, whatever the file is.
        let source = source_file(self.name.strip_suffix(".zst").unwrap_or(self.name), path);
        let cell = Cell { target: capacity, ..Cell::of(&source, &self.args.planner, &self.args.limits) };
        let digest = trace.instance.digest();
        let subject = Subject { source: &source, instance: &trace.instance, digest, hints: None };
        let runner = Runner::new(cancel_token(), Samples::ONCE)?;
        let context = RowContext::of(&runner, now_ns());
        let judged = runner.run(&subject, std::slice::from_ref(&cell), None)?.pop();
        let judged = judged.ok_or_else(|| Failure::new(Exit::Incomplete, "the child has no answer"))?;
        let row = record(&cell, &subject, &judged, None, context);
        let height = height(&row, &judged);
        let plan = judged.plan.filter(|_| height.is_some()).map(VerifiedPlan::into_plan);
        Ok(Best { height, plan, row })
    }
}

/// The height of a plan that counts.
fn height(row: &Record, judged: &Judgement<'_>) -> Option<u64> {
    let counts = matches!(row.status, Status::Optimal | Status::Feasible) || view::left_a_plan(row);
    judged.plan.as_ref().filter(|_| counts).map(VerifiedPlan::height).map(planlab_dsa::Bytes::get)
}

fn exit_of(best: &Best) -> Exit {
    match best.row.status {
        Status::Interrupted => Exit::Interrupted,
        status if status.is_lie() => Exit::Invalid,
        _ if best.height.is_some() => Exit::Complete,
        _ => Exit::Incomplete,
    }
}
