//! How large the blocks are that buffers lie in: the history has only what was asked for.
//!
//! A request is rounded up, to 512 bytes or to a part of a power of two (`roundup_power2_divisions`), and takes the
//! beginning of a free block. The rest is cut off where it is worth it, and else given out with the block. Free neighbours
//! are always one block, so a free block ends where the next block in use begins, or its segment ends.
//!
//! # References
//!
//! 1. PyTorch, the caching allocator for CUDA,
//!    <https://github.com/pytorch/pytorch/blob/main/c10/cuda/CUDACachingAllocator.cpp>
//!
//! # Complexity
//!
//! O(n log n) for n buffers and segments.

use std::collections::BTreeMap;

use crate::formats::import::Segment;
use crate::formats::import::pickle::{Fields, Heap, Value};
use crate::formats::import::torch::life::{BLOCK, Life};

const MIB: u64 = 1 << 20;
/// Rounded requests up to this share small segments.
const SMALL: u64 = MIB;
const SMALL_SEGMENT: u64 = 2 * MIB;
/// Larger requests below `LARGE` share segments of `LARGE_SEGMENT`; the others get segments of their own size, rounded.
const LARGE: u64 = 10 * MIB;
const LARGE_SEGMENT: u64 = 20 * MIB;
/// Divisions are set by intervals of sizes, which double from 1 MiB on.
const INTERVALS: [&str; 16] = [
    "1", "2", "4", "8", "16", "32", "64", "128", "256", "512", "1024", "2048", "4096", "8192", "16384",
    "32768",
];

/// The allocator's settings, as far as the sizes of blocks depend on them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rules {
    divisions: [u64; INTERVALS.len()],
    /// Blocks of this size and more are not cut.
    most_cut: Option<u64>,
    is_expandable: bool,
}

impl Rules {
    /// The settings of a snapshot; what it does not say is as by default.
    pub(crate) fn read_settings(heap: &mut Heap, settings: Option<Value>) -> Self {
        let names = ["roundup_power2_divisions", "max_split_size", "expandable_segments"];
        let Some(record) = settings.and_then(|dict| Fields::new(heap, names).read_record(heap, dict)) else {
            return Self::default();
        };
        let [divisions, most_cut, expandable] = record.values;
        let by_interval = divisions.and_then(|dict| Fields::new(heap, INTERVALS).read_record(heap, dict));
        let whole = |value: Option<Value>| heap.whole(value?);
        Self {
            divisions: by_interval.map_or_else(
                || [whole(divisions).unwrap_or(0); INTERVALS.len()],
                |record| record.values.map(|value| whole(value).unwrap_or(0)),
            ),
            most_cut: whole(most_cut),
            is_expandable: whole(expandable) == Some(1),
        }
    }

    /// What a request is rounded up to.
    pub(crate) fn round_request(&self, size: u64) -> u64 {
        let doublings = size.checked_ilog2().unwrap_or(0).saturating_sub(MIB.ilog2());
        let divisions = self.divisions[(doublings as usize).min(INTERVALS.len() - 1)];
        let to = if divisions > 1 && size > BLOCK.saturating_mul(divisions) && !size.is_power_of_two() {
            // A part of the distance between two powers of two.
            (1_u64 << size.ilog2() >> divisions.ilog2()).max(1)
        } else {
            BLOCK
        };
        size.max(1).checked_next_multiple_of(to).unwrap_or(size)
    }

    /// What the device is asked for, at most, if no free block serves a rounded request; `None` past 2^64 - 1. Segments that
    /// grow get whole pages, of the size of a segment that many share.
    pub(crate) fn asked_of_device(&self, rounded: u64) -> Option<u64> {
        if self.is_expandable {
            rounded.checked_next_multiple_of(if rounded <= SMALL { SMALL_SEGMENT } else { LARGE_SEGMENT })
        } else if rounded <= SMALL {
            Some(SMALL_SEGMENT)
        } else if rounded < LARGE {
            Some(LARGE_SEGMENT)
        } else {
            rounded.checked_next_multiple_of(SMALL_SEGMENT)
        }
    }

