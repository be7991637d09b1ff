//! Shared objects, greedy by size: the largest buffer first, in the smallest object that is free.
//!
//! An object is as large as the first buffer in it, and never grows, since later buffers are smaller.
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
//!    arXiv:2001.03288, section 4 (greedy by size for shared objects).
//! 2. The GPU delegate of TensorFlow Lite, `memory_management/`.
//!
//! # Complexity
//!
//! O(n k log n), where k is the number of objects that a buffer checks until it finds a free one: at most all of
//! them, and few if a few hundred buffers are live at once (100,000 buffers take less than a second then). If tens
//! of thousands are live at once, 100,000 buffers take tens of seconds. The published loop checks every object.
//!
//! # Deviations from the paper
//!
//! The paper leaves ties open: here the buffer with the lower id comes first, and the object that was opened first.
//! Alignment is honoured within objects.

use planlab_dsa::{Descriptor, Halt, Planner, Run};

use super::objects::{HONOURS, REFERENCE, share_in_order};
use crate::placement::Order;

/// Largest first, smallest free object; key `shared-objects/by-size`.
///
/// ```
/// use planlab_dsa::{execute, Budget, Buffer, Bytes, Instance, LiveRange};
/// use planlab_solvers::placement::sharing::SharedObjectsBySize;
///
/// let buffers = [(16, 0, 2), (8, 1, 3), (64, 2, 4), (32, 3, 5), (8, 4, 6)].map(|(size, start, end)| {
///     Buffer::new(Bytes::new(size), LiveRange::new(start, end).expect("not empty"))
/// });
/// let instance = Instance::from_buffers(buffers.to_vec())?;
/// let outcome = execute(&SharedObjectsBySize, &instance, Budget::default(), 0);
/// assert_eq!(outcome.height(), Some(Bytes::new(64 + 32 + 8)));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct SharedObjectsBySize;

impl Planner for SharedObjectsBySize {
    fn descriptor(&self) -> Descriptor {
        Descriptor {
            key: "shared-objects/by-size".into(),
            summary: "whole objects shared: largest first, smallest free object".into(),
            honours: HONOURS,
            reference: REFERENCE,
            complexity: "n k log n for k objects to look at",
            practical: Some(100_000),
            ..Descriptor::default()
        }
    }

    fn plan(&self, run: &mut Run<'_>) -> Result<(), Halt> {
        let order = Order::Size.of(run.instance());
        share_in_order(run, &order)
    }
}

#[cfg(test)]
mod tests {
    use planlab_dsa::testing::{Shape, instances};
    use proptest::prelude::*;

    use super::super::objects::testing::{literal, offsets_of};
    use super::*;
    use crate::placement::testing::{instance, offsets};

    #[test]
    fn the_smallest_free_object_is_taken() {
        // 9 and 8 are live together; 5 comes after both, and goes to 8.
        let instance = instance(&[(9, 0, 2), (8, 0, 2), (5, 2, 4)]);
        assert_eq!(offsets(&SharedObjectsBySize, &instance), [0, 9, 9]);
    }

    #[test]
    fn an_object_that_was_opened_early_has_holes_for_later_buffers() {
        let instance = instance(&[(4, 4, 6), (9, 0, 2), (9, 6, 8), (7, 1, 5)]);
        assert_eq!(offsets(&SharedObjectsBySize, &instance), [0, 0, 0, 9]);
    }

    proptest! {
        #[test]
        fn plans_are_those_of_the_published_loop(
            instance in instances(Shape::plain().with_max_buffers(40).with_max_steps(30)),
        ) {
            let expected = literal(&instance, &Order::Size.of(&instance));
            prop_assert_eq!(offsets(&SharedObjectsBySize, &instance), offsets_of(&instance, &expected));
        }
    }
}
