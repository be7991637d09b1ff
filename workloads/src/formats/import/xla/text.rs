//! XLA's texts: where each value is (`BufferAssignment:`) and when it is live (`HloLiveRange`), in any order.
//!
//! Live ranges have both ends inclusive. Values that lie at one offset and meet in time share their memory (the second
//! takes the first's place at the instruction that makes it): they are one buffer, as in the dump's events.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use super::outside::{Kind, NAME, Outside, rule};
use crate::formats::error::quote_excerpt;
use crate::formats::import::gather::{FoundBuffer, TraceGatherer, framework_with};
use crate::formats::import::{Dropped, Imported, Input, Part, Reader};
use crate::formats::input::numbers::whole;
use crate::formats::{FormatError, ReadOptions};

const ASSIGNMENT: &str = "BufferAssignment:";
const LIVE_RANGE: &str = "HloLiveRange";

pub(crate) const TEXT: Reader = Reader {
    key: "xla-text",
    title: "XLA's *-buffer-assignment.txt and *-live-range.txt, joined",
    endings: &[],
    has_lines: true,
    looks_like,
    read: read_text,
};

fn looks_like(start: &[u8]) -> bool {
    let start = start.trim_ascii_start();
    start.starts_with(ASSIGNMENT.as_bytes()) || start.starts_with(LIVE_RANGE.as_bytes())
}

fn read_text(input: Input<'_>, options: &ReadOptions) -> Result<Imported, FormatError> {
    let file = input.file_name().to_owned();
    let mut lines = input.into_lines();
    let mut dump = Dump::default();
    while let Some((number, line)) = lines.next_line()? {
        dump.read_line(number, line).map_err(|reason| FormatError::new(&file, number, reason))?;
    }
    dump.import_dump(&file, options)
}

/// Which part of the texts a line belongs to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Section {
    /// Allocations and their values.
    #[default]
    Assignment,
    /// Values with their lives.
    Lives,
    /// Values that are live at the peak.
    Peak,
    /// Nothing that is needed.
    Other,
}

/// What the texts say.
#[derive(Default)]
struct Dump {
    section: Section,
    allocations: Vec<Allocation>,
    /// Inclusive on both sides, by value.
    lives: FxHashMap<String, (u64, u64)>,
    /// The step at which most is live by XLA's own count, and the bytes.
    peak: Option<(u64, u64)>,
}

struct Allocation {
    index: u64,
    size: u64,
    kind: Kind,
    is_planned: bool,
    values: Vec<XlaValue>,
}

#[derive(Clone)]
struct XlaValue {
    /// With its index in a tuple: `while.3{1}`, `dot.1{}`.
    name: String,
    size: u64,
    offset: u64,
    row: u64,
}

impl Dump {
    fn read_line(&mut self, number: u64, line: &str) -> Result<(), String> {
        let text = line.trim_ascii();
        if let Some(section) = section_start(text) {
            if let Some(step) = text.strip_prefix("Live ranges at ") {
                let step = step.split_once(' ').map_or(step, |(step, _)| step);
                self.peak = Some((whole("the step of the peak", step)?, 0));
            }
            self.section = section;
            return Ok(());
        }
        match self.section {
            Section::Assignment if text.starts_with("allocation ") => {
                self.allocations.push(parse_allocation(text)?);
            }
            Section::Assignment if text.starts_with("value: <") => {
                let Some(allocation) = self.allocations.last_mut() else {
                    return Err("a value before the first allocation".to_owned());
                };
                allocation.values.push(parse_value(text, number)?);
            }
            Section::Lives => {
                let (name, life) = parse_life(text)?;
                self.lives.insert(name, life);
            }
            Section::Peak => {
                if let (Some((_, bytes)), Some(cumulative)) = (&mut self.peak, parse_cumulative(text)) {
                    *bytes = whole("the cumulative bytes", cumulative)?;
                }
            }
            Section::Assignment | Section::Other => {}
        }
        Ok(())
    }

