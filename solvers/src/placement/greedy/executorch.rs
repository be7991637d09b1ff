//! The greedy planner of ExecuTorch: buckets as large as their first buffer.
//!
//! The buffers are taken from the largest to the smallest. The first bucket that is free during the whole live range
//! takes the buffer at its bottom. Failing that, the first bucket takes it that has room above all that overlaps it in
//! time. Failing that, the buffer opens a bucket of its own size. In the end the buckets are stacked.
//!
//! ```text
//!      address
//!        ^  +---+            a opens the first bucket; b finds it free;
//!        |  | d |            c has room above b; d overlaps a, too large
//!        |  +---+---+---     to leave room, and opens the second
//!        |  | a |   | c
//!        |  |   +---+---
//!        |  |   |   b
//!        +--+---+--------> step
//! ```
//!
//! # References
//!
//! 1. ExecuTorch, `exir/memory_planning.py` (`greedy`, `pick_shared_obj`), 2025.
//!
//! # Complexity
//!
//! O(n b log n) if b buckets are at least twice as large as a buffer; the published loop visits every buffer of every
//! bucket.
//!
//! # Deviations from the paper
//!
//! - Ties of size are broken by the lower id; in the original by the iteration order of a set.
//! - Sizes are sorted after rounding up to the alignment; in the original before that.
//! - Each buffer has its own alignment; the original has one for all. A bucket begins at a multiple of its first
//!   buffer's alignment, and takes only buffers whose alignment divides that. The original counts the padding at the
//!   end of the arena; here it is not part of the height.
//! - Live ranges are half-open here and closed in the original, with the same conflicts.
//! - *Default: published.* Whether a buffer may lie above others in a bucket is a parameter in both:
//!   [`Executorch::with_stacking`].
//! - Arenas are planned one by one, as in the original; capacities are checked once everything is placed. Pins and
//!   kept-apart pairs are not honoured, pauses and in-place permissions not used.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::ops::Range;

use planlab_dsa::{Alignment, Buffer, Descriptor, Halt, Honours, LiveRange, Offset, Plan, Planner, Run};

use crate::demands::fits_arenas;
use crate::placement::order::sort_by;
use crate::trees::{Blocked, Columns, Occupancy, Span};

/// Buckets by size; key `executorch`.
#[derive(Clone, Copy, Debug)]
pub struct Executorch {
    stacking: bool,
}

impl Default for Executorch {
    fn default() -> Self {
        Self { stacking: true }
    }
}

impl Executorch {
    /// Whether a buffer may lie above others of its bucket that it overlaps in time. Default: yes.
    #[must_use]
    pub const fn with_stacking(mut self, yes: bool) -> Self {
        self.stacking = yes;
        self
    }
}

impl Planner for Executorch {
    fn descriptor(&self) -> Descriptor {
        Descriptor {
            key: "executorch".into(),
            summary: "buckets as large as their first buffer, largest first, ties by id".into(),
            honours: Honours { alignment: true, arenas: true, work_limit: true, ..Honours::default() },
            reference: "ExecuTorch, exir/memory_planning.py, 2025",
            complexity: "n b log n for b buckets",
            practical: Some(100_000),
            ..Descriptor::default()
        }
    }

    fn plan(&self, run: &mut Run<'_>) -> Result<(), Halt> {
        let instance = run.instance();
        let columns = Columns::of_live_ranges(instance);
        let shelf = Shelf { buckets: Vec::new(), taken: Occupancy::new(columns.len()) };
        let mut arenas = vec![shelf; instance.arenas().len()];
        let mut places = vec![BucketPlace::default(); instance.len()];
        for id in sort_by(instance, |buffer| Reverse(padded_size(buffer))) {
            let buffer = instance.buffer(id);
            let (shelf, columns) = (&mut arenas[buffer.arena.index()], columns.columns_of(buffer.live));
            let (place, looks) = shelf.find_place(buffer, columns.clone(), self.stacking);
            run.tick(looks + 1)?;
            shelf.put_buffer(buffer, columns, place);
            places[id.index()] = place;
        }
        let bases: Vec<Vec<u64>> = arenas.iter().map(Shelf::bucket_bases).collect();
        let offset = |(buffer, place): (&Buffer, &BucketPlace)| {
            Offset::new(bases[buffer.arena.index()][place.bucket] + place.offset)
        };
        let offsets: Vec<Offset> = instance.buffers().iter().zip(&places).map(offset).collect();
        if fits_arenas(instance, &offsets) { run.offer(Plan::from_offsets(offsets)) } else { Ok(()) }
    }
}

