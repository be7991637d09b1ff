//! Gergov's approximation: never higher than three times the load.
//!
//! Phase 1 stacks buffers on *segments*. A segment is a range of steps with a height; at first one segment at 0 spans
//! all time. Phase 1 always takes the lowest segment (the leftmost of equals). Of the buffers that overlap it and no
//! other segment, it puts the first by start on it, and the segment splits. If there is no such buffer, it drops the
//! segment. A buffer may stick out into steps whose segment was dropped, and overlap another one there. Phase 2 gives
//! buffers that overlap different colours, and each colour its own band of addresses.
//!
//! ```text
//!  address
//!    ^   +-----------+          The segment between p and q was dropped: nothing lay within it. Then b was
//!    |   |  a   +----|----+     put on q and a on p; both stick out into that gap and overlap there, so a
//!    |   +---+  |////| b  |     gets the second colour.
//!    |   | p |  +----|----+
//!    |   |   |       | q  |     Where a buffer lies on its own segment nothing ever overlaps it: three
//!    +---+---+-------+----+-->  colours are enough.
//! ```
//!
//! No graph is built. A new buffer can overlap only two kinds of earlier buffers: those on top of the next segment to
//! the left and of the next one to the right. Both segments still exist and are no lower than its own. The buffers
//! below their top buffers end too low, and any other that reaches the new one would have to cross one of these.
//!
//! # References
//!
//! 1. J. Gergov, *Algorithms for compile-time memory optimization*, SODA 1999, pages 907-908.
//!
//! # Complexity
//!
//! O(n log n) time and O(n) memory, no matter how many buffers are live at once: a step of phase 1 either puts a
//! buffer, which adds at most two segments, or drops a segment. A buffer that overlaps a segment and no other lies
//! between its two neighbours. A tree over the starts that stores the ends finds the first of those by start.
//!
//! # Deviations from the paper
//!
//! - Ties, which the paper leaves open: the leftmost of the lowest segments; the earliest start, then the
//!   lower id.
//! - Sizes are rounded up to a multiple of every alignment, and three times the load refers to the rounded sizes. If
//!   these, or the bands, exceed 64 bits, buffers are placed by first fit in the order of band and height.
//! - Pauses are not used: the load is that of whole live ranges.
//! - `gergov/squeezed` drops every buffer to the lowest free offset, in the order of the offsets. This raises no
//!   buffer.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::ops::Range;

use planlab_dsa::{
    Alignment, BufferId, Descriptor, Guarantee, Halt, Honours, Instance, Offset, Plan, Planner, Run,
    greatest_common_divisor,
};

use crate::placement::Order;
use crate::placement::greedy::{Rule, plan_in_order};
use crate::placement::order::by_offset;
use crate::trees::FirstAtMost;

/// Stacks buffers on segments, then uses at most three bands; keys `gergov` and `gergov/squeezed`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Gergov {
    is_squeezed: bool,
}

impl Gergov {
    /// Whether every buffer drops to the lowest free offset in the end. Default: no, as published.
    #[must_use]
    pub const fn with_squeeze(mut self, yes: bool) -> Self {
        self.is_squeezed = yes;
        self
    }
}

impl Planner for Gergov {
    fn descriptor(&self) -> Descriptor {
        let (key, summary) = if self.is_squeezed {
            ("gergov/squeezed", "the plan of `gergov`, every buffer moved down as far as it goes")
        } else {
            ("gergov", "stacks on the lowest segment, then a band of addresses for each of three colours")
        };
        Descriptor {
            key: key.into(),
            summary: summary.into(),
            guarantee: Guarantee::Ratio(3.0),
            honours: Honours { alignment: true, work_limit: true, ..Honours::default() },
            reference: "Gergov 1999, SODA, pages 907-908",
            complexity: "n log n",
            ..Descriptor::default()
        }
    }

