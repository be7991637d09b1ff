//! The orders in which greedy planners take the buffers.
//!
//! | order | key | first |
//! |---|---|---|
//! | `input` | the id | lowest |
//! | `start` | the first step | earliest |
//! | `end` | the step after the last | latest (`start`, seen backwards in time) |
//! | `size` | bytes (Z) | largest |
//! | `area` | bytes times steps (A) | largest |
//! | `width` | steps (W) | longest |
//! | `load` | the largest load over its live range (T) | largest |
//! | `overlaps` | buffers whose live range overlaps its own (O) | most |
//! | `sections` | sections that it touches (C): longest runs of steps in which nothing ends | most |
//!
//! Ties are broken by the lower id. Each order takes O(n log n).

use std::cmp::Reverse;

use planlab_dsa::{ArenaId, Buffer, BufferId, Instance, LoadCurve, Step};

use crate::trees::{Columns, RangeMax};

planlab_dsa::named_enum! {
    /// An order of the buffers of an instance.
    #[derive(PartialOrd, Ord)]
    pub enum Order {
        /// In the order of the instance.
        Input = "input",
        /// By first step, earliest first.
        Start = "start",
        /// By end, latest first.
        End = "end",
        /// By bytes, largest first.
        Size = "size",
        /// By bytes times steps, largest first.
        Area = "area",
        /// By number of steps, longest first.
        Width = "width",
        /// By the largest load over the live range, largest first.
        Load = "load",
        /// By the number of buffers with an overlapping live range, most first.
        Overlaps = "overlaps",
        /// By the number of sections touched, most first.
        Sections = "sections",
    }
}

impl Order {
    /// A description of what comes first.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::Input => "in input order",
            Self::Start => "earliest start first",
            Self::End => "latest end first",
            Self::Size => "largest first",
            Self::Area => "largest size times lifetime first",
            Self::Width => "longest lifetime first",
            Self::Load => "highest load over the lifetime first",
            Self::Overlaps => "most overlapping lifetimes first",
            Self::Sections => "most sections touched first",
        }
    }

    /// The ids of all buffers in this order.
    #[must_use]
    pub fn sort_buffers(self, instance: &Instance) -> Vec<BufferId> {
        match self {
            Self::Input => instance.ids().collect(),
            Self::Start => sort_by(instance, |buffer| buffer.live.start()),
            Self::End => sort_by(instance, |buffer| Reverse(buffer.live.end())),
            Self::Size => sort_by(instance, |buffer| Reverse(buffer.size)),
            Self::Area => sort_by(instance, |buffer| Reverse(buffer_area(buffer))),
            Self::Width => sort_by(instance, |buffer| Reverse(buffer.live.width())),
            Self::Load => by_load(instance),
            Self::Overlaps => by_overlaps(instance),
            Self::Sections => by_sections(instance),
        }
    }
}

/// Ids by a key, smallest first, then by id.
pub(crate) fn sort_by<K: Ord>(instance: &Instance, key: impl FnMut(&Buffer) -> K) -> Vec<BufferId> {
    let mut keyed: Vec<(K, BufferId)> = instance.buffers().iter().map(key).zip(instance.ids()).collect();
    keyed.sort_unstable();
    keyed.into_iter().map(|(_, id)| id).collect()
}

/// The largest first, then the longest-lived, then by id.
pub(crate) fn by_size_and_width(instance: &Instance) -> Vec<BufferId> {
    sort_by(instance, |buffer| (Reverse(buffer.size), Reverse(buffer.live.width())))
}

/// The numbers of buffers by offset, ties by id.
pub(crate) fn by_offset<K: Ord + Copy>(offsets: &[K]) -> Vec<u32> {
    let mut order: Vec<u32> = (0..).take(offsets.len()).collect();
    order.sort_by_key(|&id| offsets[id as usize]);
    order
}

fn buffer_area(buffer: &Buffer) -> u128 {
    u128::from(buffer.size.get()) * u128::from(buffer.live.width())
}

fn by_load(instance: &Instance) -> Vec<BufferId> {
    let peaks = Peaks::new(instance);
    sort_by(instance, |buffer| Reverse(peaks.peak_of(buffer).0))
}

fn by_overlaps(instance: &Instance) -> Vec<BufferId> {
    let overlaps = Overlaps::new(instance);
    sort_by(instance, |buffer| Reverse(overlaps.overlap_count(buffer)))
}

/// Adds up the live ranges that overlap a given one.
pub(crate) struct Overlaps {
    /// Starts, ascending, and the weight of what starts no later.
    starts: Vec<(Step, u64)>,
    /// Ends, ascending, and the weight of what ends no later.
    ends: Vec<(Step, u64)>,
}

impl Overlaps {
    /// Counts all buffers; O(n log n).
    pub(crate) fn new(instance: &Instance) -> Self {
        Self::weighted(instance.buffers().iter(), |_| 1)
    }

