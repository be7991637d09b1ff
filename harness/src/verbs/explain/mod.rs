//! `explain`: what a framework reserved against the best plan, what makes the difference, why memory ran out, and how large a
//! batch would fit.

mod explained;
mod failure;
mod largest;
mod object;
#[cfg(feature = "reports")]
mod page;
mod planning;
mod shown;

use std::num::NonZeroU64;

use planlab_workloads::formats::import::Framework;
use planlab_workloads::waste::{self, Waste};

use crate::cli::ExplainArgs;
use crate::inputs::{self, Source};
use crate::kinds::placement::planners;
use crate::shell::exit::{Failure, Verdict};
use crate::shell::output::{Output, print_note};
use crate::shell::target::scratch_folder;
use crate::verbs::view;
use explained::{Chosen, Explained, choose_part};
use failure::Failed;
use largest::Largest;
use planning::Planning;

pub(crate) fn run(args: &ExplainArgs, output: Output) -> Verdict {
    planners::find(&args.planner)?;
    #[cfg(feature = "reports")]
    let page = page::PageTarget::open_page(args)?;
    let scratch = scratch_folder()?;
    let source = Source::resolve_argument(&args.file, &args.reading, scratch.path())?;
    let mut imported = inputs::open_parts(&source)?;
    let dropped = std::mem::take(&mut imported.dropped);
    dropped.iter().for_each(|dropped| print_note(&dropped.to_string()));
    let Chosen { part, why, others } = choose_part(imported, &source.name, &source.read_options()?)?;
    part.trace.notices.iter().for_each(|notice| print_note(notice));
    inputs::refuse_several_arenas(&source.name, &part.trace, "`explain`")?;
    let framework = part.framework.unwrap_or_default();
    let batch = batch_and_capacity(args, &framework)?;
    let planning = Planning { args, name: &source.name, scratch: scratch.path() };
    let best = planning.plan_best(&part.trace.instance, None)?;
    let failures = Failed::all_failures(&part.trace, &framework, &planning)?;
    let find_largest = |question| Largest::find_batch(&part.trace, &framework, &planning, question);
    let largest = batch.map(find_largest).transpose()?;
    let (peak_step, peak) = waste::peak_buffers(&part.trace);
    let explained = Explained {
        file: &source.name,
        part: &part.name,
        why,
        others,
        waste: Waste::from_framework(&part.trace, &framework),
        trace: &part.trace,
        framework: &framework,
        dropped: &dropped,
        best: &best.row,
        peak_step,
        peak,
        failures,
        largest,
    };
    let text = shown::explained_text(&explained, args.top);
    output.print_either(&object::explained_object(&explained), text.as_str())?;
    #[cfg(feature = "reports")]
    page.write_page(&explained, best.plan.clone(), &text)?;
    Ok(view::exit_of_plan(&best.row, best.height.is_some()))
}

/// The batch that was recorded and the memory that a larger one may take.
fn batch_and_capacity(
    args: &ExplainArgs,
    framework: &Framework,
) -> Result<Option<(NonZeroU64, u64)>, Failure> {
    let capacity = args.capacity.or_else(|| failure::available_capacity(framework));
    match (args.batch, capacity) {
        (Some(batch), Some(capacity)) => Ok(Some((batch, capacity))),
        (Some(_), None) => Err(Failure::from_usage(
            "--batch needs --capacity: the file does not say how much memory there is",
        )),
        (None, _) if args.capacity.is_some() && framework.failures.is_empty() => Err(Failure::from_usage(
            "--capacity has no use here: memory did not run out, and there is no --batch",
        )),
        (None, _) => Ok(None),
    }
}