    fn plan(&self, run: &mut Run<'_>) -> Result<(), Halt> {
        let instance = run.instance();
        let padded = padded_sizes(instance);
        let sizes = padded.clone().unwrap_or_else(|| buffer_sizes(instance));
        let places = Stacks::new(instance, &sizes).fill_segments(|work| run.tick(work))?;
        let offsets = padded.and_then(|sizes| in_bands(&places, &sizes));
        match offsets.filter(|_| !self.is_squeezed) {
            Some(offsets) => run.offer(Plan::from_offsets(offsets)),
            None => {
                let order: Vec<BufferId> = by_offset(&places).into_iter().map(BufferId::new).collect();
                plan_in_order(run, &order, Rule::FirstFit)
            }
        }
    }
}

fn buffer_sizes(instance: &Instance) -> Vec<u64> {
    instance.buffers().iter().map(|buffer| buffer.size.get()).collect()
}

/// Sizes rounded up to the least common multiple of all alignments; `None` if their sum exceeds 64 bits.
fn padded_sizes(instance: &Instance) -> Option<Vec<u64>> {
    let mut aligns = instance.buffers().iter().map(|buffer| buffer.align.get());
    let unit = aligns
        .try_fold(1_u64, |unit, align| unit.checked_mul(align / greatest_common_divisor(unit, align)))?;
    let unit = Alignment::new(unit)?;
    let mut total = 0_u64;
    let pad = |size: u64| {
        let size = unit.round_up(size)?;
        total = total.checked_add(size)?;
        Some(size)
    };
    buffer_sizes(instance).into_iter().map(pad).collect()
}

/// The place of a buffer: the number of its band, and its height in it.
type Place = (u8, u64);

/// The offsets, with bands all as high as the highest end; `None` if they exceed 64 bits.
fn in_bands(places: &[Place], sizes: &[u64]) -> Option<Vec<Offset>> {
    let band = places.iter().zip(sizes).map(|((_, height), size)| height + size).max().unwrap_or(0);
    let offset = |&(colour, height): &Place, size: &u64| {
        let offset = band.checked_mul(colour.into())?.checked_add(height)?;
        offset.checked_add(*size).map(|_| Offset::new(offset))
    };
    places.iter().zip(sizes).map(|(place, size)| offset(place, size)).collect()
}

/// A segment, with the buffer on top of it.
#[derive(Clone, Copy, Debug)]
struct Segment {
    left: u32,
    right: u32,
    height: u64,
    top: Option<BufferId>,
}

/// The remaining segments, and the buffers on them.
struct Stacks<'i> {
    instance: &'i Instance,
    sizes: &'i [u64],
    /// By the left end.
    segments: BTreeMap<u32, Segment>,
    /// The same by height, then by left end.
    lowest: BinaryHeap<Reverse<(u64, u32)>>,
    places: Vec<Place>,
}

impl<'i> Stacks<'i> {
    fn new(instance: &'i Instance, sizes: &'i [u64]) -> Self {
        let all = Segment { left: 0, right: instance.horizon().get(), height: 0, top: None };
        let mut this = Self {
            instance,
            sizes,
            segments: BTreeMap::new(),
            lowest: BinaryHeap::new(),
            places: vec![Place::default(); sizes.len()],
        };
        this.add_segment(all);
        this
    }

    /// Puts every buffer on a segment; returns their places.
    fn fill_segments<E>(mut self, mut tick: impl FnMut(u64) -> Result<(), E>) -> Result<Vec<Place>, E> {
        let mut unplaced = Unplaced::new(self.instance);
        while let Some(segment) = self.take_lowest() {
            tick(1)?;
            let [before, after] = self.neighbour_segments(segment.left);
            let from = before.map_or(0, |before| before.right);
            let to = after.map_or(u32::MAX, |after| after.left);
            if let Some(id) = unplaced.take_within(from..to) {
                let colour = self.lowest_colour(id, segment.height, before, after);
                self.places[id.index()] = (colour, segment.height);
                self.put_buffer(id, segment);
            }
        }
        Ok(self.places)
    }

    fn take_lowest(&mut self) -> Option<Segment> {
        let Reverse((_, left)) = self.lowest.pop()?;
        self.segments.remove(&left)
    }