    /// Adds up the weights of some buffers; O(n log n).
    pub(crate) fn weighted<'b, B: Iterator<Item = &'b Buffer> + Clone>(
        buffers: B,
        weight: fn(&Buffer) -> u64,
    ) -> Self {
        let list = |buffers: B, step: fn(&Buffer) -> Step| {
            running_sums(buffers.map(|b| (step(b), weight(b))).collect())
        };
        Self { starts: list(buffers.clone(), |b| b.live.start()), ends: list(buffers, |b| b.live.end()) }
    }

    /// The weight of the buffers whose live range overlaps this one's, itself included if it is one of them.
    pub(crate) fn overlap_count(&self, buffer: &Buffer) -> u64 {
        let upto = |list: &[(Step, u64)], count: usize| count.checked_sub(1).map_or(0, |last| list[last].1);
        let begun = self.starts.partition_point(|&(start, _)| start < buffer.live.end());
        let over = self.ends.partition_point(|&(end, _)| end <= buffer.live.start());
        upto(&self.starts, begun) - upto(&self.ends, over)
    }
}

fn running_sums(mut list: Vec<(Step, u64)>) -> Vec<(Step, u64)> {
    list.sort_unstable();
    let mut sum = 0;
    for (_, weight) in &mut list {
        sum += *weight;
        *weight = sum;
    }
    list
}

fn by_sections(instance: &Instance) -> Vec<BufferId> {
    let columns = Columns::of_live_ranges(instance);
    sort_by(instance, |buffer| Reverse(columns.columns_of(buffer.live).len()))
}

/// The largest load over each buffer's live range, in its own arena.
pub(crate) struct Peaks {
    arenas: Vec<ArenaPeaks>,
}

struct ArenaPeaks {
    steps: Vec<Step>,
    loads: RangeMax,
}

impl Peaks {
    /// Builds the load curves; O(a n log n) for a arenas. What the load leaves out, since a buffer may overwrite another
    /// there, is left out here too: an order is for planners with hand-overs and without.
    pub(crate) fn new(instance: &Instance) -> Self {
        let arenas = (0..).take(instance.arenas().len()).map(ArenaId::new);
        Self { arenas: arenas.map(|arena| ArenaPeaks::new(&instance.arena_load_curve(arena))).collect() }
    }

    /// The largest load in bytes while a buffer is live, and the first step of its live range that reaches it.
    pub(crate) fn peak_of(&self, buffer: &Buffer) -> (u64, Step) {
        self.arenas[buffer.arena.index()].peak_of(buffer)
    }
}

impl ArenaPeaks {
    fn new(curve: &LoadCurve) -> Self {
        let (steps, loads) = curve.points().iter().map(|&(step, bytes)| (step, bytes.get())).unzip();
        Self { steps, loads: RangeMax::new(loads) }
    }

    fn peak_of(&self, buffer: &Buffer) -> (u64, Step) {
        let (start, end) = (buffer.live.start(), buffer.live.end());
        // The point in effect at the start may begin before it.
        let first = self.steps.partition_point(|&step| step <= start).saturating_sub(1);
        let last = self.steps.partition_point(|&step| step < end);
        let found = self.loads.range_maximum(first..last);
        found.map_or((0, start), |(load, index)| (load, self.steps[index].max(start)))
    }
}

#[cfg(test)]
mod tests {

    use super::*;
    use crate::placement::testing::test_instance;

    fn order(order: Order) -> Vec<u32> {
        // (size, start, end); the load is 4 8 13 7 7 10 over steps 0 to 5.
        let rows = [(4, 0, 3), (4, 1, 3), (5, 2, 3), (7, 3, 6), (3, 5, 6)];
        let instance = test_instance(&rows);
        order.sort_buffers(&instance).into_iter().map(BufferId::get).collect()
    }

    #[test]
    fn each_order_puts_its_key_first_and_ties_by_id() {
        assert_eq!(order(Order::Input), [0, 1, 2, 3, 4]);
        assert_eq!(order(Order::Start), [0, 1, 2, 3, 4]);
        assert_eq!(order(Order::End), [3, 4, 0, 1, 2]);
        assert_eq!(order(Order::Size), [3, 2, 0, 1, 4]);
        assert_eq!(order(Order::Area), [3, 0, 1, 2, 4]);
        assert_eq!(order(Order::Width), [0, 3, 1, 2, 4]);
        assert_eq!(order(Order::Load), [0, 1, 2, 3, 4]);
        assert_eq!(order(Order::Overlaps), [0, 1, 2, 3, 4]);
        assert_eq!(order(Order::Sections), [0, 1, 2, 3, 4]);
    }

    #[test]
    fn peaks_are_the_largest_load_of_the_live_range_alone() {
        let rows = [(1, 0, 9), (4, 2, 4), (2, 6, 8)];
        let instance = test_instance(&rows);
        let peaks = Peaks::new(&instance);
        let found: Vec<(u64, u32)> = instance
            .buffers()
            .iter()
            .map(|b| peaks.peak_of(b))
            .map(|(load, step)| (load, step.get()))
            .collect();
        assert_eq!(found, [(5, 2), (5, 2), (3, 6)]);
    }
}
