//! Shared objects, greedy: the buffers in an order, each in the smallest free object that holds it; else in the largest
//! free one, which grows; else in a new one.
//!
//! *By size*, the largest buffer comes first: an object is as large as the first buffer in it, and never grows, since
//! later buffers are smaller. *By breadth*, the fullest step comes first, and its buffers by size. The breadth of an
//! operator (here: of a step) is the sum of the sizes of the buffers that are live at it.
//!
//! ```text
//!   object 2  (8) |   b b   e e        c 64 and d 32 overlap: two objects;
//!   object 1 (32) | a a   d d          a 16 is free to go to the smaller one;
//!   object 0 (64) |     c c            b 8 overlaps a and c: a third, which e 8 takes, too
//!                  ------------> step
//! ```
//!
//! # References
//!
//! 1. Y. Pisarchyk and J. Lee, *Efficient memory management for deep neural net inference*, 2020,
//!    arXiv:2001.03288, section 4 (greedy by size and by breadth for shared objects).
//! 2. The GPU delegate of TensorFlow Lite, `memory_management/` and `memory_management/greedy_by_breadth_assignment`.
//!
//! # Complexity
//!
//! O(n k log n), where k is the number of objects that a buffer checks until it finds a free one: at most all of
//! them, and few if a few hundred buffers are live at once (100,000 buffers take less than a second then). If tens
//! of thousands are live at once, 100,000 buffers take tens of seconds. The published loops check every object, and that
//! by breadth keeps a list of the live buffers for every step.
//!
//! # Deviations from the paper
//!
//! The paper leaves ties open: here the earlier step comes first (the public code uses an unstable sort), the buffer
//! with the lower id, and the object that was opened first. Alignment is honoured within objects.

use planlab_dsa::{BufferId, Descriptor, Halt, Instance, Planner, Run};

use super::objects::{HONOURS, REFERENCE, share_in_order};
use crate::placement::Order;
use crate::placement::greedy::broadest_first;

/// Smallest free object, by size or by breadth; keys `shared-objects/by-size` and `shared-objects/by-breadth`.
#[derive(Clone, Copy, Debug)]
pub struct SharedObjects {
    key: &'static str,
    summary: &'static str,
    order: fn(&Instance) -> Vec<BufferId>,
}

impl SharedObjects {
    /// Largest first.
    #[must_use]
    pub const fn by_size() -> Self {
        Self {
            key: "shared-objects/by-size",
            summary: "whole objects shared: largest first, smallest free object",
            order: |instance| Order::Size.sort_buffers(instance),
        }
    }

    /// Fullest step first, its buffers by size.
    #[must_use]
    pub const fn by_breadth() -> Self {
        Self {
            key: "shared-objects/by-breadth",
            summary: "whole objects shared: fullest step first, its buffers by size, smallest free object",
            order: broadest_first,
        }
    }
}

impl Planner for SharedObjects {
    fn descriptor(&self) -> Descriptor {
        Descriptor {
            key: self.key.into(),
            summary: self.summary.into(),
            honours: HONOURS,
            reference: REFERENCE,
            complexity: "n k log n for k objects to look at",
            practical: Some(100_000),
            ..Descriptor::default()
        }
    }

    fn plan(&self, run: &mut Run<'_>) -> Result<(), Halt> {
        let order = (self.order)(run.instance());
        share_in_order(run, &order)
    }
}

#[cfg(test)]
mod tests {
    use planlab_dsa::testing::{Shape, instances};
    use proptest::prelude::*;

    use super::*;
    use crate::placement::sharing::objects::testing::{literal, offsets_of};
    use crate::placement::testing::planned_offsets;

    proptest! {
        #[test]
        fn plans_are_those_of_the_published_loops(
            instance in instances(Shape::plain_buffers().with_max_buffers(40).with_max_steps(30)),
        ) {
            for planner in [SharedObjects::by_size(), SharedObjects::by_breadth()] {
                let expected = literal(&instance, &(planner.order)(&instance));
                prop_assert_eq!(planned_offsets(&planner, &instance), offsets_of(&instance, &expected));
            }
        }
    }
}
