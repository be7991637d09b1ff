//! Windows of steps, without the buffers that are live in all of them.
//!
//! Leaving buffers out, and cutting live ranges, makes a problem easier, never harder. In a window, most buffers are
//! usually live from its first step to its last. Such a buffer conflicts with all others. So in any plan of the window
//! it can go to the bottom, and everything that was below it moves up by its size. Therefore it is taken out, and the
//! capacity shrinks by its size; the rest is often small.
//!
//! ```text
//!      |  window   |
//!    --+-----------+--           +-----------+
//!      | all of it |     ==>     | +--+ +--+ |   capacity - size
//!    --+-+--+-+--+-+--           +-+--+-+--+-+
//! ```
//!
//! # Complexity
//!
//! O(n log n) for the peaks and O(n) for each window; windows grow by a half from one to the next.

use std::collections::BTreeSet;

use planlab_dsa::{Buffer, Halt, Instance, LiveRange};

use super::view::{clip_to_steps, section_crests};
use crate::tick::Tick;

/// The number of peaks around which windows grow.
const PEAKS: usize = 4;
/// Sections in the smallest window.
const SMALLEST: usize = 4;

/// The remaining problem of a window.
pub(super) struct Core {
    pub(super) inner: Instance,
    pub(super) steps: LiveRange,
    /// Bytes of the buffers taken out: a plan of the window is higher than one of `inner` by this.
    pub(super) taken: u64,
}

/// Windows around the highest peaks with at most `most` remaining buffers, the small ones first.
pub(super) fn cut_cores(arena: &Instance, most: usize, tick: &mut Tick<'_>) -> Result<Vec<Core>, Halt> {
    let crests = section_crests(arena.buffers().iter());
    let mut peaks = peak_sections(&crests);
    let (mut all, mut seen) = (Vec::new(), BTreeSet::new());
    let mut width = SMALLEST;
    while !peaks.is_empty() {
        let mut growing = Vec::new();
        for peak in peaks {
            tick(arena.len() as u64 / 16 + 1)?;
            let first = peak.saturating_sub(width / 2);
            let end = (first + width).min(crests.len());
            let Ok(steps) = LiveRange::new(crests[first].0, crests[end - 1].0 + 1) else { continue };
            if (first, end) != (0, crests.len()) {
                growing.push(peak);
            }
            if seen.insert((first, end)) {
                match Core::cut_window(arena, steps, most) {
                    Kept::Some(core) => all.push(core),
                    Kept::None => {}
                    Kept::TooMany => growing.retain(|&other| other != peak),
                }
            }
        }
        peaks = growing;
        width += width.div_ceil(2);
    }
    Ok(all)
}

/// The sections with the most bytes; no two are adjacent.
fn peak_sections(crests: &[(u32, u64)]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..crests.len()).collect();
    order.sort_by_key(|&number| (std::cmp::Reverse(crests[number].1), number));
    let mut peaks: Vec<usize> = Vec::new();
    for number in order {
        if peaks.iter().all(|peak| peak.abs_diff(number) > SMALLEST) {
            peaks.push(number);
        }
        if peaks.len() == PEAKS {
            break;
        }
    }
    peaks
}

/// The remaining problem of a window, if any.
enum Kept {
    Some(Core),
    /// Every buffer was taken out.
    None,
    TooMany,
}

impl Core {
    fn cut_window(arena: &Instance, steps: LiveRange, most: usize) -> Kept {
        // A buffer that is paused all the time conflicts with no other, not even with those taken out.
        let inside = |buffer| {
            clip_to_steps(buffer, steps).map(without_windows).filter(|b| b.active_pieces().next().is_some())
        };
        let mut kept: Vec<Buffer> = arena.buffers().iter().filter_map(inside).collect();
        let common = kept.iter().fold(1, |most, buffer| most.max(buffer.align.get()));
        let is_free =
            kept.iter().all(|buffer| buffer.pin.is_none() && common.is_multiple_of(buffer.align.get()));
        let mut taken = 0;
        if is_free {
            kept.retain(|buffer| {
                let through = buffer.live == steps && buffer.pauses.is_empty();
                let goes = through && buffer.size.get().is_multiple_of(common);
                taken += if goes { buffer.size.get() } else { 0 };
                !goes
            });
        }
        if kept.len() > most {
            return Kept::TooMany;
        }
        match Instance::from_buffers(kept) {
            Ok(inner) if !inner.is_empty() => Kept::Some(Self { inner, steps, taken }),
            _ => Kept::None,
        }
    }
}

/// The buffer with no bytes in use in its pauses.
fn without_windows(mut buffer: Buffer) -> Buffer {
    buffer.pauses.iter_mut().for_each(|pause| pause.window = None);
    buffer
}
