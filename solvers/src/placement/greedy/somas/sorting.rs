//! The orders in which SOMAS takes the blocks.
//!
//! The bytes of the peak that a buffer "may reuse" are those of the buffers that are live at the first step of the
//! largest load and do not overlap it in time. A buffer that is live at that step may reuse none.

use std::cmp::Reverse;

use planlab_dsa::{BufferId, Instance};

use crate::placement::Order;
use crate::placement::order::Overlaps;

/// The sortings of a release build, in its order: largest first, and fewest bytes of the peak to reuse first.
pub(super) const SORTINGS: [fn(&Instance) -> Vec<BufferId>; 2] = [by_size, by_reuse];

/// Largest first, then by id.
fn by_size(instance: &Instance) -> Vec<BufferId> {
    Order::Size.sort_buffers(instance)
}

/// Fewest bytes of the peak to reuse first, so those that overlap the most of it; then the largest, then by id.
fn by_reuse(instance: &Instance) -> Vec<BufferId> {
    let peak = peak(instance);
    let mut ids = by_size(instance);
    ids.sort_by_cached_key(|&id| Reverse(peak.overlap_count(instance.buffer(id))));
    ids
}

/// The bytes that are live at the first step of the largest load.
fn peak(instance: &Instance) -> Overlaps {
    let step = instance.load_without_in_place().step;
    let live = instance.buffers().iter().filter(move |buffer| buffer.live.contains(step));
    Overlaps::weighted(live, |buffer| buffer.size.get())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::placement::testing;

    fn instance() -> Instance {
        // The load is 8 9 9 7 7 2; its peak is step 1, with buffers 0 and 1.
        let rows = [(4, 0, 3), (5, 1, 3), (4, 3, 5), (3, 3, 5), (2, 5, 6), (4, 0, 1)];
        testing::test_instance(&rows)
    }

    #[test]
    fn each_sorting_ends_at_the_id() {
        let sorted =
            SORTINGS.map(|sorting| sorting(&instance()).into_iter().map(BufferId::get).collect::<Vec<_>>());
        // Of the peak, 0 and 1 may reuse nothing, 5 the bytes of 1, and the others those of both.
        assert_eq!(sorted, [[1, 0, 2, 5, 3, 4], [1, 0, 5, 2, 3, 4]]);
    }

    #[test]
    fn what_cannot_be_reused_is_what_overlaps() {
        let instance = instance();
        let step = instance.load_without_in_place().step;
        assert_eq!(step.get(), 1);
        let peak = peak(&instance);
        for buffer in instance.buffers() {
            let others = instance.buffers().iter().filter(|other| other.live.contains(step));
            let overlapping = others.filter(|other| other.live.overlaps(buffer.live));
            assert_eq!(peak.overlap_count(buffer), overlapping.map(|other| other.size.get()).sum::<u64>());
        }
    }
}
