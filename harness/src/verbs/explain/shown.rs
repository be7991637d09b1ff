//! An explanation for people: about twenty lines, the answer first.

use planlab_dsa::BufferId;
use planlab_results::format;
use planlab_workloads::waste::Cause;

use super::explained::Explained;
use super::failure::{CapacityAnswer, Failed};
use super::largest::Largest;
use crate::shell::quantity::{format_memory as size_text, format_percent};
use crate::verbs::fit::Fit;
use crate::verbs::view;

/// Categories in the text.
const CATEGORIES: usize = 4;
/// Other traces of the file in the text.
const OTHERS: usize = 4;

pub(super) fn explained_text(explained: &Explained<'_>, top: usize) -> String {
    let mut lines = vec![title_line(explained)];
    lines.extend(other_parts(explained));
    lines.push(String::new());
    if let Some((first, more)) = explained.failures.split_first() {
        lines.extend(out_of_memory(explained, first));
        lines.extend(further_failures(explained, more));
        lines.push(String::new());
    }
    if let Some(largest) = &explained.largest {
        lines.extend(batch_lines(largest));
        lines.push(String::new());
    }
    lines.extend(figure_lines(explained));
    lines.push(String::new());
    lines.extend(difference_lines(explained));
    lines.extend(peak_lines(explained, top));
    lines.iter().map(|line| format!("{}\n", line.trim_end())).collect()
}

fn title_line(explained: &Explained<'_>) -> String {
    let part = match explained.part {
        "all" => String::new(),
        part => format!(", {part}"),
    };
    let aligned = match (explained.common_alignment(), explained.framework.name) {
        (Some(bytes), "PyTorch") => format!(", at multiples of {bytes} bytes as in PyTorch"),
        (Some(bytes), _) => format!(", at multiples of {bytes} bytes"),
        (None, _) => String::new(),
    };
    format!("{}{part}: {} buffers{aligned}", explained.file, explained.trace.instance.len())
}

/// Why this trace, if the file has several.
fn other_parts(explained: &Explained<'_>) -> Option<String> {
    let why = explained.why?;
    let one = |other: &super::explained::Summary| match other.reserved {
        Some(reserved) => format!("{} (reserved {})", other.name, size_text(reserved)),
        None => format!("{} (load {})", other.name, size_text(other.load)),
    };
    let mut names: Vec<String> = explained.others.iter().take(OTHERS).map(one).collect();
    if explained.others.len() > OTHERS {
        names.push(format!("{} more", explained.others.len() - OTHERS));
    }
    Some(format!("chosen because {why}; --part explains another: {}", names.join(", ")))
}

fn row_text(name: &str, bytes: u64, remark: &str) -> String {
    format!("{name:<11}  {:<24}  {remark}", size_text(bytes))
}

fn framework_name<'e>(explained: &Explained<'e>) -> &'e str {
    match explained.framework.name {
        "" => "the framework",
        name => name,
    }
}

/// Instead of what a framework reserved: a pool that can be played on the file.
const NOT_SAID: &str =
    "reserved     not in the file; `planlab simulate FILE --allocator pytorch-caching` plays a pool on it";

fn figure_lines(explained: &Explained<'_>) -> Vec<String> {
    let mut lines = Vec::new();
    let name = framework_name(explained);
    match &explained.waste {
        Some(waste) => lines.push(row_text("reserved", waste.reserved, &format!("at most, by {name}"))),
        None => lines.push(NOT_SAID.to_owned()),
    }
    lines.extend(own_counts(explained));
    let instance = &explained.trace.instance;
    let load = instance.load().bytes.get();
    let requested = explained.requested_peak();
    if requested != load {
        lines.push(row_text("requested", requested, "at most at once, in bytes that were asked for"));
    }
    lines.push(row_text("load", load, "at most at once; no plan is lower"));
    if !instance.in_place().is_empty() {
        let permissions = view::permission_words(instance.in_place().len());
        let without = instance.load_without_in_place().bytes.get();
        let remark = format!("the load if no output overwrites an input ({permissions}; --in-place no)");
        lines.push(row_text("without", without, &remark));
    }
    lines.push(match explained.best.height {
        Some(height) => row_text("best plan", height, &proof_text(explained)),
        None => format!("best plan    none found: {}", explained.best.reason),
    });
    lines
}

