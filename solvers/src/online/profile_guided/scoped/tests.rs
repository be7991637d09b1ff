//! Tests of the places of requests in any order, and of what plans remember.

use std::collections::BTreeMap;

use planlab_dsa::performance::Missed;
use planlab_dsa::testing::{Shape, instances};
use planlab_dsa::{Audit, Call, Instance, Requests, Simulated};
use proptest::prelude::*;

use super::*;
use crate::online::{ProfileGuided, Simulator};
use crate::placement::testing::test_buffer;

/// A memory, and the blocks of a propagation.
struct Net(ProfileGuidedScoped);

/// What an operation does: it requests a block of the given number of units, or frees that of another.
#[derive(Clone, Copy, Debug)]
enum Step {
    Alloc(u64, u64),
    Free(u64),
}
use Step::{Alloc, Free};

impl Net {
    fn new() -> Self {
        Self(ProfileGuidedScoped::new(Box::new(Simulated::new())))
    }

    fn alloc(&mut self, operation: u64, units: u64) -> Address {
        self.0.enter_operation(operation);
        self.0.alloc(Bytes::new(units * UNIT), Stream::default()).expect("no limit")
    }

    fn free(&mut self, blocks: impl IntoIterator<Item = Address>) {
        blocks.into_iter().for_each(|block| self.0.free(block).expect("live"));
    }

    /// Plays a propagation under an audit; returns the address of each operation's block.
    fn run(&mut self, steps: &[Step]) -> BTreeMap<u64, Address> {
        let (mut audit, mut all, mut live) = (Audit::default(), BTreeMap::new(), BTreeMap::new());
        for &step in steps {
            match step {
                Alloc(operation, units) => {
                    let block = self.alloc(operation, units);
                    audit.handed_out(block, Bytes::new(units * UNIT)).expect("nothing that is live");
                    all.insert(operation, block);
                    live.insert(operation, block);
                }
                Free(operation) => {
                    let block = live.remove(&operation).expect("asked for");
                    assert!(audit.remove_block(block));
                    self.free([block]);
                }
            }
        }
        self.free(live.into_values());
        self.0.end_propagation();
        all
    }

    fn missed(&self) -> Missed {
        self.0.planning.missed
    }

    /// The number of plans, of requests that they served, and of other requests.
    fn counts(&self) -> (u64, u64, u64) {
        let planning = self.0.planning;
        (planning.plans, planning.planned, planning.missed.total())
    }
}

#[test]
fn another_order_of_operations_has_the_same_places() {
    let mut net = Net::new();
    let one = [Alloc(1, 4), Alloc(2, 2), Alloc(3, 1), Free(1), Free(2), Free(3)];
    net.run(&one);
    let places = net.run(&one);
    assert_eq!(net.counts(), (1, 3, 3));
    let other = [Alloc(3, 1), Alloc(1, 4), Alloc(2, 2)];
    assert_eq!(net.run(&other), places);
    assert_eq!(net.counts(), (1, 6, 3));
    assert_eq!(net.0.usage().reserved, Bytes::new(7 * UNIT));
}

#[test]
fn two_that_meet_in_another_order_share_no_address_in_the_next_plan() {
    let mut net = Net::new();
    let apart = [Alloc(1, 4), Free(1), Alloc(2, 4), Free(2)];
    net.run(&apart);
    assert_eq!(net.run(&apart)[&1], net.run(&apart)[&2]);
    // One of them lies elsewhere; nothing is overwritten.
    net.run(&[Alloc(2, 4), Alloc(1, 4), Free(1), Free(2)]);
    assert_eq!(net.missed(), Missed { unknown: 2, taken: 1, ..Missed::default() });
    let places = net.run(&apart);
    assert_ne!(places[&1], places[&2]);
    net.run(&[Alloc(1, 4), Alloc(2, 4)]);
    assert_eq!((net.missed().total(), net.0.planning.plans), (3, 2));
}

#[test]
fn what_is_not_where_it_was_planned_lies_in_a_hole_of_the_segment() {
    let mut net = Net::new();
    // 9 units at once; the room of 1 and 2 is enough for 3.
    let one = [Alloc(1, 4), Alloc(2, 5), Free(1), Free(2), Alloc(3, 2), Free(3)];
    net.run(&one);
    net.run(&one);
    let reserved = net.0.usage().reserved;
    net.run(&[Alloc(3, 6)]);
    assert_eq!(net.missed().larger, 1);
    assert_eq!((net.0.usage().reserved, reserved), (Bytes::new(9 * UNIT), Bytes::new(9 * UNIT)));
    // A hole that is too small: the pool.
    net.run(&[Alloc(1, 4), Alloc(3, 7)]);
    assert_eq!(net.missed().larger, 2);
}