/// The size in bytes, rounded up to the alignment.
pub(super) fn padded_size(buffer: &Buffer) -> u64 {
    buffer.align.round_up(buffer.size.get()).expect("an instance leaves room for all padding")
}

/// Stacks blocks in their order and returns their lowest offsets; each has a height in bytes and an alignment.
pub(super) fn stack_blocks(blocks: impl Iterator<Item = (u64, Alignment)>) -> Vec<u64> {
    let mut top = 0;
    let base = |(height, align): (u64, Alignment)| {
        let base = align.round_up(top).expect("an instance leaves room for all padding");
        top = base + height;
        base
    };
    blocks.map(base).collect()
}

/// A buffer's place: a bucket, and an offset in it in bytes.
#[derive(Clone, Copy, Debug, Default)]
struct BucketPlace {
    bucket: usize,
    offset: u64,
}

/// The buckets of an arena, the largest first.
#[derive(Clone, Debug)]
struct Shelf {
    buckets: Vec<Bucket>,
    /// When each bucket is in use; bucket numbers stand in for addresses.
    taken: Occupancy,
}

impl Shelf {
    /// A place for a buffer (behind the last bucket if none has room), and the number of buckets examined.
    fn find_place(&self, buffer: &Buffer, columns: Range<usize>, stacking: bool) -> (BucketPlace, u64) {
        if let Some(bucket) = self.free_bucket(buffer, columns) {
            return (BucketPlace { bucket, offset: 0 }, 0);
        }
        // The buffers that it overlaps are at least as large, and leave no room in a smaller bucket.
        let bytes = padded_size(buffer);
        let large = self.buckets.partition_point(|bucket| stacking && bucket.size / 2 >= bytes);
        let above =
            |bucket: usize| Some(BucketPlace { bucket, offset: self.buckets[bucket].offset_above(buffer)? });
        let place = (0..large).find_map(above);
        (place.unwrap_or(BucketPlace { bucket: self.buckets.len(), offset: 0 }), large as u64)
    }

    /// The first bucket that may hold a buffer and in which nothing overlaps it in time.
    fn free_bucket(&self, buffer: &Buffer, columns: Range<usize>) -> Option<usize> {
        let mut blocked = Blocked::default();
        self.taken.block_window(columns, Span { start: 0, end: 1 }, &mut blocked);
        let mut from = 0;
        loop {
            let number = blocked.lowest_free(from, Alignment::ONE);
            let index = usize::try_from(number).ok()?;
            if self.buckets.get(index)?.may_hold(buffer) {
                return Some(index);
            }
            from = number + 1;
        }
    }

    fn put_buffer(&mut self, buffer: &Buffer, columns: Range<usize>, place: BucketPlace) {
        if place.bucket == self.buckets.len() {
            self.buckets.push(Bucket::from_buffer(buffer));
        }
        self.buckets[place.bucket].put_buffer(buffer, place.offset);
        let number = place.bucket as u64;
        self.taken.insert_rectangle(columns, Span { start: number, end: number + 1 });
    }

    fn bucket_bases(&self) -> Vec<u64> {
        stack_blocks(self.buckets.iter().map(|bucket| (bucket.height, bucket.align)))
    }
}

/// A part of an arena that is as large as its first buffer.
#[derive(Clone, Debug)]
struct Bucket {
    size: u64,
    align: Alignment,
    height: u64,
    outline: Outline,
}

impl Bucket {
    fn from_buffer(buffer: &Buffer) -> Self {
        Self { size: padded_size(buffer), align: buffer.align, height: 0, outline: Outline::default() }
    }

    const fn may_hold(&self, buffer: &Buffer) -> bool {
        buffer.align.divides(self.align.get())
    }