/// What the framework counted itself, against the trace.
fn own_counts(explained: &Explained<'_>) -> Vec<String> {
    let (name, framework) = (framework_name(explained), explained.framework);
    let wrong: Vec<_> = framework.counts.iter().filter(|count| count.theirs != count.ours).collect();
    let agree = if wrong.is_empty() && !framework.counts.is_empty() {
        format!("; {name}'s own counts agree, to the byte")
    } else {
        String::new()
    };
    let mut lines = Vec::new();
    if let Some(allocated) = framework.allocated_peak.map(|bytes| bytes.get()) {
        let load = explained.trace.instance.load().bytes.get();
        let is_in_blocks = !framework.taken.is_empty();
        let remark = match allocated.checked_sub(load) {
            Some(0) if is_in_blocks => format!("at most in blocks, just the load{agree}"),
            Some(0) => format!("at most, as {name} counts it: the load, to the byte"),
            Some(more) if is_in_blocks => {
                format!("at most in blocks, {} more than the load{agree}", size_text(more))
            }
            Some(more) => {
                format!("at most, as {name} counts it; {} of it are not in the recording", size_text(more))
            }
            None => {
                format!("at most, as {name} counts it: {} less than the load", size_text(load - allocated))
            }
        };
        lines.push(row_text("allocated", allocated, &remark));
    }
    lines.extend(wrong.iter().map(|count| {
        let apart = size_text(count.theirs.abs_diff(count.ours));
        let (what, theirs) = (count.what, size_text(count.theirs));
        format!("             {what}: {theirs} by {name}, {apart} off the recording, which has holes")
    }));
    lines
}

/// How good the plan is known to be.
fn proof_text(explained: &Explained<'_>) -> String {
    let best = explained.best;
    let time = best.median_ns().map_or_else(String::new, |ns| format!(", {}", format::format_seconds(ns)));
    let planner = &best.planner;
    let overwriting = match best.hand_overs {
        0 => String::new(),
        outputs => format!(", {outputs} outputs overwrite inputs"),
    };
    if best.height == Some(best.bound) {
        return format!("optimal{overwriting}, proved by {} ({planner}{time})", best.bound_evidence);
    }
    format!(
        "at most {} above the optimum{overwriting}: {} bytes are proved by {} ({planner}{time})",
        format_percent(best.gap()),
        best.bound,
        best.bound_evidence
    )
}

fn difference_lines(explained: &Explained<'_>) -> Vec<String> {
    let (Some(waste), Some(height)) = (&explained.waste, explained.best.height) else { return Vec::new() };
    let name = framework_name(explained);
    let mut lines = match (waste.reserved.checked_sub(height), height.saturating_sub(waste.reserved)) {
        (Some(0), _) => vec![format!("{name} reserved just what the best plan needs")],
        (None, above) => {
            vec![format!("the best plan is {} higher than what {name} reserved", size_text(above))]
        }
        (Some(more), _) => {
            let step = waste.step;
            vec![format!(
                "{} are reserved that the best plan does not need; at step {step} they are",
                size_text(more)
            )]
        }
    };
    let parts = waste.parts_at(height);
    let said = parts.iter().filter_map(|&(cause, bytes)| Some((cause, u64::try_from(bytes).ok()?)));
    let has_segments = !explained.framework.segments.is_empty();
    lines.extend(
        said.filter(|(_, bytes)| *bytes > 0).map(|(cause, bytes)| {
            format!("  {:<24}  {}", size_text(bytes), cause_reason(cause, has_segments))
        }),
    );
    let elsewhere = waste.needed_elsewhere(height);
    if elsewhere > 0 && waste.reserved > height {
        lines.push(format!(
            "  besides, {} are free that the plan needs at another step",
            size_text(elsewhere)
        ));
    }
    if waste.outside > 0 {
        let outside = size_text(waste.outside);
        lines.push(format!("  {outside} in use lie in no segment of the recording, which has holes"));
    }
    lines.push(String::new());
    lines
}

const fn cause_reason(cause: Cause, has_segments: bool) -> &'static str {
    match cause {
        Cause::Rounding => "rounding of requests to whole blocks, beyond what the plan rounds",
        Cause::Unsplit => "rests of blocks that were given out whole, as they were too small to split off",
        Cause::PartlyUsed if has_segments => "free space in segments that are partly used",
        Cause::PartlyUsed => "free space between the buffers",
        Cause::OtherStreams => "free space in segments of other streams or pools, which may not be used",
        Cause::Cached => "cache: segments that hold no buffer",
        Cause::CachedElsewhere => "cache of other streams or pools, which may not be used",
        Cause::Unknown => {
            "free or cached: the file says neither where buffers lie nor which segments there were"
        }
        Cause::InPlace => "buffers that the plan lets outputs overwrite",
        Cause::PlanAbove => "the plan is higher",
    }
}

fn peak_lines(explained: &Explained<'_>, top: usize) -> Vec<String> {
    let count = explained.peak.len();
    let shown = match count.min(top) {
        0 => String::new(),
        shown if shown == count => ", all of them".to_owned(),
        shown => format!(", the largest {shown}"),
    };
    let mut lines =
        vec![format!("the peak of the load, step {}: {count} buffers{shown}", explained.peak_step)];
    lines.extend(explained.peak.iter().take(top).map(|id| buffer_line(explained, *id)));
    let categories = explained.peak_by_category();
    if categories.iter().any(|(name, ..)| name.is_some()) {
        let one = |(name, _, bytes): &(Option<&str>, usize, u64)| {
            format!("{} {}", name.unwrap_or("none"), size_text(*bytes))
        };
        let most: Vec<String> = categories.iter().take(CATEGORIES).map(one).collect();
        let rest = if categories.len() > CATEGORIES { ", ..." } else { "" };
        lines.push(format!("  by category: {}{rest}", most.join(", ")));
    }
    lines
}