#[test]
fn the_largest_size_of_a_request_is_planned() {
    let mut net = Net::new();
    net.run(&[Alloc(1, 4), Alloc(2, 2)]);
    net.run(&[Alloc(1, 2), Alloc(2, 6)]);
    net.run(&[Alloc(1, 4), Alloc(2, 6)]);
    net.run(&[Alloc(1, 1), Alloc(2, 1)]);
    assert_eq!(net.missed(), Missed { unknown: 2, larger: 1, ..Missed::default() });
    assert_eq!(net.0.usage().reserved, Bytes::new(10 * UNIT));
}

#[test]
fn propagations_of_two_sorts_share_a_segment() {
    let mut net = Net::new();
    let (training, evaluation) = ([Alloc(1, 4), Alloc(2, 5)], [Alloc(3, 6), Alloc(4, 2)]);
    for _ in 0..3 {
        net.run(&training);
        net.run(&evaluation);
    }
    // Each was unknown once; the plan for both is no higher than that for the larger.
    assert_eq!(net.counts(), (2, 8, 4));
    assert_eq!(net.0.usage().reserved, Bytes::new(9 * UNIT));
}

#[test]
fn what_outlives_its_propagation_is_left_to_the_pool_until_it_does_not() {
    let mut net = Net::new();
    let mut kept = Vec::new();
    for _ in 0..3 {
        kept.push(net.alloc(9, 8));
        net.run(&[Alloc(1, 4)]);
    }
    assert_eq!((net.missed().outliving, net.counts()), (2, (1, 2, 4)));
    net.free(kept);
    net.run(&[Alloc(9, 8), Alloc(1, 4)]);
    net.run(&[Alloc(9, 8), Alloc(1, 4)]);
    assert_eq!((net.missed().outliving, net.counts()), (3, (2, 5, 5)));
    assert_eq!(net.0.usage().used, Bytes::ZERO);
}

#[test]
fn a_block_of_an_earlier_propagation_is_not_overwritten_and_keeps_its_segment() {
    let mut net = Net::new();
    net.run(&[Alloc(1, 4), Alloc(2, 2)]);
    let late = net.alloc(1, 4);
    net.0.end_propagation();
    let next = net.alloc(1, 4);
    assert_ne!(next, late);
    net.free([late, next]);
    assert_eq!(net.0.free(late), Err(NotLive { address: late }));
    net.0.end_propagation();
    net.run(&[Alloc(1, 4), Alloc(2, 2)]);
    net.0.release_cached();
    assert_eq!(net.0.usage().reserved, Bytes::ZERO);
}

#[test]
fn a_request_that_does_not_come_again_loses_its_place() {
    let mut net = Net::new();
    net.run(&[Alloc(1, 50), Alloc(2, 1)]);
    for units in 2..70 {
        net.run(&[Alloc(2, units)]);
    }
    assert!(net.0.layout.as_ref().is_some_and(|layout| layout.place_of(0).is_none()));
    net.run(&[Alloc(1, 50)]);
    net.run(&[Alloc(1, 50)]);
    assert_eq!((net.missed().unknown, net.missed().larger), (3, 68));
}

#[test]
fn names_that_never_come_again_are_forgotten() {
    let mut net = Net::new();
    net.run(&[Alloc(0, 4)]);
    let kept = net.alloc(0, 4);
    for name in 1..=MOST_REQUESTS as u64 {
        net.0.enter_operation(name);
        net.0.keys.take_key();
    }
    net.0.end_propagation();
    assert_eq!((net.0.keys.len(), net.0.memory.segments(), net.0.layout.is_none()), (0, 1, true));
    net.free([kept]);
    net.run(&[Alloc(0, 4)]);
    net.run(&[Alloc(0, 4)]);
    assert_eq!(net.0.usage().reserved, Bytes::new(4 * UNIT));
}

#[test]
fn without_memory_for_the_plan_the_pool_goes_on() {
    let backing = Simulated::with_capacity(Bytes::new(8 * UNIT));
    let mut net = Net(ProfileGuidedScoped::new(Box::new(backing)));
    let wall = net.alloc(9, 1);
    net.run(&[Alloc(1, 3), Alloc(2, 4)]);
    let other = net.alloc(8, 1);
    net.run(&[Alloc(1, 3), Alloc(2, 3)]);
    assert!(net.missed().no_memory > 0);
    let refused = net.0.alloc(Bytes::new(100 * UNIT), Stream::default());
    assert!(matches!(refused, Err(AllocError::OutOfMemory { .. })));
    net.free([wall, other]);
    net.0.release_cached();
    assert_eq!(net.0.usage().reserved, Bytes::ZERO);
}

