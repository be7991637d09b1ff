//! The greedy planner of TensorFlow Lite for Microcontrollers: by size, each in the first gap.
//!
//! Buffers whose offsets were planned offline stay in place. The others follow from the largest to the smallest. Each
//! walks up the list of placed buffers that overlap it in time, sorted by offset, and takes the first gap between two
//! of them that has room: the lowest free offset.
//!
//! # References
//!
//! 1. TensorFlow Lite for Microcontrollers,
//!    `tensorflow/lite/micro/memory_planner/greedy_memory_planner.cc`, 2019 to 2024.
//!
//! # Complexity
//!
//! O(n log^2 n) if plans are dense, as `first-fit`; the published loop is quadratic, and so is its sort.
//!
//! # Deviations from the paper
//!
//! - Of equal sizes the *later* comes first, as in the original, which fills the list from its end before a stable
//!   sort.
//! - Live ranges are half-open here and closed in the original, with the same conflicts.
//! - In the original, sizes are already multiples of the alignment; here each offset is rounded up to the buffer's own
//!   alignment.
//! - Pauses, arenas, kept-apart pairs and in-place permissions are honoured.

use std::cmp::Reverse;

use planlab_dsa::{BufferId, Descriptor, Halt, Instance, Planner, Run};

use super::HONOURS;
use super::placer::{Rule, plan_in_order};

/// Pinned ones, then largest first, lowest free offset; key `tflm-greedy`.
#[derive(Clone, Copy, Debug, Default)]
pub struct TflmGreedy;

impl Planner for TflmGreedy {
    fn descriptor(&self) -> Descriptor {
        Descriptor {
            key: "tflm-greedy".into(),
            summary: "pinned first, then largest first, lowest free offset, ties by the higher id".into(),
            honours: HONOURS,
            reference: "TensorFlow Lite for Microcontrollers, greedy_memory_planner.cc",
            complexity: "n log^2 n on dense plans",
            ..Descriptor::default()
        }
    }

    fn plan(&self, run: &mut Run<'_>) -> Result<(), Halt> {
        let order = by_size_later_first(run.instance());
        plan_in_order(run, &order, Rule::FirstFit)
    }
}

fn by_size_later_first(instance: &Instance) -> Vec<BufferId> {
    let mut ids: Vec<BufferId> = instance.ids().collect();
    ids.sort_unstable_by_key(|&id| (Reverse(instance.buffer(id).size), Reverse(id)));
    ids
}

#[cfg(test)]
mod tests {
    use planlab_dsa::Offset;

    use super::*;
    use crate::placement::testing::{place_buffers, test_buffer};

    #[test]
    fn what_is_planned_offline_stays_and_the_rest_goes_around_it() {
        let all =
            vec![test_buffer(8, 0, 4), test_buffer(2, 1, 3).with_pin(Offset::new(6)), test_buffer(8, 4, 6)];
        assert_eq!(place_buffers(&TflmGreedy, all), [8, 6, 0]);
    }
}