/// A buffer with where it comes from.
fn buffer_line(explained: &Explained<'_>, id: BufferId) -> String {
    let label = &explained.trace.labels.buffers[id.index()];
    let bytes = explained.trace.instance.buffer(id).size.get();
    let op = label.op.as_deref().unwrap_or("");
    let innermost = explained.framework.call_stack(id.index()).next().filter(|&frame| frame != op);
    let inside = innermost.map_or_else(String::new, |frame| format!(" (in {frame})"));
    let category = label.category.as_ref().map_or_else(String::new, |category| format!(" [{category}]"));
    format!("  {:<24}  {}{category}  {op}{inside}", size_text(bytes), label.name)
}

fn out_of_memory(explained: &Explained<'_>, failed: &Failed) -> Vec<String> {
    let frame = failed.event.stack.first().map_or_else(String::new, |frame| format!(" by {frame}"));
    let asked = size_text(failed.event.size);
    let (reserved, live) = (size_text(failed.reserved), size_text(failed.live));
    let left = match failed.event.device_free {
        Some(free) => format!("; the device had {} left", size_text(free)),
        None => String::new(),
    };
    vec![
        format!("out of memory at step {}: {asked} were asked for{frame}", failed.event.step),
        format!("  {reserved} were reserved, {live} of them in use{left}"),
        format!("  {}", failure_answer(explained, failed)),
    ]
}

fn failure_answer(explained: &Explained<'_>, failed: &Failed) -> String {
    let of = match (failed.capacity, explained.part.contains("/stream-")) {
        (Some(capacity), false) => format!("of {} that are available", size_text(capacity)),
        (Some(capacity), true) => format!("of {} that this stream had or could get", size_text(capacity)),
        (None, _) => String::new(),
    };
    match failed.answer {
        CapacityAnswer::Fits { height } => {
            format!("a plan would have fit: {} for all up to then and the request, {of}", size_text(height))
        }
        CapacityAnswer::TooMuch { needed } => {
            format!("no plan would have fit: {} are needed at least up to then, {of}", size_text(needed))
        }
        CapacityAnswer::Unknown if failed.capacity.is_none() => {
            "whether a plan would have fit is not known: the file does not say what the device had left; \
             --capacity does"
                .to_owned()
        }
        CapacityAnswer::Unknown if failed.is_limited => {
            "whether a plan would have fit is not known: the device had enough left, so a limit was set that the \
             file does not say; --capacity does"
                .to_owned()
        }
        CapacityAnswer::Unknown => {
            format!("whether a plan would have fit was not settled in time, {of}; --time-limit gives it more")
        }
    }
}

/// The other times that memory ran out.
fn further_failures(explained: &Explained<'_>, more: &[Failed]) -> Vec<String> {
    let answer = |failed: &Failed| match failed.answer {
        CapacityAnswer::Fits { .. } => "a plan would have fit",
        CapacityAnswer::TooMuch { .. } => "no plan would have fit",
        CapacityAnswer::Unknown => "whether a plan would have fit is not known",
    };
    let one = |failed: &Failed| {
        let (step, asked) = (failed.event.step, size_text(failed.event.size));
        format!("  again at step {step}: {asked} were asked for; {}", answer(failed))
    };
    let mut lines: Vec<String> = more.iter().map(one).collect();
    let rest = explained.framework.failures.len() - explained.failures.len();
    match rest {
        0 => {}
        1 => lines.push("  and once more, which was not looked at".to_owned()),
        _ => lines.push(format!("  and {rest} times more, which were not looked at")),
    }
    lines
}

fn batch_lines(largest: &Largest) -> Vec<String> {
    let (recorded, capacity) = (largest.recorded, size_text(largest.capacity));
    let mut lines = vec![format!("the largest batch in {capacity}, recorded at {recorded}:")];
    let next = match largest.refuted {
        Some((batch, needed)) => format!("; a batch of {batch} needs {} at least", size_text(needed)),
        None => "; larger ones were not tried".to_owned(),
    };
    lines.push(match largest.planned {
        Some((batch, height)) => format!("  {batch:<7}  with a plan of {}{next}", size_text(height)),
        None => format!("  none     has a plan that fits{next}"),
    });
    if let Some((key, fit)) = largest.pool {
        let batch = match fit {
            Fit::None => "none".to_owned(),
            Fit::Most(batch) | Fit::All(batch) => batch.to_string(),
            Fit::Unknown => "unknown".to_owned(),
        };
        lines.push(format!("  {batch:<7}  with a pool like PyTorch's (simulated: {key}, on one stream)"));
    }
    let (count, bytes) = (largest.kept.0, size_text(largest.kept.1));
    lines.push(format!(
        "  this assumes that all sizes grow with the batch, but for {count} buffers of the model and optimizer ({bytes})"
    ));
    lines
}