    fn import_dump(mut self, file: &str, options: &ReadOptions) -> Result<Imported, FormatError> {
        let lacks = |what: &str| {
            let reason =
                format!("{what}; join XLA's two texts: cat *-buffer-assignment.txt *-live-range.txt");
            FormatError::new(file, 1, reason)
        };
        if self.allocations.is_empty() {
            return Err(lacks("it does not say how large values are"));
        }
        if self.lives.is_empty() {
            return Err(lacks("it does not say when values are live"));
        }
        let mut imported = Imported::default();
        imported.dropped.extend(self.own_peak());
        let (planned, others): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.allocations).into_iter().partition(|allocation| allocation.is_planned);
        if planned.is_empty() {
            return Err(FormatError::new(file, 1, "no allocation in it is planned (preallocated-temp)"));
        }
        for (number, allocation) in planned.into_iter().enumerate() {
            imported.parts.push(self.build_part(file, options, number, allocation, &mut imported.dropped)?);
        }
        let mut outside = Outside::default();
        others.iter().for_each(|allocation| outside.add_bytes(allocation.kind, allocation.size));
        imported.dropped.extend(outside.as_dropped());
        Ok(imported)
    }

    /// What the values come to at XLA's peak, where it differs from XLA's own count.
    fn own_peak(&self) -> Option<Dropped> {
        let (step, bytes) = self.peak?;
        let all = self.allocations.iter().flat_map(|allocation| &allocation.values);
        let is_live = |value: &&XlaValue| {
            self.lives.get(&value.name).is_some_and(|&(first, last)| first <= step && step <= last)
        };
        let ours: u64 = all.filter(is_live).map(|value| value.size).fold(0, u64::saturating_add);
        (ours != bytes).then(|| {
            let why = format!("XLA counts {bytes} bytes at step {step}, its values come to {ours}");
            Dropped::new(1, "peak that differs from XLA's own", why)
        })
    }

    fn build_part(
        &self,
        file: &str,
        options: &ReadOptions,
        number: usize,
        allocation: Allocation,
        dropped: &mut Vec<Dropped>,
    ) -> Result<Part, FormatError> {
        let mut gather = TraceGatherer::new(file, options);
        gather.set_metadata("framework", NAME);
        gather.set_metadata("clock", "instructions");
        let (shared, unknown) = self.share_offsets(allocation.values);
        gather.align_as(rule(shared.iter().map(|shared| shared.value.offset)));
        let why = "nobody knows when they are live";
        dropped.extend(Dropped::from_count(unknown, "values without a live range", why));
        let folded: u64 = shared.iter().map(|shared| shared.others).sum();
        let why = "each is one buffer with the one whose place it takes, as large as the largest";
        dropped.extend(Dropped::from_count(folded, "values that share another's memory", why));
        for Shared { value, start, last, .. } in shared {
            let Some(end) = last.checked_add(1) else {
                let reason = "a step of 2^64 - 1 leaves no room for the one after";
                return Err(FormatError::new(file, value.row, reason));
            };
            let name = value.name.strip_suffix("{}").unwrap_or(&value.name).to_owned();
            gather.append_buffer(FoundBuffer {
                name,
                start,
                end,
                size: value.size,
                place: Some(value.offset),
                row: Some(value.row),
                ..FoundBuffer::default()
            });
        }
        gather.set_metadata("allocation", allocation.index.to_string());
        gather.build_part(format!("heap-{number}"), framework_with(NAME, Some(allocation.size)), dropped)
    }

    /// Values at one offset that meet in time, as one, in order of their starts; and how many have no live range.
    fn share_offsets(&self, values: Vec<XlaValue>) -> (Vec<Shared>, u64) {
        let mut unknown = 0;
        let mut at: BTreeMap<u64, Vec<Shared>> = BTreeMap::new();
        for value in values {
            match self.lives.get(&value.name) {
                Some(&(start, last)) => {
                    let shared = Shared { start, last, others: 0, value };
                    at.entry(shared.value.offset).or_default().push(shared);
                }
                None => unknown += 1,
            }
        }
        let mut all: Vec<Shared> = Vec::new();
        for mut group in at.into_values() {
            group.sort_by_key(|shared| (shared.start, shared.last));
            let first = all.len();
            for next in group {
                match all[first..].last_mut() {
                    Some(before) if next.start <= before.last => {
                        before.last = before.last.max(next.last);
                        before.value.size = before.value.size.max(next.value.size);
                        before.others += 1;
                    }
                    _ => all.push(next),
                }
            }
        }
        all.sort_by_key(|shared| (shared.start, shared.value.row));
        (all, unknown)
    }
}