#[test]
fn a_request_that_is_refused_may_come_again() {
    let backing = Simulated::with_capacity(Bytes::new(8 * UNIT));
    let mut net = Net(ProfileGuidedScoped::new(Box::new(backing)));
    net.run(&[Alloc(1, 2), Alloc(2, 3)]);
    net.0.enter_operation(1);
    assert!(net.0.alloc(Bytes::new(100 * UNIT), Stream::default()).is_err());
    net.run(&[Alloc(1, 2), Alloc(2, 3)]);
    assert_eq!(net.counts(), (1, 2, 2));
}

fn permutation(count: usize) -> impl Strategy<Value = Vec<usize>> {
    Just((0..count).collect::<Vec<usize>>()).prop_shuffle()
}

/// The buffers of an instance in another order of time, each by its own operation.
fn shuffled(instance: &Instance) -> impl Strategy<Value = Vec<Vec<usize>>> + use<> {
    proptest::collection::vec(permutation(instance.len()), 1..5)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: if cfg!(miri) { 4 } else { 256 }, ..ProptestConfig::default() })]

    #[test]
    fn without_operations_and_changes_it_is_the_counter(
        instance in instances(Shape::plain_buffers().with_max_buffers(16).with_max_steps(10).with_max_size(6000)),
    ) {
        let mut scoped = ProfileGuidedScoped::new(Box::new(Simulated::new()));
        let mut counter = ProfileGuided::new(Box::new(Simulated::new()));
        let requests = Requests::new(&instance);
        for _ in 0..4 {
            let mut addresses = [(); 2].map(|()| BTreeMap::new());
            for call in requests.calls_in_order() {
                let both: [&mut dyn OnlineAllocator; 2] = [&mut scoped, &mut counter];
                for (memory, addresses) in both.into_iter().zip(&mut addresses) {
                    match call {
                        Call::Alloc(id) => {
                            let size = requests.sizes()[id.index()];
                            addresses.insert(id, memory.alloc(size, Stream::default()).expect("no limit"));
                        }
                        Call::Free(id) => {
                            prop_assert_eq!(memory.free(addresses[&id]), Ok(()));
                        }
                    }
                }
                prop_assert_eq!(&addresses[0], &addresses[1]);
                prop_assert_eq!(scoped.usage(), counter.usage());
            }
            scoped.end_propagation();
            counter.end_propagation();
            let counted = |planning: Option<Planning>| planning.map(|one| (one.plans, one.planned, one.missed.total()));
            prop_assert_eq!(counted(scoped.planning()), counted(counter.planning()));
        }
    }

    /// Requests in any order, each freed at some later point: live memory is never handed out, and in a second pass
    /// over the recorded orders no place is taken.
    #[test]
    fn whatever_the_order_nothing_overlaps_and_what_was_recorded_has_its_place(
        (instance, orders) in instances(Shape::plain_buffers().with_max_buffers(12).with_max_steps(8).with_max_size(6))
            .prop_flat_map(|instance| { let orders = shuffled(&instance); (Just(instance), orders) }),
        holds in proptest::collection::vec(0..4_usize, 12),
    ) {
        let mut net = Net::new();
        let steps = |order: &Vec<usize>| {
            let mut steps = Vec::new();
            let mut due: Vec<(usize, u64)> = Vec::new();
            for (turn, &buffer) in order.iter().enumerate() {
                due.retain(|&(end, operation)| {
                    if end <= turn { steps.push(Free(operation)); }
                    end > turn
                });
                steps.push(Alloc(buffer as u64, instance.buffers()[buffer].size.get()));
                due.push((turn + 1 + holds[buffer], buffer as u64));
            }
            steps
        };
        for order in &orders {
            net.run(&steps(order));
        }
        let (before, plans) = (net.missed(), net.0.planning.plans);
        for order in &orders {
            net.run(&steps(order));
        }
        prop_assert_eq!((net.missed(), net.0.planning.plans), (before, plans));
    }
}

#[test]
fn a_simulator_names_the_operations() {
    let rows = [(4, 0, 2), (2, 1, 3), (3, 2, 4)];
    let buffers = |order: [usize; 3]| {
        order.map(|row| rows[row]).map(|(units, start, end)| test_buffer(units * UNIT, start, end))
    };
    let mut memory = ProfileGuidedScoped::new(Box::new(Simulated::new()));
    // The same net with its requests renumbered.
    for order in [[0, 1, 2], [0, 1, 2], [2, 0, 1]] {
        let instance = Instance::from_buffers(buffers(order).to_vec()).expect("valid");
        let operations = order.map(|row| row as u64).to_vec();
        let requests = Requests::new(&instance).with_operations(operations);
        let mut simulator = Simulator::new(&requests, &mut memory).with_audit();
        simulator.run_iteration().and_then(|()| simulator.finish_propagation()).expect("no limit");
    }
    assert_eq!((memory.planning.plans, memory.planning.planned), (1, 6));
}
