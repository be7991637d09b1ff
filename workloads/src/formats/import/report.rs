//! What a reader hands back: traces, what it left out, what the framework says of itself.

use std::sync::Arc;

use planlab_dsa::{Bytes, InPlace, Offset, Plan};

use crate::formats::{FormatError, ReadOptions, Trace};

/// What a file of another tool holds.
#[derive(Clone, Debug, Default)]
pub struct Imported {
    /// The traces in it: one for each device, say. At least one.
    pub parts: Vec<Part>,
    /// What was left out of them or is not known, in the order in which it is reported.
    pub dropped: Vec<Dropped>,
    /// Whether the file is a text, whose errors name a line.
    pub has_lines: bool,
}

/// A trace of several that a file may hold.
#[derive(Clone, Debug)]
pub struct Part {
    /// What `--part` calls it: `cuda:0`, the name of a graph. Unique in the file.
    pub name: String,
    /// The trace.
    pub trace: Trace,
    /// What the framework says of itself.
    pub framework: Option<Framework>,
}

/// Something that a reader left out or had to assume.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Dropped {
    /// How many of it.
    pub count: u64,
    /// What it is, in the plural: `frees of buffers from before the recording`.
    pub what: String,
    /// Its bytes, if it has any.
    pub bytes: Option<u64>,
    /// Why it is not there, or what is done instead.
    pub why: String,
}

/// What a framework says of itself beside a trace.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Framework {
    /// Its name: `PyTorch`, `XLA`.
    pub name: &'static str,
    /// The most bytes that were allocated at once, by its own count.
    pub allocated_peak: Option<Bytes>,
    /// The most bytes that it held at once.
    pub reserved_peak: Option<Bytes>,
    /// Where it put each buffer of the trace: an address or an offset; empty if it does not say.
    pub placement: Vec<Option<u64>>,
    /// Bytes that each buffer took there, which may be more than the trace's size; empty if it does not say.
    pub taken: Vec<u64>,
    /// How many of them are the rest of a free block that was given out whole, beyond what the request is rounded to; may
    /// be empty.
    pub tails: Vec<u64>,
    /// Its own counts of bytes in use, beside those that the trace gives.
    pub counts: Vec<Count>,
    /// Frames of call stacks: `model.py:12 forward`.
    pub frames: Vec<String>,
    /// Call stacks.
    pub stacks: Vec<Stack>,
    /// Which of them allocated each buffer; empty if it does not say.
    pub stack_of: Vec<Option<u32>>,
    /// The stream of each buffer; empty if there are no streams.
    pub streams: Vec<u64>,
    /// The memory that it held, piece by piece.
    pub segments: Vec<Segment>,
    /// Where memory ran out.
    pub failures: Vec<OutOfMemory>,
}

/// A call stack: numbers of [`Framework::frames`], the innermost first.
pub type Stack = Arc<[u32]>;

/// A piece of memory that a framework got from the device and cut buffers from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Its first byte.
    pub address: u64,
    /// Its bytes.
    pub size: u64,
    /// The steps of the trace in which it was held, half-open; before the ranking of `Label::original_steps`.
    pub steps: (u64, u64),
    /// The stream that may use it.
    pub stream: u64,
    /// The private pool that it belongs to; `(0, 0)` is what all share.
    pub pool: (u64, u64),
    /// Whether it is mapped into a range of addresses that grows: buffers may span it and its neighbours.
    pub is_mapped: bool,
}

/// A request that could not be served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutOfMemory {
    /// The step of the trace at which it was made.
    pub step: u64,
    /// Bytes that were asked for.
    pub size: u64,
    /// Bytes that the framework asked the device for, at most, to serve it, if that is known.
    pub asked_of_device: Option<u64>,
    /// Bytes that the device had left.
    pub device_free: Option<u64>,
    /// The stream that asked.
    pub stream: u64,
    /// The call stack, innermost frame first.
    pub stack: Vec<String>,
}

/// What a framework counted itself, beside the same of the trace: they differ where the recording has a hole or the reader a
/// fault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Count {
    /// What was counted: `blocks in use at the end`.
    pub what: &'static str,
    /// By the framework.
    pub theirs: u64,
    /// By the trace.
    pub ours: u64,
}

impl Dropped {
    /// A count of dropped things, and the reason.
    #[must_use]
    pub fn new(count: u64, what: impl Into<String>, why: impl Into<String>) -> Self {
        Self { count, what: what.into(), bytes: None, why: why.into() }
    }

    /// The same; `None` if the count is 0.
    pub(crate) fn from_count(count: u64, what: &str, why: &str) -> Option<Self> {
        (count > 0).then(|| Self::new(count, what, why))
    }

    /// The same with the bytes that it comes to.
    #[must_use]
    pub const fn with_bytes(mut self, bytes: u64) -> Self {
        self.bytes = Some(bytes);
        self
    }
}

