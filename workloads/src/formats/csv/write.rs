//! Writes traces and plans.

use std::fmt::Write;

use planlab_dsa::{Alignment, Arena, Buffer, BufferId, Instance, Label, Pause, Plan};
use rustc_hash::FxHashMap;

use super::columns::{Columns, is_plain, put, quote};
use crate::formats::trace::directive::{ALIGNMENT_KEY, RANK_KEY, UNIT_KEY};
use crate::formats::trace::draft::PLAN_MARK;
use crate::formats::trace::ids::escape;
use crate::formats::{ExportError, Trace};

/// Writes planlab's trace CSV, buffers shape; optional columns appear only if they are used. Reading it gives the same
/// instance, and the same labels except for line numbers.
#[must_use]
pub fn write_trace(trace: &Trace) -> Vec<u8> {
    write(trace, None)
}

/// Writes the plan as CSV: the trace's columns, `offset`, and `overwrites` (the id of the buffer whose place it takes).
///
/// # Panics
///
/// If the plan does not have one offset per buffer.
#[must_use]
pub fn write_plan(trace: &Trace, plan: &Plan) -> Vec<u8> {
    assert_eq!(plan.offsets.len(), trace.instance.len(), "one offset for each buffer");
    write(trace, Some(plan))
}

/// Writes `MiniMalloc`'s CSV for its command-line tool: no comments, no quotes, sizes as planned (rounded), and columns
/// beyond `id,lower,upper,size` only if they are used. In-place permissions are left out: a plan without them is still
/// valid.
///
/// # Errors
///
/// [`ExportError`] for features that the format lacks: several arenas, capacities, keep-apart pairs, pins on some
/// buffers only, numbers past 2^63 - 1.
pub fn write_minimalloc(trace: &Trace) -> Result<Vec<u8>, ExportError> {
    let instance = &trace.instance;
    let pins = instance.buffers().iter().filter(|buffer| buffer.pin.is_some()).count();
    let too_large = |buffer: &Buffer| {
        [buffer.size.get(), buffer.align.get(), buffer.pin.map_or(0, |pin| pin.get())]
            .iter()
            .any(|&number| i64::try_from(number).is_err())
    };
    let others = [
        (pins != 0 && pins != instance.len(), "that some buffers are pinned and others are not"),
        (instance.buffers().iter().any(too_large), "a number past 2^63 - 1"),
    ];
    check_features("MiniMalloc CSV", instance, &others)?;
    Ok(write_minimalloc_rows(trace, pins != 0))
}

/// Writes idealloc's CSV, with both ends of a live range open: `id,lower,upper,size`. Rows are numbered, and steps are
/// doubled, as its algorithm needs a whole step strictly inside each live range. In-place permissions and pauses are
/// left out: a plan without them is still valid.
///
/// # Errors
///
/// [`ExportError`] for features that the format lacks: alignments, pins, several arenas, capacities, keep-apart pairs,
/// more than 2^31 - 2 buffers.
pub fn write_idealloc(trace: &Trace) -> Result<Vec<u8>, ExportError> {
    let instance = &trace.instance;
    let any = |is_so: fn(&Buffer) -> bool| instance.buffers().iter().any(is_so);
    let others = [
        (any(|buffer| buffer.pin.is_some()), "that a buffer is pinned"),
        (any(|buffer| buffer.align != Alignment::ONE), "an alignment"),
        (instance.len() > (1 << 31) - 2, "more than 2147483646 buffers"),
    ];
    check_features("idealloc CSV", instance, &others)?;
    let buffers = instance.buffers();
    let mut columns = Columns::default();
    columns.numbers(true, "id", |row| Some(row as u64));
    columns.numbers(true, "lower", |row| Some(2 * u64::from(buffers[row].live.start().get())));
    columns.numbers(true, "upper", |row| Some(2 * u64::from(buffers[row].live.end().get())));
    columns.numbers(true, "size", |row| Some(buffers[row].size.get()));
    let mut out = String::with_capacity(32 * buffers.len() + 32);
    columns.write(buffers.len(), &mut out);
    Ok(out.into_bytes())
}

/// Refuses an instance for the first feature that it has and the format lacks.
fn check_features(
    format: &'static str,
    instance: &Instance,
    others: &[(bool, &str)],
) -> Result<(), ExportError> {
    let arenas = instance.arenas();
    let has_arenas = arenas.len() > 1 || arenas.iter().any(|arena| arena.capacity.is_some());
    let common = [
        (has_arenas, "which arena a buffer lies in, or what an arena holds"),
        (!instance.keep_apart_pairs().is_empty(), "that two buffers must be kept apart"),
    ];
    let lack = common.iter().chain(others).find(|(has, _)| *has);
    lack.map_or(Ok(()), |&(_, what)| Err(ExportError::new(format, what)))
}

