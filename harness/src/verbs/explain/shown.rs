//! An explanation for people and for programs.

use planlab_dsa::BufferId;
use planlab_results::format;
use planlab_workloads::waste::Cause;
use serde_json::{Value, json};

use super::failure::{Answer, Failed};
use super::{Explained, view};
use crate::shell::JSON_VERSION;
use crate::shell::quantity::percent;
use crate::verbs::convert::dropped_object;

/// Categories in the text.
const CATEGORIES: usize = 4;

pub(super) fn object(explained: &Explained<'_>) -> Value {
    let Explained { trace, framework, best, .. } = *explained;
    let height = best.height;
    let difference = explained.waste.as_ref().zip(height).map(|(waste, height)| {
        let part = |(cause, bytes): (Cause, i128)| json!({ "cause": cause.key(), "bytes": number(bytes) });
        json!({
            "step": waste.step,
            "reserved": waste.reserved,
            "live": waste.live,
            "bytes": number(i128::from(waste.reserved) - i128::from(height)),
            "parts": waste.parts(height).map(part),
        })
    });
    let reserved = explained.waste.as_ref().map(|waste| waste.reserved);
    json!({
        "version": JSON_VERSION,
        "file": explained.file,
        "part": explained.part,
        "framework": (!framework.name.is_empty()).then_some(framework.name),
        "buffers": trace.instance.len(),
        "reserved": reserved,
        "allocated": framework.allocated_peak,
        "requested": explained.requested(),
        "load": trace.instance.load().bytes,
        "plan": view::object(best),
        "difference": difference,
        "peak": {
            "step": explained.peak_step,
            "buffers": explained.peak.iter().map(|id| buffer(explained, *id)).collect::<Vec<Value>>(),
            "categories": categories(explained)
                .into_iter()
                .map(|(name, count, bytes)| json!({ "category": name, "buffers": count, "bytes": bytes }))
                .collect::<Vec<Value>>(),
        },
        "failure": explained.failed.as_ref().map(failure),
        "dropped": explained.dropped.iter().map(dropped_object).collect::<Vec<Value>>(),
    })
}

/// JSON has no numbers of 128 bits, and no difference of two of 64 needs them where memory is real.
fn number(bytes: i128) -> Value {
    i64::try_from(bytes).map_or(Value::Null, Value::from)
}

fn buffer(explained: &Explained<'_>, id: BufferId) -> Value {
    let label = &explained.trace.labels.buffers[id.index()];
    let buffer = explained.trace.instance.buffer(id);
    let live = (u64::from(buffer.live.start().get()), u64::from(buffer.live.end().get()));
    let (start, end) = label.original_steps.unwrap_or(live);
    json!({
        "name": label.name,
        "size": buffer.size,
        "requested": explained.asked(id),
        "start": start,
        "end": end,
        "stream": explained.framework.streams.get(id.index()),
        "category": label.category,
        "op": label.op,
        "stack": explained.framework.stack(id.index()).collect::<Vec<&str>>(),
    })
}

fn failure(failed: &Failed) -> Value {
    let (answer, bytes) = match failed.answer {
        Answer::Fits { height } => ("fits", Some(height)),
        Answer::TooMuch { needed } => ("too-much", Some(needed)),
        Answer::Unknown => ("unknown", None),
    };
    json!({
        "step": failed.event.step,
        "times": failed.times,
        "requested": failed.event.size,
        "device_free": failed.event.device_free,
        "reserved": failed.reserved,
        "live": failed.live,
        "capacity": failed.capacity,
        "plan": answer,
        "plan_bytes": bytes,
        "stack": failed.event.stack,
    })
}

/// About twenty lines.
pub(super) fn text(explained: &Explained<'_>, top: usize) -> String {
    let mut lines = vec![title(explained), String::new()];
    lines.extend(figures(explained));
    lines.push(String::new());
    lines.extend(difference(explained));
    lines.extend(peak(explained, top));
    if let Some(failed) = &explained.failed {
        lines.push(String::new());
        lines.extend(out_of_memory(failed));
    }
    lines.iter().map(|line| format!("{}\n", line.trim_end())).collect()
}

fn title(explained: &Explained<'_>) -> String {
    let part = match explained.part {
        "all" => String::new(),
        part => format!(", {part}"),
    };
    format!("{}{part}: {} buffers", explained.file, explained.trace.instance.len())
}

/// Bytes with a unit and to the byte: `11.1 MiB (11143168)`.
fn size(bytes: i128) -> String {
    let sign = if bytes < 0 { "-" } else { "" };
    match u64::try_from(bytes.unsigned_abs()) {
        Ok(small @ ..1024) => format!("{sign}{small} B"),
        Ok(large) => format!("{sign}{} ({bytes})", format::bytes(large)),
        Err(_) => bytes.to_string(),
    }
}

fn row(name: &str, bytes: impl Into<i128>, remark: &str) -> String {
    format!("{name:<11}  {:<24}  {remark}", size(bytes.into()))
}

fn figures(explained: &Explained<'_>) -> Vec<String> {
    let mut lines = Vec::new();
    let framework = match explained.framework.name {
        "" => "the framework",
        name => name,
    };
    match &explained.waste {
        Some(waste) => lines.push(row("reserved", waste.reserved, &format!("at most, by {framework}"))),
        None => lines.push("reserved     not said by the file".to_owned()),
    }
    if let Some(allocated) = explained.framework.allocated_peak {
        lines.push(row("allocated", allocated.get(), &format!("at most, as {framework} counts it")));
    }
    lines.push(row("requested", explained.requested(), "at most at once, in bytes that were asked for"));
    let load = explained.trace.instance.load().bytes.get();
    lines.push(row("load", load, "at most at once; no plan is lower"));
    lines.push(match explained.best.height {
        Some(height) => row("best plan", height, &proof(explained)),
        None => format!("best plan    none found: {}", explained.best.reason),
    });
    lines
}

