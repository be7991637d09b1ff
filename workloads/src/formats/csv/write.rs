//! Writes traces and plans.

use std::fmt::Write;

use planlab_dsa::{Alignment, Arena, Buffer, BufferId, Instance, Plan};
use rustc_hash::FxHashMap;

use crate::formats::trace::directive::{ALIGNMENT_KEY, RANK_KEY, UNIT_KEY};
use crate::formats::trace::draft::PLAN_MARK;
use crate::formats::trace::ids::escape;
use crate::formats::{ExportError, Trace};

/// Writes planlab's trace CSV, buffers shape; optional columns appear only if they are used. Reading it gives the same
/// instance, and the same labels except for line numbers.
#[must_use]
pub fn write_trace(trace: &Trace) -> Vec<u8> {
    Writer::new(trace).write(None)
}

/// Writes the plan as CSV: the trace's columns, `offset`, and `overwrites` (the id of the buffer whose place it takes).
///
/// # Panics
///
/// If the plan does not have one offset per buffer.
#[must_use]
pub fn write_plan(trace: &Trace, plan: &Plan) -> Vec<u8> {
    assert_eq!(plan.offsets.len(), trace.instance.len(), "one offset for each buffer");
    Writer::new(trace).write(Some(plan))
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
    Ok(minimalloc(trace, pins != 0))
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
        (!instance.apart().is_empty(), "that two buffers must be kept apart"),
    ];
    let lack = common.iter().chain(others).find(|(has, _)| *has);
    lack.map_or(Ok(()), |&(_, what)| Err(ExportError::new(format, what)))
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
    let mut out = String::with_capacity(32 * instance.len() + 32);
    out.push_str("id,lower,upper,size\n");
    for (row, buffer) in instance.buffers().iter().enumerate() {
        number(&mut out, row as u64);
        let (lower, upper) = <(u32, u32)>::from(buffer.live);
        let doubled = [u64::from(lower) * 2, u64::from(upper) * 2, buffer.size.get()];
        doubled.into_iter().for_each(|value| cell(&mut out, value));
        out.push('\n');
    }
    Ok(out.into_bytes())
}

fn minimalloc(trace: &Trace, pins: bool) -> Vec<u8> {
    let (buffers, labels) = (trace.instance.buffers(), &trace.labels.buffers);
    let aligned = buffers.iter().any(|buffer| buffer.align != Alignment::ONE);
    let gaps = buffers.iter().any(|buffer| !buffer.pauses.is_empty());
    let hints = labels.iter().any(|label| label.hint.is_some());
    let plain_ids = labels.iter().all(|label| is_plain(&label.name));
    let mut out = String::with_capacity(32 * buffers.len() + 64);
    out.push_str("id,lower,upper,size");
    for (used, name) in [(aligned, ",alignment"), (gaps, ",gaps"), (hints, ",hint"), (pins, ",offset")] {
        out.push_str(if used { name } else { "" });
    }
    out.push('\n');
    for (row, (buffer, label)) in buffers.iter().zip(labels).enumerate() {
        if plain_ids {
            out.push_str(&label.name);
        } else {
            number(&mut out, row as u64);
        }
        let (lower, upper) = (u64::from(buffer.live.start().get()), u64::from(buffer.live.end().get()));
        [lower, upper, buffer.size.get()].into_iter().for_each(|value| cell(&mut out, value));
        if aligned {
            cell(&mut out, buffer.align.get());
        }
        if gaps {
            out.push(',');
            pauses(&mut out, buffer, u64::from);
        }
        if hints {
            match label.hint {
                Some(hint) => cell(&mut out, hint),
                None => out.push_str(",-1"),
            }
        }
        if pins {
            cell(&mut out, buffer.pin.unwrap_or_default().get());
        }
        out.push('\n');
    }
    out.into_bytes()
}

/// The parts of a trace that its file needs.
struct Writer<'t> {
    trace: &'t Trace,
    /// The default alignment, if the file can contain requested sizes instead of rounded ones.
    rounds_to: Option<Alignment>,
    /// Maps ranked steps to the file's own, if all of them are known.
    steps: Option<FxHashMap<u32, u64>>,
    /// Buffers that each buffer may overwrite, by output.
    may_overwrite: Vec<(BufferId, BufferId)>,
    apart: Vec<(BufferId, BufferId)>,
    alignment: bool,
    offset: bool,
    hint: bool,
    gaps: bool,
    arena: bool,
    category: bool,
    op: bool,
}

