//! The arena of TensorFlow Lite: buffers that live throughout, then by size, each in the smallest gap.
//!
//! Buffers that live from the first step to the last lie at the bottom, in the order of their ids. The others follow
//! from the largest to the smallest, of equals the earliest start first. Each takes the smallest gap that holds it
//! among those between the buffers that it overlaps in time, the lowest of equals; without such a gap it goes on top.
//!
//! # References
//!
//! 1. TensorFlow Lite, `tensorflow/lite/arena_planner.cc` and `tensorflow/lite/simple_memory_arena.cc`,
//!    2017 to 2024.
//! 2. Y. Pisarchyk and J. Lee, *Efficient memory management for deep neural net inference*, 2020,
//!    arXiv:2001.03288, section 5: the rule without the buffers that live throughout.
//!
//! # Complexity
//!
//! O(n g log n) if a buffer has g sufficient gaps to compare; the published loop is quadratic.
//!
//! # Deviations from the paper
//!
//! - Live ranges are half-open here and closed in the original. In both, the last input and the output of an operator
//!   conflict, and a range that ends before another begins does not conflict with it.
//! - In the original, a tensor lives throughout if it is allocated at the first operator and never released. Here it
//!   does if it starts with the first buffer and ends with the last; so a buffer released after the last operator
//!   counts, too.
//! - *Default: published.* The loop measures a gap from its first aligned offset, but the smallest gap so far from the
//!   end of what lies below it. If sizes are not multiples of the alignment, a larger gap may win.
//!   [`TfliteArena::with_mixed_measure`] of `false` is the repaired rule.
//! - Ties of size and start, which the published sort leaves open, are broken by the lower id.
//! - Pins, pauses, arenas, kept-apart pairs and in-place permissions are honoured.

use std::cmp::Reverse;

use planlab_dsa::{Buffer, BufferId, Bytes, Descriptor, Halt, Instance, Planner, Run, Step};

use super::HONOURS;
use super::placer::{Rule, plan_in_order};
use crate::placement::order::sort_by;

/// Buffers that live throughout, then largest first, best fit; key `tflite-arena`.
#[derive(Clone, Copy, Debug, Default)]
pub struct TfliteArena {
    has_one_measure: bool,
}

impl TfliteArena {
    /// Whether gaps are measured in two ways, as published; if not, each from the end of what lies below it. Default:
    /// yes.
    #[must_use]
    pub const fn with_mixed_measure(mut self, yes: bool) -> Self {
        self.has_one_measure = !yes;
        self
    }
}

impl Planner for TfliteArena {
    fn descriptor(&self) -> Descriptor {
        Descriptor {
            key: "tflite-arena".into(),
            summary: "what lives throughout, then largest first, smallest sufficient gap".into(),
            honours: HONOURS,
            reference: "TensorFlow Lite, arena_planner.cc and simple_memory_arena.cc",
            complexity: "n g log n for g gaps to compare",
            ..Descriptor::default()
        }
    }

    fn plan(&self, run: &mut Run<'_>) -> Result<(), Halt> {
        let order = lasting_first(run.instance());
        plan_in_order(run, &order, if self.has_one_measure { Rule::BestFit } else { Rule::BestFitMixed })
    }
}

/// The buffers that live throughout by id, then the others by descending size and ascending start.
fn lasting_first(instance: &Instance) -> Vec<BufferId> {
    let first = instance.buffers().iter().map(|buffer| buffer.live.start()).min();
    let horizon = instance.horizon();
    let is_lasting = |buffer: &Buffer| Some(buffer.live.start()) == first && buffer.live.end() == horizon;
    sort_by(instance, |buffer| {
        if is_lasting(buffer) {
            (false, Reverse(Bytes::ZERO), Step::default())
        } else {
            (true, Reverse(buffer.size), buffer.live.start())
        }
    })
}

#[cfg(test)]
mod tests {
    use planlab_dsa::Offset;

    use super::*;
    use crate::placement::testing::{aligned, place_buffers, test_buffer, test_instance};

    #[test]
    fn what_lives_throughout_comes_first_then_size_then_start() {
        let instance = test_instance(&[(9, 2, 5), (4, 3, 5), (2, 1, 6), (4, 1, 3), (4, 1, 4), (7, 1, 6)]);
        assert_eq!(lasting_first(&instance), [2, 5, 0, 3, 4, 1].map(BufferId::new));
    }

    #[test]
    fn the_published_measure_prefers_a_gap_that_is_larger_either_way() {
        // Gaps [1, 24) and [33, 59): 23 and 26 bytes, 16 and 19 of them from the first multiple of 8 on.
        let pinned = |size: u64, pin: u64| test_buffer(size, 0, 2).with_pin(Offset::new(pin));
        let all = vec![pinned(1, 0), pinned(9, 24), pinned(1, 59), aligned(8, 0, 2, 8)];
        assert_eq!(place_buffers(&TfliteArena::default(), all.clone())[3], 40);
        assert_eq!(place_buffers(&TfliteArena::default().with_mixed_measure(false), all)[3], 8);
    }
}
