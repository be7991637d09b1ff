//! The buffers of a recording, and the trace of them.

use std::cmp::Reverse;
use std::sync::Arc;

use planlab_dsa::{Alignment, ArenaId, Label};

use crate::formats::import::gather::common_alignment;
use crate::formats::trace::draft::{Draft, RawBuffer};
use crate::formats::{FormatError, ReadOptions, Trace};

/// Blocks are multiples of this many bytes.
pub(crate) const BLOCK: u64 = 512;

/// A buffer of a recording: half-open steps, the number of the event that made it, from 1; 0 is before all of them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Life {
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) size: u64,
    pub(crate) address: u64,
    /// Bytes of the block that it lies in; 0 if that is not known.
    pub(crate) block: u64,
    pub(crate) stream: u64,
    /// When it was made, in microseconds; 0 if that is not known.
    pub(crate) time: u64,
    pub(crate) category: Option<Arc<str>>,
    /// The call stack or the operation that made it, by number.
    pub(crate) stack: Option<u32>,
}

/// Category of buffers that are older than the recording.
pub(crate) const BEFORE: &str = "before-recording";

/// The trace of buffers in their order. `reserved` is the most bytes that were held on the device, if that is known; `op`
/// says what to call the buffers' stacks. Offsets are aligned as the addresses are, to `most` bytes at most, unless the
/// options say otherwise.
pub(crate) fn trace(
    file: &str,
    options: &ReadOptions,
    (recorder, device, reserved): (&str, &str, Option<u64>),
    (lives, most): (Vec<Life>, u64),
    op: impl Fn(u32) -> Option<String>,
) -> Result<Trace, FormatError> {
    let align = match options.alignment {
        None => Alignment::new(common_alignment(lives.iter().map(|life| life.address), most, most)),
        Some(_) => None,
    };
    let mut draft = Draft::new(file, options);
    draft.set_metadata("framework", "pytorch");
    draft.set_metadata("recorder", recorder);
    draft.set_metadata("device", device);
    reserved.iter().for_each(|bytes| draft.set_metadata("torch-reserved-peak-bytes", bytes.to_string()));
    let mut before = 0;
    draft.reserve_buffers(lives.len());
    for life in lives {
        let name = if life.start == 0 {
            before += 1;
            format!("before-{before}")
        } else {
            // No two buffers begin at one event, but one whose allocation is lost begins where another ends.
            let lost = if life.category.as_deref() == Some(BEFORE) { "lost-" } else { "" };
            format!("{lost}{}", life.start)
        };
        let category = life.category.as_deref().map(str::to_owned);
        let label = Label { name, category, op: life.stack.and_then(&op), ..Label::default() };
        let raw = RawBuffer {
            label,
            lower: life.start,
            upper: life.end,
            size: life.size,
            align,
            ..RawBuffer::default()
        };
        draft.append_buffer(raw, ArenaId::default());
    }
    draft.build_trace()
}

/// Sorts the rows by start, then by size from the largest.
pub(crate) fn sort(lives: &mut [Life]) {
    lives.sort_by_key(|life| (life.start, Reverse(life.size), life.address));
}