    /// Whether a rest is cut off a free block.
    fn cuts_rest(&self, is_mapped: bool, rounded: u64, rest: u64) -> bool {
        if is_mapped || rounded <= SMALL {
            rest >= BLOCK
        } else {
            rest > SMALL && self.most_cut.is_none_or(|most| rounded < most)
        }
    }
}

/// In the order in which they come at one step.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Change {
    LifeEnds,
    SegmentEnds,
    SegmentBegins,
    LifeBegins,
}

/// Gives every buffer its block. One that is older than the history keeps the block that it has at the end; if that is
/// not known, it is taken to have no rest.
pub(crate) fn fill_blocks(lives: &mut [Life], segments: &[Segment], rules: &Rules) {
    let mut changes: Vec<(u64, Change, usize)> = Vec::with_capacity(2 * (lives.len() + segments.len()));
    for (index, life) in lives.iter().enumerate() {
        changes.extend([(life.start, Change::LifeBegins, index), (life.end, Change::LifeEnds, index)]);
    }
    for (index, segment) in segments.iter().enumerate() {
        let (start, end) = segment.steps;
        changes.extend([(start, Change::SegmentBegins, index), (end, Change::SegmentEnds, index)]);
    }
    changes.sort_unstable();
    let mut layout = Layout { held: BTreeMap::new(), used: BTreeMap::new() };
    for (_, change, index) in changes {
        match change {
            Change::LifeEnds => remove_index(&mut layout.used, lives[index].address, index),
            Change::SegmentEnds => remove_index(&mut layout.held, segments[index].address, index),
            Change::SegmentBegins => {
                layout.held.insert(segments[index].address, index);
            }
            Change::LifeBegins => {
                let life = &mut lives[index];
                layout.used.insert(life.address, index);
                if life.start > 0 || life.block < life.size {
                    life.block = layout.block_size(life, segments, rules);
                }
            }
        }
    }
}

fn remove_index(all: &mut BTreeMap<u64, usize>, address: u64, index: usize) {
    if all.get(&address) == Some(&index) {
        all.remove(&address);
    }
}

/// What is where at a step, by address.
struct Layout {
    held: BTreeMap<u64, usize>,
    used: BTreeMap<u64, usize>,
}

