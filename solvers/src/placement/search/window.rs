//! Places a few buffers among fixed ones below a ceiling.
//!
//! ```text
//!   ceiling - - - - - - - - - - - - -
//!            |fixed|        | fixed |      freed buffers go into the room that the fixed ones leave
//!     +---+  +-----+   ?    +-------+
//!     | ? |    +-------+
//!     +---+----+   ?   |
//!     | fixed |+-------+
//! ```
//!
//! The exact search answers this, on an instance of its own in which the fixed buffers are pinned.

use planlab_dsa::{Alignment, Buffer, Bytes, Halt, Instance, LiveRange, Offset};

use crate::feasibility::{Problem, Restarts, Verdict};
use crate::placement::search::decoding::Part;
use crate::tick::Tick;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Piece {
    pub(crate) start: u32,
    pub(crate) end: u32,
    pub(crate) size: u64,
    pub(crate) align: u64,
}

/// The most pieces and blocks: above it, a single node takes too long to keep a time limit.
const MOST: usize = 384;

/// Searches for places of all pieces below `ceiling`, clear of the blocks, in at most `nodes` nodes. The blocks must
/// not overlap. If there are several answers, `seed` decides which is found. A plan has the pieces first.
pub(crate) fn search_window(
    (pieces, blocks): (&[Piece], &[Part]),
    ceiling: u64,
    (nodes, seed): (u64, u64),
    tick: &mut Tick<'_>,
) -> Result<Verdict, Halt> {
    if pieces.len() + blocks.len() > MOST {
        return Ok(Verdict::Unknown);
    }
    let Some(problem) = window_problem(pieces, blocks) else { return Ok(Verdict::Unknown) };
    Restarts::new(&problem, seed).decide_capacity(ceiling, nodes, tick)
}

/// `None` if a number is too large for the search.
pub(crate) fn window_problem(pieces: &[Piece], blocks: &[Part]) -> Option<Problem> {
    Problem::new(&instance(pieces, blocks)?)
}

/// The pieces, and the blocks as pinned buffers.
pub(crate) fn instance(pieces: &[Piece], blocks: &[Part]) -> Option<Instance> {
    let buffer = |start: u32, end: u32, size: u64| {
        Some(Buffer::new(Bytes::new(size), LiveRange::new(start, end).ok()?))
    };
    let mut buffers = Vec::with_capacity(pieces.len() + blocks.len());
    for piece in pieces {
        let align = Alignment::new(piece.align)?;
        buffers.push(buffer(piece.start, piece.end, piece.size)?.with_align(align));
    }
    for block in blocks {
        let pinned = buffer(block.start, block.end, block.high - block.low)?;
        buffers.push(pinned.with_pin(Offset::new(block.low)));
    }
    Instance::from_buffers(buffers).ok()
}

/// Covers the same blocks by fewer ones, with the same room for the pieces: merges adjacent blocks, closes gaps that
/// are too narrow for every piece, and cuts off what reaches above the ceiling. The result does not overlap.
pub(crate) fn merge_blocks(blocks: &[Part], pieces: &[Piece], ceiling: u64) -> Vec<Part> {
    let mut times: Vec<u32> = pieces.iter().flat_map(|piece| [piece.start, piece.end]).collect();
    times.sort_unstable();
    times.dedup();
    let mut done: Vec<Part> = Vec::new();
    let mut open: Vec<Part> = Vec::new();
    for section in times.windows(2) {
        let (start, end) = (section[0], section[1]);
        let live = pieces.iter().filter(|piece| piece.start < end && start < piece.end);
        let narrowest = live.map(|piece| piece.size).min();
        let there = blocks.iter().filter(|block| block.start < end && start < block.end);
        let spans = narrowest.map_or_else(Vec::new, |least| closed_addresses(there, least, ceiling));
        let new = spans.into_iter().map(|(low, high)| {
            let earlier = open.iter().find(|block| (block.low, block.high, block.end) == (low, high, start));
            Part { start: earlier.map_or(start, |block| block.start), end, low, high }
        });
        let new: Vec<Part> = new.collect();
        let goes_on = |block: &Part| new.iter().any(|b| (b.low, b.start) == (block.low, block.start));
        done.extend(open.iter().filter(|block| !goes_on(block)));
        open = new;
    }
    done.extend(open);
    done
}

/// The addresses of blocks as ascending ranges, at least `least` apart and below `ceiling`.
fn closed_addresses<'b>(blocks: impl Iterator<Item = &'b Part>, least: u64, ceiling: u64) -> Vec<(u64, u64)> {
    let mut all: Vec<(u64, u64)> = blocks.map(|block| (block.low, block.high.min(ceiling))).collect();
    all.retain(|&(low, high)| low < high);
    all.sort_unstable();
    let mut closed: Vec<(u64, u64)> = Vec::new();
    for (low, high) in all {
        match closed.last_mut() {
            Some(last) if low < last.1 + least => last.1 = last.1.max(high),
            None if low < least => closed.push((0, high)),
            _ => closed.push((low, high)),
        }
    }
    if let Some(last) = closed.last_mut().filter(|last| ceiling < last.1 + least) {
        last.1 = ceiling;
    }
    closed
}

#[cfg(test)]
mod tests {
    use planlab_dsa::testing::brute_force_without_hand_over;
    use proptest::prelude::*;

    use super::*;
    use crate::placement::testing::{aligned, test_buffer};

    proptest! {
        #[test]
        fn it_finds_a_place_exactly_if_there_is_one(
            rows in prop::collection::vec((0_u32..8, 1_u32..5, 1_u64..7, 1_u64..3), 1..7),
            blocks in prop::collection::vec((0_u32..3, 1_u32..3, 0_u64..6, 1_u64..4), 0..3),
            ceiling in 3_u64..18,
            seed in any::<u64>(),
        ) {
            let pieces: Vec<Piece> = rows.iter().map(|&(start, width, size, align)| {
                Piece { start, end: start + width, size, align }
            }).collect();
            // One block every three steps: they never overlap.
            let blocks: Vec<Part> = blocks.iter().zip(0_u32..).map(|(&(start, width, low, size), at)| {
                Part { start: 5 * at + start, end: 5 * at + start + width, low, high: low + size }
            }).collect();
            let mut buffers: Vec<Buffer> = pieces.iter().map(|p| aligned(p.size, p.start, p.end, p.align)).collect();
            let pinned = |b: &Part| test_buffer(b.high - b.low, b.start, b.end).with_pin(Offset::new(b.low));
            buffers.extend(blocks.iter().map(pinned));
            let instance = Instance::from_buffers(buffers).expect("valid");
            prop_assume!(blocks.iter().all(|block| block.high <= ceiling));
            let fits = brute_force_without_hand_over(&instance).is_some_and(|least| least.get() <= ceiling);
            let merged = merge_blocks(&blocks, &pieces, ceiling);
            match search_window((&pieces, &merged), ceiling, (u64::MAX, seed), &mut |_| Ok(())).expect("no limit") {
                Verdict::Feasible(offsets) => {
                    prop_assert!(fits);
                    let pins = blocks.iter().map(|block| block.low);
                    let offsets = offsets.into_iter().take(pieces.len()).chain(pins).map(Offset::new);
                    let plan = planlab_dsa::Plan::from_offsets(offsets.collect::<Vec<_>>());
                    let verified = instance.verify(plan);
                    prop_assert!(verified.is_ok_and(|plan| plan.height().get() <= ceiling));
                }
                Verdict::Infeasible => prop_assert!(!fits),
                Verdict::Unknown => prop_assert!(false, "there was no limit"),
            }
        }
    }
}