    /// The lowest offset above all that a buffer overlaps in time, if there is room.
    fn offset_above(&self, buffer: &Buffer) -> Option<u64> {
        if !self.may_hold(buffer) {
            return None;
        }
        let offset = buffer.align.round_up(self.outline.highest_level(buffer.live))?;
        (offset.checked_add(padded_size(buffer))? <= self.size).then_some(offset)
    }

    fn put_buffer(&mut self, buffer: &Buffer, offset: u64) {
        self.outline.raise_levels(buffer.live, offset + padded_size(buffer));
        self.height = self.height.max(offset + buffer.size.get());
    }
}

/// The height in use in a bucket, from each step up to the next one listed.
#[derive(Clone, Debug, Default)]
struct Outline {
    levels: BTreeMap<u32, u64>,
}

impl Outline {
    fn level_at(&self, step: u32) -> u64 {
        self.levels.range(..=step).next_back().map_or(0, |(_, &level)| level)
    }

    fn highest_level(&self, live: LiveRange) -> u64 {
        let (start, end): (u32, u32) = live.into();
        let later = self.levels.range(start..end).map(|(_, &level)| level);
        later.fold(self.level_at(start), u64::max)
    }

    /// Raises a range of steps to a level at or above its current one.
    fn raise_levels(&mut self, live: LiveRange, to: u64) {
        let (start, end): (u32, u32) = live.into();
        let after = self.level_at(end);
        while let Some((&step, _)) = self.levels.range(start..end).next() {
            self.levels.remove(&step);
        }
        self.levels.insert(start, to);
        self.levels.insert(end, after);
    }
}

#[cfg(test)]
mod tests {
    use planlab_dsa::testing::{Shape, instances};
    use planlab_dsa::{BufferId, Instance};
    use proptest::prelude::*;

    use super::*;
    use crate::placement::testing::{aligned, place_buffers, planned_offsets};

    #[test]
    fn a_bucket_takes_only_what_is_aligned_with_it() {
        let all = vec![aligned(6, 0, 1, 3), aligned(4, 1, 2, 4), aligned(3, 1, 2, 3)];
        assert_eq!(place_buffers(&Executorch::default(), all), [0, 8, 0]);
    }

    /// The published loops over buckets; a bucket is a size and the buffers in it with their offsets.
    fn literal(instance: &Instance, stacking: bool) -> Vec<u64> {
        let size = |id: BufferId| padded_size(instance.buffer(id));
        let mut order: Vec<BufferId> = instance.ids().collect();
        order.sort_by_key(|&id| Reverse(size(id)));
        let mut buckets: Vec<(u64, Vec<(BufferId, u64)>)> = Vec::new();
        for id in order {
            let overlaps = |other: BufferId| instance.buffer(other).live.overlaps(instance.buffer(id).live);
            let end = |bucket: &(u64, Vec<(BufferId, u64)>)| {
                let there = bucket.1.iter().filter(|(other, _)| overlaps(*other));
                there.map(|&(other, offset)| offset + size(other)).max().unwrap_or(0)
            };
            let free = buckets.iter().position(|bucket| end(bucket) == 0);
            let above = || buckets.iter().position(|bucket| stacking && end(bucket) + size(id) <= bucket.0);
            match free.or_else(above) {
                Some(bucket) => {
                    let offset = end(&buckets[bucket]);
                    buckets[bucket].1.push((id, offset));
                }
                None => buckets.push((size(id), vec![(id, 0)])),
            }
        }
        let mut offsets = vec![0; instance.len()];
        let mut base = 0;
        for (size, all) in buckets {
            all.iter().for_each(|&(id, offset)| offsets[id.index()] = base + offset);
            base += size;
        }
        offsets
    }

    proptest! {
        #[test]
        fn its_plans_are_those_of_the_published_loops(
            plain in instances(Shape::plain_buffers().with_max_buffers(60).with_max_steps(30).with_max_size(60)),
            align in prop::sample::select(vec![1_u64, 4, 6]),
            stacking in any::<bool>(),
        ) {
            let align = Alignment::new(align).expect("positive");
            let aligned = plain.buffers().iter().map(|buffer| buffer.clone().with_align(align));
            let instance = Instance::from_buffers(aligned.collect()).expect("valid");
            let planner = Executorch::default().with_stacking(stacking);
            prop_assert_eq!(planned_offsets(&planner, &instance), literal(&instance, stacking));
        }
    }
}