    fn add_segment(&mut self, segment: Segment) {
        if segment.left < segment.right {
            self.lowest.push(Reverse((segment.height, segment.left)));
            self.segments.insert(segment.left, segment);
        }
    }

    /// The next segments to the left and to the right of one that was taken out.
    fn neighbour_segments(&self, left: u32) -> [Option<Segment>; 2] {
        let before = self.segments.range(..left).next_back().map(|(_, &segment)| segment);
        [before, self.segments.range(left..).next().map(|(_, &segment)| segment)]
    }

    /// The lowest colour that no overlapping buffer has, for a buffer at `height`.
    fn lowest_colour(
        &self,
        id: BufferId,
        height: u64,
        before: Option<Segment>,
        after: Option<Segment>,
    ) -> u8 {
        let live = self.instance.buffer(id).live;
        let taken = [before, after].map(|segment| {
            let segment = segment.filter(|segment| segment.height > height)?;
            let top = segment.top.filter(|top| self.instance.buffer(*top).live.overlaps(live))?;
            Some(self.places[top.index()].0)
        });
        (0..2).find(|&colour| !taken.contains(&Some(colour))).unwrap_or(2)
    }

    /// Puts a buffer on a segment that was taken out, and adds the resulting segments.
    fn put_buffer(&mut self, id: BufferId, segment: Segment) {
        let (start, end) = self.instance.buffer(id).live.into();
        let Segment { left, right, height, .. } = segment;
        self.add_segment(Segment { right: start, ..segment });
        self.add_segment(Segment { left: end, ..segment });
        let top = height + self.sizes[id.index()];
        self.add_segment(Segment {
            left: left.max(start),
            right: right.min(end),
            height: top,
            top: Some(id),
        });
    }
}

/// The unplaced buffers by start, then by id, with a tree over their ends.
struct Unplaced {
    order: Vec<BufferId>,
    starts: Vec<u32>,
    ends: FirstAtMost,
}

impl Unplaced {
    fn new(instance: &Instance) -> Self {
        let order = Order::Start.sort_buffers(instance);
        let live = |id: &BufferId| instance.buffer(*id).live;
        let starts = order.iter().map(|id| live(id).start().get()).collect();
        let mut ends = FirstAtMost::new(order.len());
        for (place, id) in order.iter().enumerate() {
            ends.set_number(place, Some(live(id).end().get()));
        }
        Self { order, starts, ends }
    }

    /// Takes the first buffer that lies within a range of steps.
    fn take_within(&mut self, steps: Range<u32>) -> Option<BufferId> {
        let from = self.starts.partition_point(|&start| start < steps.start);
        let place = self.ends.find_at_most(from, steps.end)?;
        self.ends.set_number(place, None);
        Some(self.order[place])
    }
}

#[cfg(test)]
mod tests {
    use planlab_dsa::testing::{Shape, instances};
    use proptest::prelude::*;

    use super::*;
    use crate::placement::testing::{
        aligned, place_buffers, planned_offsets, random_instance, test_buffer, test_instance,
    };

    /// The published text, with a full scan at every step: the first phase, then the graph.
    fn published(instance: &Instance) -> Vec<u64> {
        let buffer = |id: BufferId| instance.buffer(id);
        let size = |id: BufferId| buffer(id).size.get();
        let mut segments = vec![(0, 0, instance.horizon().get())];
        let mut unplaced = Order::Start.sort_buffers(instance);
        let mut placed: Vec<(BufferId, u64)> = Vec::new();
        while !unplaced.is_empty() {
            let lowest = *segments.iter().min().expect("every buffer overlaps a segment");
            segments.retain(|&segment| segment != lowest);
            let (height, left, right) = lowest;
            let overlaps = |id: BufferId, left: u32, right: u32| {
                buffer(id).live.start().get() < right && left < buffer(id).live.end().get()
            };
            let fits = |&&id: &&BufferId| {
                overlaps(id, left, right) && !segments.iter().any(|&(_, from, to)| overlaps(id, from, to))
            };
            let Some(&id) = unplaced.iter().find(fits) else { continue };
            let (start, end) = buffer(id).live.into();
            unplaced.retain(|&other| other != id);
            placed.push((id, height));
            segments.push((height + size(id), left.max(start), right.min(end)));
            segments.extend([(height, left, start), (height, end, right)].iter().filter(|s| s.1 < s.2));
        }
        coloured(instance, &placed)
    }