/// Values that share memory.
struct Shared {
    /// The first of them, as large as the largest.
    value: XlaValue,
    /// How many others.
    others: u64,
    start: u64,
    /// Inclusive.
    last: u64,
}

/// The section that a line begins.
fn section_start(text: &str) -> Option<Section> {
    match text {
        ASSIGNMENT => Some(Section::Assignment),
        "BufferLiveRange:" => Some(Section::Lives),
        "InstructionSequence:" => Some(Section::Other),
        _ if text.starts_with(LIVE_RANGE) => Some(Section::Other),
        _ if text.starts_with("Live ranges at ") => Some(Section::Peak),
        _ if text.starts_with("Stack trace breakdown") || text.starts_with("Used values:") => {
            Some(Section::Other)
        }
        _ => None,
    }
}

/// `allocation 37: size 39796736, preallocated-temp:`
fn parse_allocation(text: &str) -> Result<Allocation, String> {
    let bad = || format!("`{}` is not `allocation N: size BYTES, ...`", quote_excerpt(text));
    let (index, rest) = text["allocation ".len()..].split_once(": size ").ok_or_else(bad)?;
    let (size, flags) = rest.split_once(',').unwrap_or((rest.trim_end_matches(':'), ""));
    let has = |flag: &str| flags.contains(flag);
    let kind = match () {
        () if has(" parameter ") => Kind::Parameter,
        () if has(" constant") => Kind::Constant,
        () if has(" thread-local") => Kind::ThreadLocal,
        () if has(" maybe-live-out") => Kind::Output,
        () => Kind::Other,
    };
    Ok(Allocation {
        index: whole("the allocation", index)?,
        size: whole("the size", size.trim_ascii())?,
        kind,
        is_planned: has(" preallocated-temp"),
        values: Vec::new(),
    })
}

/// `value: <343 ynn_fusion.12 @0> (size=2097152,offset=16777216): f32[256,2048]{1,0}`
fn parse_value(text: &str, row: u64) -> Result<XlaValue, String> {
    let parts = || {
        let (value, rest) = text.strip_prefix("value: <")?.split_once("> (size=")?;
        let (size, rest) = rest.split_once(",offset=")?;
        let (offset, _) = rest.split_once(')')?;
        let name = value.split_ascii_whitespace().nth(1)?;
        Some((name, size, offset))
    };
    let Some((name, size, offset)) = parts() else {
        let text = quote_excerpt(text);
        return Err(format!("`{text}` is not `value: <ID NAME @N> (size=BYTES,offset=BYTES)`"));
    };
    let name = if name.contains('{') { name.to_owned() } else { format!("{name}{{}}") };
    Ok(XlaValue { name, size: whole("the size", size)?, offset: whole("the offset", offset)?, row })
}

/// `dot.1{}:47-50`
fn parse_life(text: &str) -> Result<(String, (u64, u64)), String> {
    let parts = || {
        let (name, steps) = text.rsplit_once(':')?;
        Some((name, steps.split_once('-')?))
    };
    let Some((name, (first, last))) = parts() else {
        return Err(format!("`{}` is not `NAME{{INDEX}}:FIRST-LAST`", quote_excerpt(text)));
    };
    let life = (whole("the first step", first)?, whole("the last step", last)?);
    if life.0 > life.1 {
        return Err(format!("the first step {} is above the last, {}", life.0, life.1));
    }
    Ok((name.to_owned(), life))
}