impl<'t> Writer<'t> {
    fn new(trace: &'t Trace) -> Self {
        let (instance, labels) = (&trace.instance, &trace.labels.buffers);
        let buffers = instance.buffers();
        let rounds_to = rounding(trace);
        let default = rounds_to.unwrap_or_default();
        let in_place = instance.in_place().iter().map(|pair| (pair.output, pair.input));
        let mut may_overwrite: Vec<_> = in_place.collect();
        may_overwrite.sort_unstable();
        // A stable sort keeps the order of the pairs of one buffer.
        let mut apart: Vec<_> = instance.apart().iter().map(|pair| (pair.first, pair.second)).collect();
        apart.sort_by_key(|&(first, _)| first);
        Self {
            trace,
            rounds_to,
            steps: original_steps(trace),
            may_overwrite,
            apart,
            alignment: buffers.iter().any(|buffer| buffer.align != default),
            offset: buffers.iter().any(|buffer| buffer.pin.is_some()),
            hint: labels.iter().any(|label| label.hint.is_some()),
            gaps: buffers.iter().any(|buffer| !buffer.pauses.is_empty()),
            arena: instance.arenas() != [Arena::default()],
            category: labels.iter().any(|label| label.category.is_some()),
            op: labels.iter().any(|label| label.op.is_some()),
        }
    }

    fn write(&self, plan: Option<&Plan>) -> Vec<u8> {
        let mut out = String::with_capacity(48 * self.trace.instance.len() + 256);
        if plan.is_some() {
            let (key, value) = PLAN_MARK;
            line(&mut out, format_args!("# {key}: {value}"));
        }
        self.metadata(&mut out);
        self.header(&mut out, plan.is_some());
        let mut taken = vec![None; if plan.is_some() { self.trace.instance.len() } else { 0 }];
        for pair in plan.iter().flat_map(|plan| &plan.in_place) {
            taken[pair.output.index()] = Some(pair.input);
        }
        let (mut overwrites, mut apart) = (self.may_overwrite.as_slice(), self.apart.as_slice());
        for id in self.trace.instance.ids() {
            self.buffer(&mut out, id, plan);
            self.list(&mut out, id, &mut overwrites, !self.may_overwrite.is_empty());
            self.list(&mut out, id, &mut apart, !self.apart.is_empty());
            self.texts(&mut out, id);
            if plan.is_some() {
                out.push(',');
                taken[id.index()].iter().for_each(|&input| quote(&mut out, self.name(input)));
            }
            out.push('\n');
        }
        out.into_bytes()
    }

    fn metadata(&self, out: &mut String) {
        for (key, value) in &self.trace.labels.metadata {
            let kept = match key.as_str() {
                ALIGNMENT_KEY => self.rounds_to.is_some(),
                RANK_KEY => self.steps.is_some(),
                // Ranks are not times.
                UNIT_KEY => self.steps.is_some() || !self.is_ranked(),
                _ => true,
            };
            if kept {
                let flat = |text: &str| text.replace('\n', " ");
                line(out, format_args!("# {}: {}", flat(key), flat(value)));
            }
        }
        for arena in self.trace.instance.arenas().iter().filter(|_| self.arena) {
            let name = arena.name.replace('\n', " ");
            match arena.capacity {
                Some(capacity) => line(out, format_args!("# arena {name}: {capacity}")),
                None => line(out, format_args!("# arena {name}: unlimited")),
            }
        }
    }

    fn is_ranked(&self) -> bool {
        self.trace.labels.buffers.iter().any(|label| label.original_steps.is_some())
    }

    fn header(&self, out: &mut String, plan: bool) {
        out.push_str("id,lower,upper,size");
        for (used, name) in [
            (self.alignment, ",alignment"),
            (self.offset || plan, ",offset"),
            (self.hint, ",hint"),
            (self.gaps, ",gaps"),
            (self.arena, ",arena"),
            (!self.may_overwrite.is_empty(), ",may_overwrite"),
            (!self.apart.is_empty(), ",apart"),
            (self.category, ",category"),
            (self.op, ",op"),
            (plan, ",overwrites"),
        ] {
            out.push_str(if used { name } else { "" });
        }
        out.push('\n');
    }

    fn name(&self, id: BufferId) -> &str {
        &self.trace.labels.buffers[id.index()].name
    }

