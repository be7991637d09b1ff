//! What PyTorch writes about its memory: snapshots of its allocator for GPUs, and traces of its profiler.

mod annotations;
mod archive;
mod blocks;
mod device;
mod event;
mod frames;
mod lives;
mod profiler;
mod segments;
mod snapshot;

pub(super) use archive::BEHIND as BEHIND_ENTRY;
pub(super) use profiler::READER as PROFILER;
pub(super) use snapshot::READER as SNAPSHOT;

use std::cmp::Reverse;
use std::sync::Arc;

use planlab_dsa::{Alignment, ArenaId, Label};

use super::super::draft::{Draft, RawBuffer};
use super::super::{FormatError, ReadOptions, Trace};

/// A buffer of a recording: half-open steps, the number of the event that made it, from 1; 0 is before all of them.
#[derive(Clone, Debug, Default)]
struct Life {
    start: u64,
    end: u64,
    size: u64,
    address: u64,
    /// Bytes of the block that it lies in; 0 if that is not known.
    block: u64,
    stream: u64,
    /// When it was made, in microseconds; 0 if that is not known.
    time: u64,
    category: Option<Arc<str>>,
    /// The call stack or the operation that made it, by number.
    stack: Option<u32>,
}

/// Category of buffers that are older than the recording.
pub(crate) const BEFORE: &str = "before-recording";

/// The trace of buffers in their order; `op` says what to call their stacks. Offsets are aligned as the addresses are, to
/// `most` bytes at most, unless the options say otherwise.
fn trace(
    file: &str,
    options: &ReadOptions,
    metadata: &[(&str, String)],
    (lives, most): (Vec<Life>, u64),
    op: impl Fn(u32) -> Option<String>,
) -> Result<Trace, FormatError> {
    let align = if options.alignment.is_none() { alignment(&lives, most) } else { None };
    let mut draft = Draft::new(file, options);
    metadata.iter().for_each(|(key, value)| draft.meta(key, value.clone()));
    let mut before = 0;
    draft.reserve(lives.len());
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
        draft.buffer(raw, ArenaId::default());
    }
    draft.finish()
}

/// The largest power of two up to `most` that divides all addresses.
fn alignment(lives: &[Life], most: u64) -> Option<Alignment> {
    let bits = lives.iter().fold(most, |bits, life| bits | life.address);
    Alignment::new(1 << bits.trailing_zeros().min(63))
}

/// Sorts the rows by start, then by size from the largest.
fn sort(lives: &mut [Life]) {
    lives.sort_by_key(|life| (life.start, Reverse(life.size), life.address));
}