/// `copy.4{}: 16777216 bytes (cumulative: 33554432 bytes)`
fn parse_cumulative(text: &str) -> Option<&str> {
    text.split_once("(cumulative: ")?.1.strip_suffix(" bytes)")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::import::testing::{lives, parts, read, told};

    fn read_text(text: &str) -> Result<Imported, FormatError> {
        read("dump.txt", text)
    }

    const HEAP: &str = "BufferAssignment:\nallocation 0: size 24, preallocated-temp:\n \
                        value: <1 a @0> (size=8,offset=0): s8[8]{0}\n \
                        value: <2 b{1} @0> (size=16,offset=8): s8[16]{0}\n \
                        value: <3 c @0> (size=4,offset=0): s8[4]{0}\n \
                        value: <4 d @0> (size=8,offset=0): s8[8]{0}\n";

    #[test]
    fn ends_are_inclusive_and_values_that_meet_share() {
        let ranges = "HloLiveRange (max 9):\n  InstructionSequence:\n    0:a\n  BufferLiveRange:\n    a{}:0-2\n    \
                     b{1}:1-3\n    c{}:2-4\n    d{}:5-6\n  Live ranges at 2 (peak):\n    \
                     b{1}: 16 bytes (cumulative: 16 bytes)\n    a{}: 8 bytes (cumulative: 24 bytes)\n    \
                     c{}: 4 bytes (cumulative: 28 bytes)\n";
        let imported = read_text(&format!("{HEAP}{ranges}")).expect("valid");
        let trace = &imported.parts[0].trace;
        assert_eq!(lives(trace), [("a", (0, 5), 8), ("b{1}", (1, 4), 16), ("d", (5, 7), 8)]);
        let placement = &imported.parts[0].framework.as_ref().expect("XLA").placement;
        assert_eq!(placement, &[Some(0), Some(8), Some(0)]);
        assert_eq!(imported.dropped.len(), 2, "{:?}", imported.dropped);
        // Half of XLA's usual 64 and less, by its own offset 8.
        assert!(trace.instance.buffers().iter().all(|buffer| buffer.align.get() == 8));
    }

    #[test]
    fn a_peak_of_another_size_is_told() {
        let lives = "HloLiveRange (max 9):\n  BufferLiveRange:\n    a{}:0-2\n  Live ranges at 2 (peak):\n    \
                     a{}: 9 bytes (cumulative: 9 bytes)\n";
        let imported = read_text(&format!("{HEAP}{lives}")).expect("valid");
        assert_eq!(
            told(&imported),
            [
                "1 peak that differs from XLA's own: XLA counts 9 bytes at step 2, its values come to 8",
                "3 values without a live range: nobody knows when they are live",
                "1 buffers at multiples of 64 bytes: XLA's own offsets are; --align takes another",
            ]
        );
    }

    #[test]
    fn an_allocation_without_a_value_that_is_live_is_left_out() {
        let more = "allocation 1: size 8, preallocated-temp:\n value: <5 e @0> (size=8,offset=0): s8[8]{0}\n";
        let lives = "HloLiveRange (max 9):\n  BufferLiveRange:\n    e{}:0-2\n";
        let imported = read_text(&format!("{HEAP}{more}{lives}")).expect("one has a buffer");
        assert_eq!(parts(&imported), ["heap-1"]);
        let told = told(&imported).pop();
        assert_eq!(told.as_deref(), Some("1 traces: no buffer in them needs a place: heap-0"));
    }

    #[test]
    fn what_is_missing_or_wrong_has_its_line() {
        let error = |text: &str| read_text(text).expect_err("bad").to_string();
        assert!(
            error(HEAP).starts_with("dump.txt:1: it does not say when values are live; join XLA's two texts")
        );
        let lives = |life: &str| error(&format!("HloLiveRange (max 9):\n  BufferLiveRange:\n    {life}\n"));
        assert!(lives("a{}:0-2").starts_with("dump.txt:1: it does not say how large values are; join"));
        assert_eq!(
            error("BufferAssignment:\nallocation 0: size many, x:\n"),
            "dump.txt:2: the size `many` is not a whole number"
        );
        assert_eq!(lives("a{}:3-2"), "dump.txt:3: the first step 3 is above the last, 2");
        assert_eq!(lives("a{}"), "dump.txt:3: `a{}` is not `NAME{INDEX}:FIRST-LAST`");
    }
}
