//! `explain`: what a framework reserved against the best plan, what makes the difference, why memory ran out, and how large a
//! batch would fit.

mod choice;
mod failure;
mod largest;
mod object;
#[cfg(feature = "reports")]
mod page;
mod planning;
mod shown;

use std::num::NonZeroU64;

use planlab_dsa::BufferId;
use planlab_results::Record;
use planlab_workloads::Trace;
use planlab_workloads::formats::import::{Dropped, Framework};
use planlab_workloads::waste::{self, Waste};

use crate::cli::ExplainArgs;
use crate::inputs::{self, Source};
use crate::kinds::placement::planners;
use crate::shell::exit::{Failure, Verdict};
use crate::shell::output::{Output, note};
use crate::shell::target::scratch;
use choice::{Chosen, Summary, choose};
use failure::Failed;
use largest::Largest;
use planning::Planning;

pub(crate) fn run(args: &ExplainArgs, output: Output) -> Verdict {
    planners::find(&args.planner)?;
    #[cfg(feature = "reports")]
    let page = page::Asked::open(args)?;
    let scratch = scratch()?;
    let source = Source::resolve(&args.file, &args.reading, scratch.path())?;
    let mut imported = inputs::open_parts(&source)?;
    let dropped = std::mem::take(&mut imported.dropped);
    dropped.iter().for_each(|dropped| note(&dropped.to_string()));
    let Chosen { part, why, others } = choose(imported, &source.name, &source.options()?)?;
    part.trace.notices.iter().for_each(|notice| note(notice));
    inputs::refuse_several_arenas(&source.name, &part.trace, "`explain`")?;
    let framework = part.framework.unwrap_or_default();
    let batch = question(args, &framework)?;
    let planning = Planning { args, name: &source.name, scratch: scratch.path() };
    let best = planning.best(&part.trace.instance, None)?;
    let failures = Failed::all(&part.trace, &framework, &planning)?;
    let largest = match batch {
        Some(question) => Some(Largest::find(&part.trace, &framework, &planning, question)?),
        None => None,
    };
    let (peak_step, peak) = waste::peak(&part.trace);
    let explained = Explained {
        file: &source.name,
        part: &part.name,
        why,
        others,
        waste: Waste::of(&part.trace, &framework),
        trace: &part.trace,
        framework: &framework,
        dropped: &dropped,
        best: &best.row,
        peak_step,
        peak,
        failures,
        largest,
    };
    let text = shown::text(&explained, args.top);
    output.put(&object::object(&explained), &text)?;
    #[cfg(feature = "reports")]
    page.write(&explained, best.plan.clone(), &text)?;
    Ok(best.exit())
}

/// The batch that was recorded and the memory that a larger one may take.
fn question(args: &ExplainArgs, framework: &Framework) -> Result<Option<(NonZeroU64, u64)>, Failure> {
    let capacity = args.capacity.or_else(|| failure::capacity(framework));
    match (args.batch, capacity) {
        (Some(batch), Some(capacity)) => Ok(Some((batch, capacity))),
        (Some(_), None) => {
            Err(Failure::usage("--batch needs --capacity: the file does not say how much memory there is"))
        }
        (None, _) if args.capacity.is_some() && framework.failures.is_empty() => {
            Err(Failure::usage("--capacity has no use here: memory did not run out, and there is no --batch"))
        }
        (None, _) => Ok(None),
    }
}

/// Everything that is printed.
struct Explained<'e> {
    file: &'e str,
    part: &'e str,
    /// Why this trace was chosen of several, and the others.
    why: Option<&'static str>,
    others: Vec<Summary>,
    trace: &'e Trace,
    framework: &'e Framework,
    dropped: &'e [Dropped],
    best: &'e Record,
    waste: Option<Waste>,
    /// The step of the load, and the buffers that are in use then, largest first.
    peak_step: u64,
    peak: Vec<BufferId>,
    /// The first times that memory ran out; `framework` has all.
    failures: Vec<Failed>,
    largest: Option<Largest>,
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

    /// The buffers of the peak by category, with their number and bytes, largest first.
    fn categories(&self) -> Vec<(Option<&str>, usize, u64)> {
        let mut all: std::collections::BTreeMap<Option<&str>, (usize, u64)> =
            std::collections::BTreeMap::new();
        for &id in &self.peak {
            let category = self.trace.labels.buffers[id.index()].category.as_deref();
            let (count, bytes) = all.entry(category).or_default();
            *count += 1;
            *bytes = bytes.saturating_add(self.trace.instance.buffer(id).size.get());
        }
        let mut all: Vec<_> = all.into_iter().map(|(name, (count, bytes))| (name, count, bytes)).collect();
        all.sort_by_key(|&(_, _, bytes)| std::cmp::Reverse(bytes));
        all
    }

    /// Bytes that offsets are multiples of, if there is one number for all.
    fn alignment(&self) -> Option<u64> {
        let mut all = self.trace.instance.buffers().iter().map(|buffer| buffer.align.get());
        let first = all.next()?;
        all.all(|other| other == first).then_some(first).filter(|&bytes| bytes > 1)
    }
}
