//! From the buffers that a reader finds to a trace.

use planlab_dsa::{Alignment, ArenaId, Bytes, Label};

use super::{Dropped, Framework, Part};
use crate::formats::trace::draft::{Draft, RawBuffer};
use crate::formats::trace::ids::escape;
use crate::formats::unique::UniqueNames;
use crate::formats::{FormatError, ReadOptions};

/// A buffer as a file has it.
#[derive(Clone, Debug, Default)]
pub(crate) struct FoundBuffer {
    /// What the file calls it; one that comes again gets a number, `x#2`.
    pub(crate) name: String,
    /// The first step of its life.
    pub(crate) start: u64,
    /// The step after the last.
    pub(crate) end: u64,
    /// Bytes.
    pub(crate) size: u64,
    pub(crate) category: Option<&'static str>,
    pub(crate) op: Option<String>,
    /// Where the framework put it.
    pub(crate) place: Option<u64>,
    /// The line of the file.
    pub(crate) row: Option<u64>,
}

/// How a framework aligns buffers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rule {
    /// Offsets are multiples of this.
    pub(crate) bytes: u64,
    /// Whether sizes are, too.
    pub(crate) rounds: bool,
    /// Why so: `as in XLA`.
    pub(crate) why: &'static str,
}

/// What a framework's own offsets are multiples of: the largest power of two up to `most`; `usual` if they do not say.
pub(crate) fn common_alignment(offsets: impl IntoIterator<Item = u64>, usual: u64, most: u64) -> u64 {
    match offsets.into_iter().fold(0, |bits, offset| bits | offset) {
        0 => usual,
        bits => 1 << bits.trailing_zeros().min(most.ilog2()),
    }
}

/// A trace in the making.
pub(crate) struct TraceGatherer<'f> {
    rule: Option<Rule>,
    draft: Draft<'f>,
    unique: UniqueNames,
    placement: Vec<Option<u64>>,
    without_size: u64,
    without_life: Tally,
}

/// How many, and how many bytes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Tally {
    pub(crate) count: u64,
    pub(crate) bytes: u64,
}

impl Tally {
    pub(crate) fn add_bytes(&mut self, bytes: u64) {
        self.count += 1;
        self.bytes = self.bytes.saturating_add(bytes);
    }

    /// What was left out, if there was any.
    pub(crate) fn as_dropped(self, what: &str, why: &str) -> Option<Dropped> {
        Dropped::from_count(self.count, what, why).map(|dropped| dropped.with_bytes(self.bytes))
    }
}

impl<'f> TraceGatherer<'f> {
    pub(crate) fn new(file: &'f str, options: &'f ReadOptions) -> Self {
        Self {
            rule: None,
            draft: Draft::new(file, options),
            unique: UniqueNames::new("#"),
            placement: Vec::new(),
            without_size: 0,
            without_life: Tally::default(),
        }
    }

    /// Sets metadata.
    pub(crate) fn set_metadata(&mut self, key: &str, value: impl Into<String>) {
        self.draft.set_metadata(key, plain_text(&value.into()));
    }

    /// Aligns the buffers that come as their framework does, unless the options say how; the import says so.
    pub(crate) fn align_as(&mut self, rule: Rule) {
        if self.draft.options.alignment.is_none() && rule.bytes > 1 {
            self.rule = Some(rule);
        }
    }

    /// Aligns offsets, and rounds sizes up, to multiples of `bytes`. The line is where the file says so.
    pub(crate) fn align_to(&mut self, line: u64, bytes: u64) -> Result<(), FormatError> {
        let said = self.draft.read_comment(line, &format!("alignment: {bytes}"));
        said.map_err(|reason| self.draft.error_at(line, reason))
    }

    /// Takes a buffer in and says its number; `None` for one that has no bytes or is never live, which is counted.
    pub(crate) fn append_buffer(&mut self, found: FoundBuffer) -> Option<usize> {
        if found.size == 0 {
            self.without_size += 1;
            return None;
        }
        if found.start >= found.end {
            self.without_life.add_bytes(found.size);
            return None;
        }
        let label = Label {
            name: self.unique.make_unique(&plain_text(&found.name)),
            category: found.category.map(str::to_owned),
            op: found.op.map(|op| plain_text(&op)),
            row: found.row,
            ..Label::default()
        };
        self.placement.push(found.place);
        let raw = RawBuffer {
            label,
            lower: found.start,
            upper: found.end,
            size: found.size,
            align: self.rule.filter(|rule| !rule.rounds).and_then(|rule| Alignment::new(rule.bytes)),
            ..RawBuffer::default()
        };
        Some(self.draft.append_buffer(raw, ArenaId::default()))
    }

    /// `output` may take the place of `input`.
    pub(crate) fn may_overwrite(&mut self, output: usize, input: usize) {
        self.draft.may_overwrite(output, &escape(self.draft.name(input)));
    }

