//! Shared objects by minimum-cost flow, which decides which buffer follows which in an object.
//!
//! Every buffer j has two options. A new object is opened for it, at the cost of its size. Or it follows a buffer i
//! that ends before it starts, at the cost of the object's growth, max(0, size j - size i). At most one buffer follows
//! each buffer. That is an assignment problem, and its optimum is a flow:
//!
//! ```text
//!         0 -> L_i (i is over) -- max(0, size j - size i) --\
//!   source                                                   R_j (j begins) -> sink
//!         \------------ size j: an object is opened --------/
//! ```
//!
//! The objects, each as large as the largest buffer of its chain, are stacked.
//!
//! # References
//!
//! 1. J. Lee et al., *On-device neural net inference with mobile GPUs*, 2019, arXiv:1907.01989, section 4.
//! 2. The GPU delegate of TensorFlow Lite, `memory_management/min_cost_flow_assignment`.
//! 3. R. Jonker and A. Volgenant, *A shortest augmenting path algorithm for dense and sparse linear assignment
//!    problems*, Computing 38, 1987, doi:10.1007/BF02278710.
//!
//! # Complexity
//!
//! n searches for a shortest augmenting path, each O(n log^2 n) at worst in a network of O(n log n) nodes, and short if
//! a suitable buffer is near. `chains.rs` proves that the optimum of this network is the same. 10,000 buffers take
//! between a second and a minute. The published network has O(n^2) arcs, and each of its searches may pass all of them
//! many times.
//!
//! # Deviations from the paper
//!
//! - The same cost with far fewer arcs. If there are several optimal flows, the result may differ from that of the
//!   public code.
//! - Sizes are 64-bit numbers; the public code subtracts them in 32 bits.
//! - The public code sums the growth of objects, which is more than their largest buffer if a chain shrinks and grows
//!   again. So the optimum of the flow is not always the least sum of objects.
//! - Alignment is honoured within objects.

mod chains;

use planlab_dsa::{BufferId, Descriptor, Halt, Instance, Plan, Planner, Run};

use self::chains::Network;
use crate::placement::Order;
use crate::placement::sharing::{HONOURS, stack_objects};

/// Shared objects by minimum-cost flow; key `mincost-flow`.
#[derive(Clone, Copy, Debug, Default)]
pub struct MincostFlow;

impl Planner for MincostFlow {
    fn descriptor(&self) -> Descriptor {
        Descriptor {
            key: "mincost-flow".into(),
            summary: "whole objects shared: who follows whom by minimum-cost flow".into(),
            honours: HONOURS,
            reference: "Lee et al. 2019, arXiv:1907.01989, section 4",
            complexity: "n^2 log^2 n at worst",
            practical: Some(10_000),
            ..Descriptor::default()
        }
    }

    fn plan(&self, run: &mut Run<'_>) -> Result<(), Halt> {
        let instance = run.instance();
        let followed = followed_buffers(instance, |work| run.tick(work))?;
        run.offer(Plan::from_offsets(stack_objects(instance, &object_numbers(instance, &followed))))
    }
}

/// For each buffer the one that it follows in its object, in an optimal flow.
fn followed_buffers<E>(
    instance: &Instance,
    mut tick: impl FnMut(u64) -> Result<(), E>,
) -> Result<Vec<Option<BufferId>>, E> {
    let mut network = Network::new(instance);
    for id in Order::Start.sort_buffers(instance) {
        let work = network.supply_demand(id);
        tick(work)?;
    }
    Ok(network.followed_buffers())
}

/// The object of each buffer: that of the one that it follows, or a new one.
fn object_numbers(instance: &Instance, followed: &[Option<BufferId>]) -> Vec<u32> {
    let mut object_of = vec![0; instance.len()];
    let mut opened = 0..;
    for id in Order::Start.sort_buffers(instance) {
        object_of[id.index()] = match followed[id.index()] {
            Some(before) => object_of[before.index()],
            None => opened.next().expect("no more objects than buffers"),
        };
    }
    object_of
}

#[cfg(test)]
mod tests {
    use std::iter::successors;

    use planlab_dsa::testing::{Shape, instances};
    use planlab_dsa::{Budget, execute};
    use proptest::prelude::*;

    use super::*;
    use crate::placement::testing::{published_records, test_instance};

    fn height(instance: &Instance) -> u64 {
        execute(&MincostFlow, instance, Budget::default(), 0).height().expect("a plan").get()
    }

    /// The bytes with which objects are opened, and of their growth.
    fn cost(instance: &Instance) -> u64 {
        let Ok(followed) = followed_buffers(instance, |_| Ok::<(), std::convert::Infallible>(()));
        let size = |id: BufferId| instance.buffer(id).size.get();
        let grown = |id: BufferId| size(id).saturating_sub(followed[id.index()].map_or(0, size));
        instance.ids().map(grown).sum()
    }

