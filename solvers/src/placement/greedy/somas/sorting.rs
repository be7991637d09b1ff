//! The orders in which SOMAS takes the blocks.
//!
//! The bytes of the peak that a buffer "may reuse" are those of the buffers that are live at the first step of the
//! largest load and do not overlap it in time. A buffer that is live at that step may reuse none.

use planlab_dsa::{Buffer, BufferId, Instance};

use crate::placement::Order;

/// The sortings of a release build, in its order: largest first, and fewest bytes of the peak to reuse first.
pub(super) const SORTINGS: [fn(&Instance) -> Vec<BufferId>; 2] = [by_size, by_reuse];

/// Largest first, then by id.
fn by_size(instance: &Instance) -> Vec<BufferId> {
    Order::Size.of(instance)
}

/// Fewest bytes of the peak to reuse first, then the largest, then by id.
fn by_reuse(instance: &Instance) -> Vec<BufferId> {
    let peak = Peak::new(instance);
    let mut ids = by_size(instance);
    ids.sort_by_cached_key(|&id| peak.reusable(instance.buffer(id)));
    ids
}

/// The buffers that are live at the first step of the largest load.
struct Peak {
    /// Starts, ascending, and the bytes of those that start no later.
    starts: Vec<(u32, u64)>,
    /// Ends, ascending, and the bytes of those that end no later.
    ends: Vec<(u32, u64)>,
}

impl Peak {
    fn new(instance: &Instance) -> Self {
        let step = instance.load_without_in_place().step;
        let live = || instance.buffers().iter().filter(|buffer| buffer.live.contains(step));
        Self {
            starts: summed(live().map(|buffer| (buffer.live.start().get(), buffer.size.get())).collect()),
            ends: summed(live().map(|buffer| (buffer.live.end().get(), buffer.size.get())).collect()),
        }
    }

    /// Bytes of the peak that do not overlap a buffer in time.
    fn reusable(&self, buffer: &Buffer) -> u64 {
        let (start, end) = buffer.live.into();
        let upto = |list: &[(u32, u64)], count: usize| count.checked_sub(1).map_or(0, |last| list[last].1);
        let begun = self.starts.partition_point(|&(other, _)| other < end);
        let later = upto(&self.starts, self.starts.len()) - upto(&self.starts, begun);
        let over = self.ends.partition_point(|&(other, _)| other <= start);
        later + upto(&self.ends, over)
    }
}

/// Sorts by step and returns running sums of the bytes.
fn summed(mut list: Vec<(u32, u64)>) -> Vec<(u32, u64)> {
    list.sort_unstable();
    let mut sum = 0;
    for (_, bytes) in &mut list {
        sum += *bytes;
        *bytes = sum;
    }
    list
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::placement::testing;

    fn instance() -> Instance {
        // The load is 8 9 9 7 7 2; its peak is step 1, with buffers 0 and 1.
        let rows = [(4, 0, 3), (5, 1, 3), (4, 3, 5), (3, 3, 5), (2, 5, 6), (4, 0, 1)];
        testing::instance(&rows)
    }

    #[test]
    fn each_sorting_ends_at_the_id() {
        let sorted =
            SORTINGS.map(|sorting| sorting(&instance()).into_iter().map(BufferId::get).collect::<Vec<_>>());
        // Of the peak, 0 and 1 may reuse nothing, 5 the bytes of 1, and the others those of both.
        assert_eq!(sorted, [[1, 0, 2, 5, 3, 4], [1, 0, 5, 2, 3, 4]]);
    }

    #[test]
    fn what_may_be_reused_is_what_does_not_overlap() {
        let instance = instance();
        let step = instance.load_without_in_place().step;
        assert_eq!(step.get(), 1);
        let peak = Peak::new(&instance);
        for buffer in instance.buffers() {
            let others = instance.buffers().iter().filter(|other| other.live.contains(step));
            let apart = others.filter(|other| !other.live.overlaps(buffer.live));
            assert_eq!(peak.reusable(buffer), apart.map(|other| other.size.get()).sum::<u64>());
        }
    }
}