    /// The trace, with the framework's own placement if the file has one. Reports what it could not take in. It may have no
    /// buffer: such a part is left out when the file is read.
    ///
    /// # Errors
    ///
    /// If the buffers are no valid instance.
    pub(crate) fn build_part(
        mut self,
        name: impl Into<String>,
        mut framework: Framework,
        dropped: &mut Vec<Dropped>,
    ) -> Result<Part, FormatError> {
        dropped.extend(Dropped::from_count(self.without_size, "buffers of no bytes", "they need no place"));
        dropped.extend(self.without_life.as_dropped("buffers that are never live", "they need no place"));
        if let Some(Rule { bytes, rounds, why }) = self.rule.filter(|_| self.draft.len() > 0) {
            let sizes = if rounds {
                self.align_to(1, bytes).map(|()| ", their sizes rounded up to them")?
            } else {
                ""
            };
            let what = format!("buffers at multiples of {bytes} bytes{sizes}");
            let why = format!("{why}; --align takes another");
            dropped.push(Dropped::new(self.draft.len() as u64, what, why));
        }
        if self.placement.iter().any(Option::is_some) {
            framework.placement = self.placement;
        }
        let trace = self.draft.build_trace()?;
        Ok(Part { name: name.into(), trace, framework: Some(framework) })
    }
}

/// A text that a line of the trace can hold, and that is not empty.
fn plain_text(text: &str) -> String {
    let text: String = text.chars().map(|letter| if letter.is_control() { ' ' } else { letter }).collect();
    match text.trim() {
        "" => "unnamed".to_owned(),
        text => text.to_owned(),
    }
}

/// A framework that held `reserved` bytes.
pub(crate) fn framework_with(name: &'static str, reserved: Option<u64>) -> Framework {
    Framework { reserved_peak: reserved.map(Bytes::new), ..Framework::new(name) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(name: &str, start: u64, end: u64, size: u64) -> FoundBuffer {
        FoundBuffer { name: name.to_owned(), start, end, size, ..FoundBuffer::default() }
    }

    #[test]
    fn names_are_unique_and_what_needs_no_place_is_told() {
        let options = ReadOptions::default();
        let mut gather = TraceGatherer::new("net", &options);
        assert_eq!(gather.append_buffer(found("a", 0, 2, 4)), Some(0));
        assert_eq!(gather.append_buffer(found("a#2", 1, 2, 4)), Some(1));
        assert_eq!(gather.append_buffer(found("a", 2, 3, 4)), Some(2));
        assert_eq!(gather.append_buffer(found("none", 2, 3, 0)), None);
        assert_eq!(gather.append_buffer(found("never", 3, 3, 7)), None);
        gather.may_overwrite(1, 0);
        let mut dropped = Vec::new();
        let part = gather.build_part("all", Framework::new("a tool"), &mut dropped).expect("valid");
        let names: Vec<&str> = part.trace.labels.buffers.iter().map(|label| label.name.as_str()).collect();
        assert_eq!(names, ["a", "a#2", "a#3"]);
        assert_eq!(part.trace.instance.in_place().len(), 1);
        assert!(part.framework.expect("said").placement.is_empty());
        let told: Vec<String> = dropped.iter().map(ToString::to_string).collect();
        assert_eq!(
            told,
            [
                "1 buffers of no bytes: they need no place",
                "1 buffers that are never live (7 bytes): they need no place",
            ]
        );
    }

    #[test]
    fn offsets_say_what_they_are_multiples_of() {
        assert_eq!(common_alignment([0, 48, 64], 32, 64), 16);
        assert_eq!(common_alignment([0, 1024, 2048], 32, 64), 64);
        assert_eq!(
            (common_alignment([0, 0], 32, 64), common_alignment([], 32, 64), common_alignment([3], 32, 64)),
            (32, 32, 1)
        );
    }

    #[test]
    fn buffers_are_aligned_by_the_rule_of_their_framework() {
        let read = |rounds, given| {
            let options = ReadOptions {
                alignment: Alignment::new(given).filter(|_| given > 0),
                ..ReadOptions::default()
            };
            let mut gather = TraceGatherer::new("net", &options);
            gather.align_as(Rule { bytes: 64, rounds, why: "as in a tool" });
            gather.append_buffer(found("a", 0, 2, 65));
            let mut dropped = Vec::new();
            let part = gather.build_part("all", Framework::new("a tool"), &mut dropped).expect("valid");
            let buffer = part.trace.instance.buffers()[0].clone();
            let told: Vec<String> = dropped.iter().map(ToString::to_string).collect();
            (buffer.size.get(), buffer.align.get(), told)
        };
        let note =
            |sizes| format!("1 buffers at multiples of 64 bytes{sizes}: as in a tool; --align takes another");
        assert_eq!(read(false, 0), (65, 64, vec![note("")]));
        assert_eq!(read(true, 0), (128, 64, vec![note(", their sizes rounded up to them")]));
        assert_eq!(read(true, 8), (72, 8, vec![]));
    }

    #[test]
    fn nothing_is_said_of_the_alignment_of_no_buffer() {
        let options = ReadOptions::default();
        let mut gather = TraceGatherer::new("net", &options);
        gather.align_as(Rule { bytes: 64, rounds: true, why: "as in a tool" });
        let mut dropped = Vec::new();
        let part = gather.build_part("all", Framework::default(), &mut dropped).expect("valid");
        assert_eq!((part.trace.instance.len(), dropped), (0, vec![]));
    }
}