impl std::fmt::Display for Dropped {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.count, self.what)?;
        if let Some(bytes) = self.bytes {
            write!(f, " ({bytes} bytes)")?;
        }
        write!(f, ": {}", self.why)
    }
}

impl Part {
    /// The framework's own placement as a plan of the trace, its lowest place at 0; `None` unless it places every
    /// buffer. Places are handed over wherever the trace permits it and the framework did so. The plan is not verified.
    #[must_use]
    pub fn own_plan(&self) -> Option<Plan> {
        let instance = &self.trace.instance;
        let places: Vec<u64> = self.framework.as_ref()?.placement.iter().copied().collect::<Option<_>>()?;
        let lowest = places.iter().min().filter(|_| places.len() == instance.len())?;
        let offsets: Vec<Offset> = places.iter().map(|place| Offset::new(place - lowest)).collect();
        let ends = instance.buffers().iter().zip(&offsets).map(|(buffer, offset)| offset.end_of(buffer.size));
        let ends: Vec<Offset> = ends.collect::<Option<_>>()?;
        let is_inside = |pair: &&InPlace| {
            let (input, output) = (pair.input.index(), pair.output.index());
            offsets[input] <= offsets[output] && ends[output] <= ends[input]
        };
        let in_place = instance.in_place().iter().filter(is_inside).copied().collect();
        Some(Plan { offsets, in_place })
    }
}

impl Framework {
    /// Nothing but the name.
    #[must_use]
    pub fn new(name: &'static str) -> Self {
        Self { name, ..Self::default() }
    }

    /// The call stack that allocated a buffer, innermost frame first; empty if it is not known.
    pub fn call_stack(&self, buffer: usize) -> impl Iterator<Item = &str> {
        let number = self.stack_of.get(buffer).copied().flatten();
        let stack = number.and_then(|number| self.stacks.get(number as usize));
        let frames = stack.into_iter().flat_map(|stack| &**stack);
        frames.filter_map(|&frame| self.frames.get(frame as usize).map(String::as_str))
    }
}

impl Imported {
    /// One trace and nothing else.
    #[must_use]
    pub fn from_trace(name: impl Into<String>, trace: Trace) -> Self {
        let part = Part { name: name.into(), trace, framework: None };
        Self { parts: vec![part], dropped: Vec::new(), has_lines: true }
    }

    /// The same without the parts that have no buffer, which are reported as dropped.
    ///
    /// # Errors
    ///
    /// If no part is left.
    pub(crate) fn without_empty_parts(mut self, file: &str) -> Result<Self, FormatError> {
        let is_empty = |part: &mut Part| part.trace.instance.is_empty();
        let empty: Vec<Part> = self.parts.extract_if(.., is_empty).collect();
        if self.parts.is_empty() {
            return Err(FormatError::new(file, 1, "there is no buffer in it that needs a place"));
        }
        if !empty.is_empty() {
            let why = format!("no buffer in them needs a place: {}", list_part_names(&empty));
            self.dropped.push(Dropped::new(empty.len() as u64, "traces", why));
        }
        Ok(self)
    }

    /// The part that the options name, or the only one.
    ///
    /// # Errors
    ///
    /// If there is no such part, or there are several and the options name none.
    pub fn chosen_part(self, file: &str, options: &ReadOptions) -> Result<Part, FormatError> {
        let names = || list_part_names(&self.parts);
        let error = |reason: String| match self.has_lines {
            true => FormatError::new(file, 1, reason),
            false => FormatError::at_byte(file, 0, reason),
        };
        match (&options.part, self.parts.len()) {
            (Some(name), _) if !self.parts.iter().any(|part| part.name == *name) => {
                Err(error(format!("there is no part `{name}` in it; it has {}", names())))
            }
            (None, count) if count != 1 => {
                Err(error(format!("it holds {count} traces; name one by --part: {}", names())))
            }
            (name, _) => {
                let is_meant = |part: &Part| name.as_ref().is_none_or(|name| part.name == *name);
                Ok(self.parts.into_iter().find(is_meant).expect("it was looked for"))
            }
        }
    }

    /// The trace of [`Self::chosen_part`]; what was left out becomes notices.
    pub(crate) fn single_trace(mut self, file: &str, options: &ReadOptions) -> Result<Trace, FormatError> {
        let dropped: Vec<String> =
            std::mem::take(&mut self.dropped).iter().map(ToString::to_string).collect();
        let mut trace = self.chosen_part(file, options)?.trace;
        trace.notices.extend(dropped);
        Ok(trace)
    }
}

/// What the first parts are called.
fn list_part_names(parts: &[Part]) -> String {
    const MOST: usize = 20;
    let mut names: Vec<&str> = parts.iter().map(|part| part.name.as_str()).take(MOST).collect();
    if parts.len() > MOST {
        names.push("...");
    }
    names.join(", ")
}