impl Layout {
    /// The bytes of a block that begins at a buffer's address.
    fn block_size(&self, life: &Life, segments: &[Segment], rules: &Rules) -> u64 {
        let rounded = rules.round_request(life.size);
        let below = self.held.range(..=life.address).next_back().map(|(_, &index)| &segments[index]);
        let is_inside = |segment: &&Segment| segment.address.saturating_add(segment.size) > life.address;
        let Some(segment) = below.filter(is_inside).filter(|_| life.start > 0) else { return rounded };
        // As far as it matters: a segment that grows may have many pieces.
        let enough = life.address.saturating_add(rounded).saturating_add(BLOCK);
        let next = self.used.range(life.address.saturating_add(1)..).next();
        let mut end = segment.address.saturating_add(segment.size);
        while segment.is_mapped && end < enough {
            let Some(piece) = self.held.get(&end).map(|&index| &segments[index]) else { break };
            if !piece.is_mapped || piece.stream != segment.stream || piece.size == 0 {
                break;
            }
            end = end.saturating_add(piece.size);
        }
        let end = next.map_or(end, |(&next, _)| end.min(next));
        let room = end - life.address;
        match room.checked_sub(rounded) {
            Some(rest) if rules.cuts_rest(segment.is_mapped, rounded, rest) => rounded,
            Some(_) => room,
            // No block of the allocator's: the history has a hole.
            None => room.max(life.size),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn segment(address: u64, size: u64, is_mapped: bool) -> Segment {
        Segment { address, size, steps: (0, 9), stream: 0, pool: (0, 0), is_mapped }
    }

    fn blocks(asked: &[(u64, u64)], segments: &[Segment], rules: &Rules) -> Vec<u64> {
        let life = |(start, &(address, size)): (u64, &(u64, u64))| Life {
            start,
            end: 9,
            size,
            address,
            ..Life::default()
        };
        let mut lives: Vec<Life> = (1..).zip(asked).map(life).collect();
        fill_blocks(&mut lives, segments, rules);
        lives.iter().map(|life| life.block).collect()
    }

    #[test]
    fn a_rest_is_cut_off_where_it_is_large_enough() {
        let rules = Rules::default();
        let small = [segment(0, 2 * MIB, false)];
        assert_eq!(blocks(&[(0, 100), (512, 2 * MIB - 1024 - 200)], &small, &rules), [512, 2 * MIB - 512]);
        let large = [segment(0, 20 * MIB, false)];
        // Of 20 MiB, 18.5 go and 1.5 stay; of these 1.2 go and no rest stays.
        let asked = [(0, 37 * MIB / 2), (37 * MIB / 2, 12 * MIB / 10)];
        assert_eq!(blocks(&asked, &large, &rules), [37 * MIB / 2, 3 * MIB / 2]);
        let uncut = Rules { most_cut: Some(8 * MIB), ..Rules::default() };
        assert_eq!(blocks(&[(0, 9 * MIB)], &large, &uncut), [20 * MIB]);
        let mapped = [segment(0, 2 * MIB, true), segment(2 * MIB, 2 * MIB, true)];
        assert_eq!(blocks(&[(0, 3 * MIB), (3 * MIB, MIB - 300)], &mapped, &rules), [3 * MIB, MIB]);
    }

    #[test]
    fn what_comes_next_in_memory_ends_a_block() {
        let large = [segment(0, 20 * MIB, false)];
        let asked = [(4 * MIB, 2 * MIB), (0, 7 * MIB / 2)];
        assert_eq!(blocks(&asked, &large, &Rules::default()), [2 * MIB, 4 * MIB]);
        // Outside of all segments, and past the end of one.
        assert_eq!(blocks(&[(64 * MIB, 100)], &large, &Rules::default()), [512]);
        assert_eq!(blocks(&[(20 * MIB - 256, 300)], &large, &Rules::default()), [300]);
    }

    #[test]
    fn requests_are_rounded_by_the_settings() {
        let rules = Rules::default();
        let rounded = [0, 1, 512, 513, u64::MAX].map(|size| rules.round_request(size));
        assert_eq!(rounded, [512, 512, 512, 1024, u64::MAX]);
        let mut rules = Rules { divisions: [4; 16], ..Rules::default() };
        // Between 1024 and 2048, and between 4096 and 8192: quarters, but from 4 x 512 bytes on only.
        assert_eq!([1200, 4097, 4096, 8191].map(|size| rules.round_request(size)), [1536, 5120, 4096, 8192]);
        rules.divisions[1] = 1;
        assert_eq!(rules.round_request(3 * MIB / 2 + 1), 7 * MIB / 4);
        assert_eq!(rules.round_request(5 * MIB / 2 + 1), 5 * MIB / 2 + 512);
        rules.divisions[15] = u64::MAX;
        assert_eq!(rules.round_request(u64::MAX), u64::MAX);
    }

    #[test]
    fn the_device_is_asked_for_segments() {
        let rules = Rules::default();
        let asked = [512, MIB + 512, 10 * MIB, 11 * MIB].map(|size| rules.asked_of_device(size));
        assert_eq!(asked, [2, 20, 10, 12].map(|mib| Some(mib * MIB)));
        let grows = Rules { is_expandable: true, ..rules };
        let asked = [512, MIB + 512, 10 * MIB, 21 * MIB].map(|size| grows.asked_of_device(size));
        assert_eq!(asked, [2, 20, 20, 40].map(|mib| Some(mib * MIB)));
        assert_eq!(grows.asked_of_device(u64::MAX), None);
    }
}