    /// First fit on the graph of overlaps, in the order of placement.
    fn coloured(instance: &Instance, placed: &[(BufferId, u64)]) -> Vec<u64> {
        let end = |&(id, height): &(BufferId, u64)| height + instance.buffer(id).size.get();
        let band = placed.iter().map(end).max().unwrap_or(0);
        let mut colours: Vec<u64> = Vec::new();
        for (index, this) in placed.iter().enumerate() {
            let meets = |other: &(BufferId, u64)| {
                let live = instance.buffer(this.0).live;
                instance.buffer(other.0).live.overlaps(live) && other.1 < end(this) && this.1 < end(other)
            };
            let taken: Vec<u64> = (0..index).filter(|&k| meets(&placed[k])).map(|k| colours[k]).collect();
            colours.extend((0..).find(|colour| !taken.contains(colour)));
        }
        let mut offsets = vec![0; instance.len()];
        for ((id, height), colour) in placed.iter().zip(colours) {
            offsets[id.index()] = height + colour * band;
        }
        offsets
    }

    fn many_buffers() -> impl Strategy<Value = Instance> {
        prop::collection::vec((1_u64..1000, 0_u32..300, 1_u32..60), 50..200).prop_map(|rows| {
            let rows = rows.into_iter().map(|(size, start, width)| (size, start, start + width));
            test_instance(&rows.collect::<Vec<_>>())
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(512))]
        #[test]
        fn it_gives_the_published_plan_of_three_times_the_load_at_most(
            instance in prop_oneof![
                instances(Shape::plain_buffers().with_max_buffers(60).with_max_steps(40).with_max_size(9)),
                many_buffers(),
            ],
        ) {
            let found = planned_offsets(&Gergov::default(), &instance);
            prop_assert_eq!(&found, &published(&instance));
            let squeezed = planned_offsets(&Gergov::default().with_squeeze(true), &instance);
            prop_assert!(squeezed.iter().zip(&found).all(|(low, high)| low <= high));
            let sizes = buffer_sizes(&instance);
            let height = found.iter().zip(&sizes).map(|(offset, size)| offset + size).max();
            prop_assert!(height.unwrap_or(0) <= 3 * instance.load().bytes.get());
        }
    }

    #[test]
    fn what_sticks_out_on_both_sides_gets_the_third_colour() {
        let found = (0..5_000).find(|&seed| {
            let instance = random_instance(seed, 30, [8, 30, 12]);
            let places = Stacks::new(&instance, &buffer_sizes(&instance)).fill_segments(|_| Ok::<(), ()>(()));
            places.expect("no limit").iter().any(|place| place.0 == 2)
        });
        assert!(found.is_some(), "no instance needs three colours: the tests see only two");
    }

    #[test]
    fn offsets_keep_alignments_that_do_not_divide_each_other() {
        assert_eq!(
            place_buffers(&Gergov::default(), vec![aligned(4, 0, 3, 6), aligned(5, 1, 4, 4)]),
            [0, 12]
        );
    }

    #[test]
    fn bands_past_64_bits_are_left_for_first_fit() {
        let half = 1 << 63;
        assert_eq!(in_bands(&[(0, 0), (1, 0), (2, 0)], &[half, 1, 1]), None);
        assert_eq!(in_bands(&[(0, 0), (1, 4)], &[8, 8]), Some([0, 16].map(Offset::new).to_vec()));
        let rows = [test_buffer(1, 0, 2), aligned(1, 0, 2, 1 << 62), test_buffer(half, 0, 2)];
        let instance = Instance::from_buffers(rows.to_vec()).expect("valid");
        assert_eq!(padded_sizes(&instance), None);
        let found = planned_offsets(&Gergov::default(), &instance);
        assert!(found[1].is_multiple_of(1 << 62), "{found:?}");
    }
}
