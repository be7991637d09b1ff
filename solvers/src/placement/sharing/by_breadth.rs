//! Shared objects, greedy by breadth: the fullest step first, its buffers by size.
//!
//! The breadth of an operator (here: of a step) is the sum of the sizes of the buffers that are live at it. Each
//! buffer takes the smallest free object that holds it; else the largest free one, which grows; else a new one.
//!
//! # References
//!
//! 1. Y. Pisarchyk and J. Lee, *Efficient memory management for deep neural net inference*, 2020,
//!    arXiv:2001.03288, section 4 (greedy by breadth for shared objects).
//! 2. The GPU delegate of TensorFlow Lite, `memory_management/greedy_by_breadth_assignment`.
//!
//! # Complexity
//!
//! O(n k log n), where k is the number of objects that a buffer checks until it finds a free one, as in
//! `shared-objects/by-size`. The published loop checks every object, and keeps a list of the live buffers for
//! every step.
//!
//! # Deviations from the paper
//!
//! The paper leaves ties open: here the earlier step comes first (the public code uses an unstable sort), the
//! buffer with the lower id, and the object that was opened first. Alignment is honoured within objects.

use planlab_dsa::{Descriptor, Halt, Planner, Run};

use super::objects::{HONOURS, REFERENCE, share_in_order};
use crate::placement::greedy::broadest_first;

/// Broadest step first, its buffers by size, smallest free object; key `shared-objects/by-breadth`.
///
/// ```
/// use planlab_dsa::{execute, Budget, Buffer, Bytes, Instance, LiveRange};
/// use planlab_solvers::placement::sharing::SharedObjectsByBreadth;
///
/// let buffers = [(16, 0, 2), (8, 1, 3), (64, 2, 4), (32, 3, 5), (8, 4, 6)].map(|(size, start, end)| {
///     Buffer::new(Bytes::new(size), LiveRange::new(start, end).expect("not empty"))
/// });
/// let instance = Instance::from_buffers(buffers.to_vec())?;
/// let outcome = execute(&SharedObjectsByBreadth, &instance, Budget::default(), 0);
/// assert_eq!(outcome.height(), Some(Bytes::new(64 + 32)));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct SharedObjectsByBreadth;

impl Planner for SharedObjectsByBreadth {
    fn descriptor(&self) -> Descriptor {
        Descriptor {
            key: "shared-objects/by-breadth".into(),
            summary: "whole objects shared: fullest step first, its buffers by size, smallest free object"
                .into(),
            honours: HONOURS,
            reference: REFERENCE,
            complexity: "n k log n for k objects to look at",
            practical: Some(100_000),
            ..Descriptor::default()
        }
    }

    fn plan(&self, run: &mut Run<'_>) -> Result<(), Halt> {
        let order = broadest_first(run.instance());
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
    fn the_largest_object_grows_where_none_is_large_enough() {
        // Step 0 is the broadest: objects of 6 and 5; 9 takes the 6, which then is 9.
        let instance = instance(&[(5, 0, 1), (6, 0, 1), (9, 1, 2), (1, 1, 2)]);
        assert_eq!(offsets(&SharedObjectsByBreadth, &instance), [9, 0, 0, 9]);
    }

    proptest! {
        #[test]
        fn plans_are_those_of_the_published_loop(
            instance in instances(Shape::plain().with_max_buffers(40).with_max_steps(30)),
        ) {
            let expected = literal(&instance, &broadest_first(&instance));
            prop_assert_eq!(offsets(&SharedObjectsByBreadth, &instance), offsets_of(&instance, &expected));
        }
    }
}