fn write_minimalloc_rows(trace: &Trace, has_pins: bool) -> Vec<u8> {
    let (buffers, labels) = (trace.instance.buffers(), &trace.labels.buffers);
    let has_plain_ids = labels.iter().all(|label| is_plain(&label.name));
    let mut columns = Columns::default();
    columns.cells(true, "id", |out, row| match has_plain_ids {
        true => out.push_str(&labels[row].name),
        false => put(out, row as u64),
    });
    columns.numbers(true, "lower", |row| Some(buffers[row].live.start().get().into()));
    columns.numbers(true, "upper", |row| Some(buffers[row].live.end().get().into()));
    columns.numbers(true, "size", |row| Some(buffers[row].size.get()));
    let is_aligned = buffers.iter().any(|buffer| buffer.align != Alignment::ONE);
    columns.numbers(is_aligned, "alignment", |row| Some(buffers[row].align.get()));
    let has_gaps = buffers.iter().any(|buffer| !buffer.pauses.is_empty());
    columns.cells(has_gaps, "gaps", |out, row| write_pauses(out, &buffers[row], u64::from));
    let has_hints = labels.iter().any(|label| label.hint.is_some());
    columns.cells(has_hints, "hint", |out, row| match labels[row].hint {
        Some(hint) => put(out, hint),
        None => out.push_str("-1"),
    });
    columns.numbers(has_pins, "offset", |row| Some(buffers[row].pin.unwrap_or_default().get()));
    let mut out = String::with_capacity(32 * buffers.len() + 64);
    columns.write(buffers.len(), &mut out);
    out.into_bytes()
}

fn write(trace: &Trace, plan: Option<&Plan>) -> Vec<u8> {
    let (instance, labels) = (&trace.instance, &trace.labels.buffers);
    let (buffers, arenas) = (instance.buffers(), instance.arenas());
    // The default alignment, if the file can contain requested sizes instead of rounded ones.
    let rounds_to = size_rounding(trace);
    // Ranked steps are written as the file's own, if all of them are known.
    let steps = original_steps(trace);
    let step = |step: u32| steps.as_ref().map_or(u64::from(step), |steps| steps[&step]);
    let name = |id: BufferId| labels[id.index()].name.as_str();
    let mut out = String::with_capacity(48 * buffers.len() + 256);
    if plan.is_some() {
        let (key, value) = PLAN_MARK;
        out += &format!("# {key}: {value}\n");
    }
    metadata(&mut out, trace, rounds_to.is_some(), steps.is_some());
    let mut may_overwrite: Vec<_> =
        instance.in_place().iter().map(|pair| (pair.output, pair.input)).collect();
    may_overwrite.sort_unstable();
    // A stable sort keeps the order of the pairs of one buffer.
    let mut apart: Vec<_> =
        instance.keep_apart_pairs().iter().map(|pair| (pair.first, pair.second)).collect();
    apart.sort_by_key(|&(first, _)| first);
    let taken: FxHashMap<BufferId, BufferId> =
        plan.iter().flat_map(|plan| &plan.in_place).map(|pair| (pair.output, pair.input)).collect();

    let mut columns = Columns::default();
    columns.texts(true, "id", |row| Some(&labels[row].name));
    columns.numbers(true, "lower", |row| Some(step(buffers[row].live.start().get())));
    columns.numbers(true, "upper", |row| Some(step(buffers[row].live.end().get())));
    columns.numbers(true, "size", |row| {
        let requested = rounds_to.and(labels[row].requested);
        Some(requested.unwrap_or(buffers[row].size).get())
    });
    let default = rounds_to.unwrap_or_default();
    let is_aligned = buffers.iter().any(|buffer| buffer.align != default);
    columns.numbers(is_aligned, "alignment", |row| Some(buffers[row].align.get()));
    let is_pinned = buffers.iter().any(|buffer| buffer.pin.is_some());
    match plan {
        Some(plan) => columns.numbers(true, "offset", |row| Some(plan.offsets[row].get())),
        None => columns.numbers(is_pinned, "offset", |row| buffers[row].pin.map(|pin| pin.get())),
    }
    columns.numbers(labels.iter().any(|label| label.hint.is_some()), "hint", |row| labels[row].hint);
    let has_gaps = buffers.iter().any(|buffer| !buffer.pauses.is_empty());
    columns.cells(has_gaps, "gaps", |out, row| write_pauses(out, &buffers[row], step));
    let has_arenas = *arenas != [Arena::default()];
    columns.texts(has_arenas, "arena", |row| Some(&arenas[buffers[row].arena.index()].name));
    for (column, pairs) in [("may_overwrite", &may_overwrite), ("apart", &apart)] {
        columns.cells(!pairs.is_empty(), column, move |out, row| {
            let named = partners(pairs, BufferId::from_index(row)).map(|id| escape(name(id)));
            quote(out, &named.collect::<Vec<_>>().join(" "));
        });
    }
    let has_categories = labels.iter().any(|label| label.category.is_some());
    columns.texts(has_categories, "category", |row| labels[row].category.as_deref());
    columns.texts(labels.iter().any(|label| label.op.is_some()), "op", |row| labels[row].op.as_deref());
    columns
        .texts(plan.is_some(), "overwrites", |row| taken.get(&BufferId::from_index(row)).map(|&id| name(id)));
    columns.write(buffers.len(), &mut out);
    out.into_bytes()
}

