//! Greedy by breadth: the fullest step first, its buffers by size.
//!
//! The breadth of an operator (here: of a step) is the sum of the sizes that are live at it. Steps are visited from the
//! broadest to the narrowest. The buffers of a step that are not placed yet are placed from the largest to the
//! smallest, each in the smallest gap that holds it. So each buffer is placed at the broadest step of its live range,
//! and the whole loop is one sort.
//!
//! # References
//!
//! 1. Y. Pisarchyk and J. Lee, *Efficient memory management for deep neural net inference*, 2020,
//!    arXiv:2001.03288, sections 4 and 5.
//!
//! # Complexity
//!
//! O(n g log n) if a buffer has g sufficient gaps to compare; the order itself is O(n log n).
//!
//! # Deviations from the paper
//!
//! Ties, which the paper leaves open: the earlier step, the buffer with the lower id. Bytes that are paused do not
//! count as live. Pins, alignment, pauses, arenas, kept-apart pairs and in-place permissions are honoured.

use std::cmp::Reverse;

use planlab_dsa::{BufferId, Descriptor, Halt, Instance, Planner, Run};

use super::HONOURS;
use super::placer::{Rule, plan_in_order};
use crate::placement::order::{Peaks, sort_by};

/// Broadest step first, its buffers by size, best fit; key `greedy-by-breadth`.
#[derive(Clone, Copy, Debug, Default)]
pub struct GreedyByBreadth;

impl Planner for GreedyByBreadth {
    fn descriptor(&self) -> Descriptor {
        Descriptor {
            key: "greedy-by-breadth".into(),
            summary: "fullest step first, its buffers by size, smallest sufficient gap".into(),
            honours: HONOURS,
            reference: "Pisarchyk and Lee 2020, arXiv:2001.03288",
            complexity: "n g log n for g gaps to compare",
            ..Descriptor::default()
        }
    }

    fn plan(&self, run: &mut Run<'_>) -> Result<(), Halt> {
        let order = broadest_first(run.instance());
        plan_in_order(run, &order, Rule::BestFit)
    }
}

/// The buffers, each at the broadest step of its live range, then by size, then by id.
pub(crate) fn broadest_first(instance: &Instance) -> Vec<BufferId> {
    let peaks = Peaks::new(instance);
    sort_by(instance, |buffer| {
        let (breadth, step) = peaks.peak_of(buffer);
        (Reverse(breadth), step, Reverse(buffer.size))
    })
}

#[cfg(test)]
mod tests {
    use planlab_dsa::Step;
    use planlab_dsa::testing::{Shape, instances};
    use proptest::prelude::*;

    use super::*;

    /// The published loop.
    fn literal(instance: &Instance) -> Vec<BufferId> {
        let live_at =
            |step: u32| instance.ids().filter(move |id| instance.buffer(*id).live.contains(Step::new(step)));
        let breadth = |step: u32| live_at(step).map(|id| instance.buffer(id).size.get()).sum::<u64>();
        let mut steps: Vec<u32> = (0..instance.horizon().get()).collect();
        steps.sort_by_key(|&step| Reverse(breadth(step)));
        let mut order = Vec::new();
        for step in steps {
            let mut here: Vec<BufferId> = live_at(step).filter(|id| !order.contains(id)).collect();
            here.sort_by_key(|id| Reverse(instance.buffer(*id).size));
            order.extend(here);
        }
        order
    }

    proptest! {
        #[test]
        fn the_sort_equals_the_published_loop(
            instance in instances(Shape::plain_buffers().with_max_buffers(20).with_max_steps(12).with_max_size(8)),
        ) {
            prop_assert_eq!(broadest_first(&instance), literal(&instance));
        }
    }
}