    /// The records from the tests of the public code, and the expected sum of the objects.
    #[test]
    fn published_records_have_the_published_sum() {
        let chain = test_instance(&[(16, 0, 2), (8, 1, 3), (64, 2, 4), (32, 3, 5), (8, 4, 6)]);
        assert_eq!(height(&chain), 64 + 32);
        assert_eq!(height(&published_records()), 32 + 64 + 8 + 8);
    }

    #[test]
    fn sizes_of_nearly_64_bits_do_not_overflow() {
        let large = u64::MAX / 2 - 10;
        let rows = test_instance(&[(large, 0, 1), (1, 1, 2), (large - 1, 2, 3), (7, 2, 3)]);
        assert_eq!(height(&rows), large + 1 + 6);
    }

    /// The least cost of an assignment, by shortest augmenting paths that scan every arc again and again.
    fn dense(instance: &Instance) -> u64 {
        let count = instance.len();
        let size = |id: usize| i64::try_from(instance.buffers()[id].size.get()).expect("small");
        let live = |id: usize| instance.buffers()[id].live;
        let mut followed: Vec<Option<usize>> = vec![None; count];
        let cost =
            |before: Option<usize>, id: usize| before.map_or(size(id), |b| (size(id) - size(b)).max(0));
        for demand in 0..count {
            // The least cost of bringing a unit to each buffer that already has one, or to the new one.
            let mut need = vec![i64::MAX; count];
            let mut via = vec![None; count];
            need[demand] = 0;
            for _ in 0..count {
                for id in 0..=demand {
                    if need[id] == i64::MAX {
                        continue;
                    }
                    for (other, before) in followed.iter().enumerate().take(demand) {
                        let Some(before) = *before else { continue };
                        let fits = live(before).end() <= live(id).start() && other != id;
                        let new = need[id] + cost(Some(before), id) - cost(Some(before), other);
                        if fits && new < need[other] {
                            (need[other], via[other]) = (new, Some(id));
                        }
                    }
                }
            }
            let used = |before: usize| followed.contains(&Some(before));
            let mut ways = Vec::new();
            for id in (0..=demand).filter(|&id| need[id] < i64::MAX) {
                ways.push((need[id] + cost(None, id), None, id));
                for before in (0..count).filter(|&b| !used(b) && live(b).end() <= live(id).start()) {
                    ways.push((need[id] + cost(Some(before), id), Some(before), id));
                }
            }
            let (_, mut before, mut id) = ways.into_iter().min().expect("an object can be opened");
            loop {
                before = std::mem::replace(&mut followed[id], before);
                match via[id] {
                    Some(next) if id != demand => id = next,
                    _ => break,
                }
            }
        }
        let all = followed.iter().enumerate().map(|(id, &before)| cost(before, id)).sum::<i64>();
        u64::try_from(all).expect("not negative")
    }

    /// Cost and height of every assignment that completes `inputs`: for each buffer, the one before it in its object.
    fn every(instance: &Instance, inputs: &mut Vec<Option<usize>>, see: &mut dyn FnMut(u64, u64)) {
        let size = |id: usize| instance.buffers()[id].size.get();
        let Some(buffer) = instance.buffers().get(inputs.len()) else {
            let grown = |(id, input): (usize, &Option<usize>)| size(id).saturating_sub(input.map_or(0, size));
            let next = |at: &usize| inputs.iter().position(|&input| input == Some(*at));
            let object = |first: usize| successors(Some(first), next).map(size).max();
            let firsts = (0..instance.len()).filter(|&id| inputs[id].is_none());
            return see(inputs.iter().enumerate().map(grown).sum(), firsts.filter_map(object).sum());
        };
        let ends_before = |&id: &usize| instance.buffers()[id].live.end() <= buffer.live.start();
        let choices: Vec<usize> = (0..instance.len()).filter(ends_before).collect();
        for choice in choices.into_iter().map(Some).chain([None]) {
            if choice.is_none() || !inputs.contains(&choice) {
                inputs.push(choice);
                every(instance, inputs, see);
                inputs.pop();
            }
        }
    }

    proptest! {
        #[test]
        fn cost_and_height_are_those_of_a_cheapest_assignment(
            instance in instances(Shape::plain_buffers().with_max_buffers(8).with_max_steps(12)),
        ) {
            let (mut least, mut heights) = (u64::MAX, Vec::new());
            every(&instance, &mut Vec::new(), &mut |cost, height| {
                if cost < least {
                    (least, heights) = (cost, Vec::new());
                }
                if cost == least {
                    heights.push(height);
                }
            });
            prop_assert_eq!(cost(&instance), least);
            prop_assert_eq!(dense(&instance), least);
            prop_assert!(heights.contains(&height(&instance)));
        }

        #[test]
        fn the_cost_is_that_of_the_network_with_every_arc(
            instance in instances(Shape::plain_buffers().with_max_buffers(30).with_max_steps(25).with_max_size(40)),
        ) {
            let cost = cost(&instance);
            prop_assert_eq!(cost, dense(&instance));
            prop_assert!(height(&instance) <= cost);
        }
    }
}