/// Writes the lines above the header. Sizes may be written as requested, and steps as the file had them.
fn metadata(out: &mut String, trace: &Trace, has_requested: bool, has_steps: bool) {
    let is_ranked = trace.labels.buffers.iter().any(|label| label.original_steps.is_some());
    for (key, value) in &trace.labels.metadata {
        let is_kept = match key.as_str() {
            ALIGNMENT_KEY => has_requested,
            RANK_KEY => has_steps,
            // Ranks are not times.
            UNIT_KEY => has_steps || !is_ranked,
            _ => true,
        };
        if is_kept {
            let flat = |text: &str| text.replace('\n', " ");
            *out += &format!("# {}: {}\n", flat(key), flat(value));
        }
    }
    let arenas = trace.instance.arenas();
    for arena in arenas.iter().filter(|_| *arenas != [Arena::default()]) {
        let name = arena.name.replace('\n', " ");
        let capacity = arena.capacity.map_or("unlimited".to_owned(), |capacity| capacity.to_string());
        *out += &format!("# arena {name}: {capacity}\n");
    }
}

/// The second buffers of the pairs, which are sorted, whose first is this one.
fn partners(pairs: &[(BufferId, BufferId)], of: BufferId) -> impl Iterator<Item = BufferId> {
    let first = pairs.partition_point(|&(other, _)| other < of);
    pairs[first..].iter().take_while(move |&&(other, _)| other == of).map(|&(_, partner)| partner)
}

/// The alignment in the metadata, if rounding the requested sizes to it gives the sizes.
fn size_rounding(trace: &Trace) -> Option<Alignment> {
    let align = Alignment::new(trace.labels.meta_value(ALIGNMENT_KEY)?.parse().ok()?)?;
    let mut all = trace.instance.buffers().iter().zip(&trace.labels.buffers);
    let rounds = |(buffer, label): (&Buffer, &Label)| {
        align.round_up(label.requested.unwrap_or(buffer.size).get()) == Some(buffer.size.get())
    };
    all.all(rounds).then_some(align)
}

/// Maps ranked steps to original ones, if the labels give each step in use exactly one value.
fn original_steps(trace: &Trace) -> Option<FxHashMap<u32, u64>> {
    let mut steps = FxHashMap::default();
    for (buffer, label) in trace.instance.buffers().iter().zip(&trace.labels.buffers) {
        let (lower, upper) = label.original_steps?;
        for (ranked, original) in [(buffer.live.start(), lower), (buffer.live.end(), upper)] {
            if *steps.entry(ranked.get()).or_insert(original) != original {
                return None;
            }
        }
    }
    let pauses = trace.instance.buffers().iter().flat_map(|buffer| &buffer.pauses);
    let known = |pause: &Pause| {
        steps.contains_key(&pause.steps.start().get()) && steps.contains_key(&pause.steps.end().get())
    };
    pauses.into_iter().all(known).then_some(steps).filter(|steps| !steps.is_empty())
}

fn write_pauses(out: &mut String, buffer: &Buffer, step: impl Fn(u32) -> u64) {
    for (index, pause) in buffer.pauses.iter().enumerate() {
        let between = if index == 0 { "" } else { " " };
        let (start, end) = (step(pause.steps.start().get()), step(pause.steps.end().get()));
        write!(out, "{between}{start}-{end}").expect("a string takes everything");
        if let Some(window) = &pause.window {
            write!(out, "@{}:{}", window.start, window.end).expect("a string takes everything");
        }
    }
}
