//! Shared objects in execution order: each buffer takes the free object whose size is nearest to its own.
//!
//! When a buffer begins, the objects of all buffers that have ended are free. The buffer takes the one whose size
//! is nearest: the smallest that holds it, or the largest of the smaller ones, which grows. A new object is opened
//! only if none is free, so that there are never more objects than buffers live at one step.
//!
//! # References
//!
//! 1. J. Lee et al., *On-device neural net inference with mobile GPUs*, 2019, arXiv:1907.01989, section 4.
//! 2. Y. Pisarchyk and J. Lee, *Efficient memory management for deep neural net inference*, 2020,
//!    arXiv:2001.03288 (compares with it).
//! 3. The GPU delegate of TensorFlow Lite, `memory_management/greedy_in_order_assignment`.
//!
//! # Complexity
//!
//! O(n log n).
//!
//! # Deviations from the public code
//!
//! None in the rule. Ties: of buffers that begin together the lower id, and of sizes equally near the larger
//! object. Of objects of one size the one opened first if they hold the buffer, and the one opened last if they
//! must grow, as in the public code. Alignment is honoured within objects.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};

use planlab_dsa::{Descriptor, Halt, Instance, Plan, Planner, Run};

use super::objects::{HONOURS, stack_objects};
use crate::placement::Order;

/// Execution order, nearest size; key `shared-objects/in-order`.
#[derive(Clone, Copy, Debug, Default)]
pub struct SharedObjectsInOrder;

impl Planner for SharedObjectsInOrder {
    fn descriptor(&self) -> Descriptor {
        Descriptor {
            key: "shared-objects/in-order".into(),
            summary: "whole objects shared: in execution order, free object of the nearest size".into(),
            honours: HONOURS,
            reference: "Lee et al. 2019, arXiv:1907.01989, section 4",
            complexity: "n log n",
            ..Descriptor::default()
        }
    }

    fn plan(&self, run: &mut Run<'_>) -> Result<(), Halt> {
        let object_of = in_order(run.instance(), |work| run.tick(work))?;
        run.offer(Plan::from_offsets(stack_objects(run.instance(), &object_of)))
    }
}

fn in_order<E>(instance: &Instance, mut tick: impl FnMut(u64) -> Result<(), E>) -> Result<Vec<u32>, E> {
    let mut object_of = vec![0; instance.len()];
    let mut sizes: Vec<u64> = Vec::new();
    let mut free = BTreeSet::new();
    let mut in_use: BinaryHeap<Reverse<(u32, u32)>> = BinaryHeap::new();
    for id in Order::Start.sort_buffers(instance) {
        tick(1)?;
        let buffer = instance.buffer(id);
        let ((start, end), size) = (buffer.live.into(), buffer.size.get());
        while let Some(&Reverse((over, object))) = in_use.peek()
            && over <= start
        {
            in_use.pop();
            free.insert((sizes[object as usize], object));
        }
        let object = nearest_free(&free, size).map_or_else(
            || {
                sizes.push(0);
                u32::try_from(sizes.len() - 1).expect("no more objects than buffers")
            },
            |found| {
                free.remove(&found);
                found.1
            },
        );
        let known = &mut sizes[object as usize];
        *known = size.max(*known);
        in_use.push(Reverse((end, object)));
        object_of[id.index()] = object;
    }
    Ok(object_of)
}

/// The free object, with its size, whose size is nearest; of equally near ones the larger.
fn nearest_free(free: &BTreeSet<(u64, u32)>, size: u64) -> Option<(u64, u32)> {
    let larger = free.range((size, 0)..).next();
    let smaller = free.range(..(size, 0)).next_back();
    let distance = |object: &&(u64, u32)| object.0.abs_diff(size);
    larger.into_iter().chain(smaller).min_by_key(distance).copied()
}

#[cfg(test)]
mod tests {
    use planlab_dsa::testing::{Shape, instances};
    use proptest::prelude::*;

    use super::*;
    use crate::placement::sharing::objects::testing::offsets_of;
    use crate::placement::testing::{planned_offsets, published_records, test_instance};

    /// Those that the tests of the public code expect.
    #[test]
    fn published_records_have_the_published_objects() {
        let chain = test_instance(&[(16, 0, 2), (8, 1, 3), (64, 2, 4), (32, 3, 5), (8, 4, 6)]);
        assert_eq!(in_order(&chain, |_| Ok::<(), ()>(())), Ok(vec![0, 1, 0, 1, 0]));
        let records = published_records();
        assert_eq!(in_order(&records, |_| Ok::<(), ()>(())), Ok(vec![0, 1, 0, 2, 3, 1, 3, 2, 0]));
        // Objects of 32, 64, 16 and 8 bytes.
        assert_eq!(planned_offsets(&SharedObjectsInOrder, &records), [0, 32, 0, 96, 112, 32, 112, 96, 0]);
    }

    /// Looks at every object.
    fn literal(instance: &Instance) -> Vec<u32> {
        let mut object_of = vec![0; instance.len()];
        // Size, and the end of what is in it.
        let mut objects: Vec<(u64, u32)> = Vec::new();
        for id in Order::Start.sort_buffers(instance) {
            let (size, live) = (instance.buffer(id).size.get(), instance.buffer(id).live);
            let free = (0..objects.len()).filter(|&object| objects[object].1 <= live.start().get());
            let rank = |&object: &usize| {
                let known = objects[object].0;
                let is_smaller = known < size;
                let turn = if is_smaller { usize::MAX - object } else { object };
                (known.abs_diff(size), is_smaller, turn)
            };
            let object = free.min_by_key(rank).unwrap_or_else(|| {
                objects.push((0, 0));
                objects.len() - 1
            });
            objects[object] = (objects[object].0.max(size), live.end().get());
            object_of[id.index()] = u32::try_from(object).expect("few");
        }
        object_of
    }

    proptest! {
        #[test]
        fn plans_are_those_of_the_plain_loop(
            instance in instances(Shape::plain_buffers().with_max_buffers(40).with_max_steps(30)),
        ) {
            let expected = offsets_of(&instance, &literal(&instance));
            prop_assert_eq!(planned_offsets(&SharedObjectsInOrder, &instance), expected);
        }
    }
}
