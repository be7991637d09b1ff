//! One sweep over the steps with the active bytes in an ordered map: the first two buffers that overlap.
//!
//! Every buffer is cut into its [pieces](crate::Buffer::active_pieces); a piece is a rectangle of steps and addresses. Each
//! step first removes the pieces that end, then inserts those that begin. A piece overlaps an active one exactly if it
//! overlaps its neighbour below or above.
//!
//! # Complexity
//!
//! O(n log n) time and O(n) memory for n pieces.

use std::collections::BTreeMap;

use crate::{ArenaId, BufferId, Instance, LiveRange, Offset};

/// A range of steps, a range of addresses in an arena, and the piece's buffer.
#[derive(Clone, Copy)]
pub(crate) struct Rectangle {
    start: u32,
    end: u32,
    low: u64,
    high: u64,
    arena: ArenaId,
    pub(crate) id: BufferId,
}

/// The pieces of all buffers at their offsets; those that are late begin one step later.
pub(crate) fn rectangles(
    instance: &Instance,
    offsets: &[Offset],
    is_late: impl Fn(BufferId) -> bool,
) -> Vec<Rectangle> {
    let mut all = Vec::with_capacity(instance.len());
    for ((buffer, offset), id) in instance.buffers().iter().zip(offsets).zip(instance.ids()) {
        let first = buffer.live.start().get() + u32::from(is_late(id));
        for piece in buffer.active_pieces() {
            let (start, end) = (piece.steps.start().get().max(first), piece.steps.end().get());
            if start < end {
                let low = offset.get() + piece.window.start.get();
                all.push(Rectangle { start, end, low, high: low + piece.bytes(), arena: buffer.arena, id });
            }
        }
    }
    all
}

/// Two buffers in use at one step that share an address.
pub(crate) struct Overlap {
    /// The buffer that was placed first.
    pub(crate) first: BufferId,
    /// The buffer that overlaps it.
    pub(crate) second: BufferId,
    /// The steps at which both overlapping parts are in use.
    pub(crate) steps: LiveRange,
    /// The first shared address, and the end of the shared range.
    pub(crate) bytes: (Offset, Offset),
}

/// The active rectangles of one arena: from the first address to the end and the index.
type Active = BTreeMap<u64, (u64, u32)>;

/// Looks for two rectangles that overlap; of several pairs, for one at the earliest step. O(n log n).
pub(crate) fn first_overlap(mut rectangles: Vec<Rectangle>) -> Result<(), Overlap> {
    rectangles.sort_unstable_by_key(|r| (r.start, r.id));
    let mut ends: Vec<(u32, u32)> = rectangles.iter().map(|r| r.end).zip(0..).collect();
    ends.sort_unstable();
    let mut ends = ends.into_iter().peekable();
    let arenas = rectangles.iter().map(|r| r.arena.index() + 1).max().unwrap_or(0);
    let mut active = vec![Active::new(); arenas];
    for (new, index) in rectangles.iter().zip(0_u32..) {
        while let Some((_, over)) = ends.next_if(|&(end, _)| end <= new.start) {
            let over = &rectangles[over as usize];
            active[over.arena.index()].remove(&over.low);
        }
        insert(&mut active[new.arena.index()], &rectangles, index)?;
    }
    Ok(())
}

fn insert(active: &mut Active, rectangles: &[Rectangle], index: u32) -> Result<(), Overlap> {
    let new = &rectangles[index as usize];
    // Active rectangles are disjoint, so among those that begin below `high` only the last can reach past `low`.
    if let Some((_, &(high, there))) = active.range(..new.high).next_back()
        && high > new.low
    {
        return Err(overlap(&rectangles[there as usize], new));
    }
    active.insert(new.low, (new.high, index));
    Ok(())
}

fn overlap(there: &Rectangle, new: &Rectangle) -> Overlap {
    let steps = LiveRange::new(there.start.max(new.start), there.end.min(new.end));
    Overlap {
        first: there.id,
        second: new.id,
        steps: steps.expect("both are active at the later one's start"),
        bytes: (Offset::new(there.low.max(new.low)), Offset::new(there.high.min(new.high))),
    }
}