    fn step(&self, step: u32) -> u64 {
        self.steps.as_ref().map_or(u64::from(step), |steps| steps[&step])
    }

    fn buffer(&self, out: &mut String, id: BufferId, plan: Option<&Plan>) {
        let (buffer, label) = (self.trace.instance.buffer(id), &self.trace.labels.buffers[id.index()]);
        quote(out, &label.name);
        cell(out, self.step(buffer.live.start().get()));
        cell(out, self.step(buffer.live.end().get()));
        let requested = self.rounds_to.and(label.requested);
        cell(out, requested.unwrap_or(buffer.size).get());
        if self.alignment {
            cell(out, buffer.align.get());
        }
        match plan {
            Some(plan) => cell(out, plan.offsets[id.index()].get()),
            None => optional(out, self.offset, buffer.pin.map(|pin| pin.get())),
        }
        optional(out, self.hint, label.hint);
        if self.gaps {
            out.push(',');
            pauses(out, buffer, |step| self.step(step));
        }
        if self.arena {
            out.push(',');
            quote(out, &self.trace.instance.arenas()[buffer.arena.index()].name);
        }
    }

    fn list(&self, out: &mut String, id: BufferId, rest: &mut &[(BufferId, BufferId)], used: bool) {
        if !used {
            return;
        }
        out.push(',');
        let (mine, others) = rest.split_at(rest.iter().take_while(|&&(of, _)| of == id).count());
        *rest = others;
        let names: Vec<String> = mine.iter().map(|&(_, named)| escape(self.name(named))).collect();
        quote(out, &names.join(" "));
    }

    fn texts(&self, out: &mut String, id: BufferId) {
        let label = &self.trace.labels.buffers[id.index()];
        for (used, text) in [(self.category, &label.category), (self.op, &label.op)] {
            if used {
                out.push(',');
                quote(out, text.as_deref().unwrap_or(""));
            }
        }
    }
}

/// The alignment in the metadata, if rounding the requested sizes to it gives the sizes.
fn rounding(trace: &Trace) -> Option<Alignment> {
    let align = Alignment::new(trace.labels.meta(ALIGNMENT_KEY)?.parse().ok()?)?;
    let mut all = trace.instance.buffers().iter().zip(&trace.labels.buffers);
    let rounds = |(buffer, label): (&Buffer, &planlab_dsa::Label)| {
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
    let known = |pause: &planlab_dsa::Pause| {
        steps.contains_key(&pause.steps.start().get()) && steps.contains_key(&pause.steps.end().get())
    };
    pauses.into_iter().all(known).then_some(steps).filter(|steps| !steps.is_empty())
}

fn line(out: &mut String, text: std::fmt::Arguments<'_>) {
    writeln!(out, "{text}").expect("a string takes everything");
}

fn number(out: &mut String, mut value: u64) {
    let mut digits = [0_u8; 20];
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + u8::try_from(value % 10).expect("a digit");
        value /= 10;
        if value == 0 {
            break;
        }
    }
    digits[at..].iter().for_each(|&digit| out.push(char::from(digit)));
}

fn cell(out: &mut String, value: u64) {
    out.push(',');
    number(out, value);
}

fn optional(out: &mut String, used: bool, value: Option<u64>) {
    if used {
        out.push(',');
        value.into_iter().for_each(|value| number(out, value));
    }
}

fn pauses(out: &mut String, buffer: &Buffer, step: impl Fn(u32) -> u64) {
    for (index, pause) in buffer.pauses.iter().enumerate() {
        out.push_str(if index == 0 { "" } else { " " });
        number(out, step(pause.steps.start().get()));
        out.push('-');
        number(out, step(pause.steps.end().get()));
        if let Some(window) = &pause.window {
            out.push('@');
            number(out, window.start.get());
            out.push(':');
            number(out, window.end.get());
        }
    }
}

/// Whether a text cell needs no quotes.
fn is_plain(text: &str) -> bool {
    text.trim_ascii() == text && !text.starts_with('#') && !text.contains([',', '"', '\n', '\r'])
}

/// Writes a text cell, quoted if necessary. Line feeds become spaces, so that a row is one line.
fn quote(out: &mut String, text: &str) {
    if is_plain(text) {
        out.push_str(text);
        return;
    }
    out.push('"');
    for letter in text.chars() {
        match letter {
            '"' => out.push_str("\"\""),
            '\n' => out.push(' '),
            letter => out.push(letter),
        }
    }
    out.push('"');
}