/// How good the plan is known to be.
fn proof(explained: &Explained<'_>) -> String {
    let best = explained.best;
    let time = best.median_ns().map_or_else(String::new, |ns| format!(", {}", format::seconds(ns)));
    let planner = &best.planner;
    if best.height == Some(best.bound) {
        return format!("optimal, proved by {} ({planner}{time})", best.bound_evidence);
    }
    format!(
        "at most {} above the optimum: {} bytes are proved by {} ({planner}{time})",
        percent(best.gap()),
        best.bound,
        best.bound_evidence
    )
}

fn difference(explained: &Explained<'_>) -> Vec<String> {
    let (Some(waste), Some(height)) = (&explained.waste, explained.best.height) else { return Vec::new() };
    let all = i128::from(waste.reserved) - i128::from(height);
    let mut lines =
        vec![format!("reserved less the best plan is {}; at step {} it is", size(all), waste.step)];
    let parts = waste.parts(height);
    let said = parts.iter().filter(|(_, bytes)| *bytes != 0);
    lines.extend(said.map(|&(cause, bytes)| format!("  {:<24}  {}", size(bytes), reason(cause))));
    lines.push(String::new());
    lines
}

fn reason(cause: Cause) -> &'static str {
    match cause {
        Cause::Rounding => "rounding: buffers take whole blocks (in PyTorch of 512 bytes)",
        Cause::PartlyUsed => "free space between the buffers of segments that are partly used",
        Cause::OtherStreams => "free space in segments of other streams, which this stream may not use",
        Cause::Cached => "cache: segments that hold no buffer",
        Cause::Unknown => "free or cached; the file does not say which segments there were",
        Cause::Order => "order: what is in use at this step, less the height of the plan",
    }
}

fn peak(explained: &Explained<'_>, top: usize) -> Vec<String> {
    let count = explained.peak.len();
    let shown = count.min(top);
    let mut lines =
        vec![format!("the peak, step {}: {count} buffers, the largest {shown}", explained.peak_step)];
    lines.extend(explained.peak.iter().take(top).map(|id| line(explained, *id)));
    let categories = categories(explained);
    if categories.iter().any(|(name, ..)| name.is_some()) {
        let one = |(name, _, bytes): &(Option<&str>, usize, u64)| {
            format!("{} {}", name.unwrap_or("none"), size(i128::from(*bytes)))
        };
        let most: Vec<String> = categories.iter().take(CATEGORIES).map(one).collect();
        let rest = if categories.len() > CATEGORIES { ", ..." } else { "" };
        lines.push(format!("  by category: {}{rest}", most.join(", ")));
    }
    lines
}

/// A buffer with where it comes from.
fn line(explained: &Explained<'_>, id: BufferId) -> String {
    let label = &explained.trace.labels.buffers[id.index()];
    let bytes = explained.trace.instance.buffer(id).size.get();
    let op = label.op.as_deref().unwrap_or("");
    let innermost = explained.framework.stack(id.index()).next().filter(|&frame| frame != op);
    let inside = innermost.map_or_else(String::new, |frame| format!(" (in {frame})"));
    let category = label.category.as_ref().map_or_else(String::new, |category| format!(" [{category}]"));
    format!("  {:<24}  {}{category}  {op}{inside}", size(i128::from(bytes)), label.name)
}

/// The categories of the peak with their buffers and bytes, largest first.
fn categories<'e>(explained: &Explained<'e>) -> Vec<(Option<&'e str>, usize, u64)> {
    let mut all: std::collections::BTreeMap<Option<&str>, (usize, u64)> = std::collections::BTreeMap::new();
    for &id in &explained.peak {
        let category = explained.trace.labels.buffers[id.index()].category.as_deref();
        let (count, bytes) = all.entry(category).or_default();
        *count += 1;
        *bytes = bytes.saturating_add(explained.trace.instance.buffer(id).size.get());
    }
    let mut all: Vec<_> = all.into_iter().map(|(name, (count, bytes))| (name, count, bytes)).collect();
    all.sort_by_key(|&(_, _, bytes)| std::cmp::Reverse(bytes));
    all
}

fn out_of_memory(failed: &Failed) -> Vec<String> {
    let often = match failed.times {
        1 => String::new(),
        times => format!(", the last of {times} times"),
    };
    let frame = failed.event.stack.first().map_or_else(String::new, |frame| format!(" by {frame}"));
    let asked = size(i128::from(failed.event.size));
    let mut lines =
        vec![format!("out of memory at step {}{often}: {asked} were asked for{frame}", failed.event.step)];
    let (reserved, live) = (size(i128::from(failed.reserved)), size(i128::from(failed.live)));
    let left = match failed.event.device_free {
        Some(free) => format!("; the device had {} left", size(i128::from(free))),
        None => String::new(),
    };
    lines.push(format!("  {reserved} were reserved, {live} of them in use{left}"));
    let capacity = failed.capacity.map_or_else(String::new, |capacity| size(i128::from(capacity)));
    lines.push(match failed.answer {
        Answer::Fits { height } => format!(
            "  a plan would have fit: {} with the request, of {capacity} that could be had",
            size(i128::from(height))
        ),
        Answer::TooMuch { needed } => format!(
            "  no plan would have fit: {} are needed at least, of {capacity} that could be had",
            size(i128::from(needed))
        ),
        Answer::Unknown if failed.capacity.is_none() => {
            "  whether a plan would have fit is not known: the file does not say what the device had left"
                .to_owned()
        }
        Answer::Unknown => {
            format!("  whether a plan fits {capacity} was not settled in time; --time-limit gives it more")
        }
    });
    lines
}
