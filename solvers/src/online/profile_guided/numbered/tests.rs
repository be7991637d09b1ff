//! Tests of how plans are made, kept and left.

use std::time::Duration;

use planlab_dsa::performance::Missed;
use planlab_dsa::testing::{Shape, instances};
use planlab_dsa::{Audit, Call as Event, Requests, Simulated};
use proptest::prelude::*;

use super::*;

fn planning(memory: &ProfileGuided) -> Planning {
    memory.planning().expect("it plans")
}

/// A memory and the addresses of one propagation.
struct Net {
    memory: ProfileGuided,
}

impl Net {
    fn new() -> Self {
        Self { memory: ProfileGuided::new(Box::new(Simulated::new())) }
    }

    fn alloc(&mut self, units: u64) -> Address {
        self.memory.alloc(Bytes::new(units * UNIT), Stream::default()).expect("no limit")
    }

    fn free(&mut self, blocks: impl IntoIterator<Item = Address>) {
        blocks.into_iter().for_each(|block| self.memory.free(block).expect("live"));
    }

    /// Each buffer lives until the next but one is allocated.
    fn propagate(&mut self, sizes: &[u64]) -> Vec<Address> {
        let mut blocks = Vec::new();
        for &size in sizes {
            let block = self.alloc(size);
            let before = blocks.len().checked_sub(1).map(|last| blocks[last]);
            blocks.push(block);
            self.free(before);
        }
        self.free(blocks.last().copied());
        self.memory.end_propagation();
        blocks
    }

    fn counts(&self) -> (u64, u64, u64) {
        let planning = planning(&self.memory);
        (planning.plans, planning.planned, planning.missed.total())
    }
}

#[test]
fn a_propagation_that_comes_again_lies_where_it_was_planned() {
    let mut net = Net::new();
    net.propagate(&[4, 2, 4]);
    let first = net.propagate(&[4, 2, 4]);
    assert_eq!(net.propagate(&[4, 2, 4]), first);
    assert_eq!(net.counts(), (1, 6, 3));
    assert_eq!(net.memory.usage().reserved, Bytes::new(6 * UNIT));
}

#[test]
fn smaller_and_fewer_requests_keep_the_plan() {
    let mut net = Net::new();
    net.propagate(&[4, 2, 4]);
    net.propagate(&[3, 2, 4]);
    net.propagate(&[4, 2]);
    assert_eq!(net.counts(), (1, 5, 3));
}

#[test]
fn a_larger_request_goes_to_the_pool_and_is_planned_for_the_next_time() {
    let mut net = Net::new();
    net.propagate(&[4, 2, 4]);
    net.propagate(&[4, 3, 4]);
    assert_eq!(net.counts(), (2, 2, 4));
    net.propagate(&[4, 3, 4]);
    // The larger of both sizes was planned.
    net.propagate(&[1, 1, 4]);
    assert_eq!(net.counts(), (2, 8, 4));
    assert_eq!(net.memory.usage().reserved, Bytes::new(7 * UNIT));
}

#[test]
fn a_buffer_that_lives_longer_than_planned_keeps_its_memory() {
    let mut net = Net::new();
    net.propagate(&[4, 2, 4]);
    let first = net.alloc(4);
    let second = net.alloc(2);
    let third = net.alloc(4);
    assert_ne!(first, third);
    net.free([first, second, third]);
    net.memory.end_propagation();
    assert_eq!(net.counts(), (2, 2, 4));
    // Now all three are planned to live at once.
    let blocks = [4, 2, 4].map(|size| net.alloc(size));
    net.free(blocks);
    assert_eq!(net.counts(), (2, 5, 4));
}

#[test]
fn what_outlives_its_propagation_is_left_to_the_pool() {
    let mut net = Net::new();
    let mut kept = Vec::new();
    for _ in 0..3 {
        let weight = net.alloc(8);
        kept.push(weight);
        net.propagate(&[4, 2]);
    }
    assert_eq!(net.counts(), (1, 4, 5));
    net.free(kept);
}

#[test]
fn a_block_of_an_earlier_propagation_is_not_overwritten() {
    let mut net = Net::new();
    net.propagate(&[4, 2]);
    let late = net.alloc(4);
    net.memory.end_propagation();
    let next = net.alloc(4);
    assert_ne!(next, late);
    net.free([late, next]);
    assert_eq!(net.memory.free(late), Err(NotLive { address: late }));
}

#[test]
fn an_operation_that_is_left_out_does_not_shift_the_others() {
    let mut net = Net::new();
    let mut run = |operations: &[u64]| {
        for &operation in operations {
            net.memory.enter_operation(operation);
            let block = net.alloc(operation);
            net.free([block]);
        }
        net.memory.end_propagation();
        net.counts()
    };
    assert_eq!(run(&[1, 2, 9, 3]), (1, 0, 4));
    assert_eq!(run(&[1, 9, 3]), (1, 3, 4));
    // One more that was never planned; the others still are.
    assert_eq!(run(&[1, 2, 7, 9, 3]), (2, 7, 5));
}

#[test]
fn a_caller_names_kinds_and_they_share_a_segment() {
    let rounds = |memory: ProfileGuided| {
        let mut net = Net { memory };
        for _ in 0..3 {
            for (kind, sizes) in [(7, &[4, 2, 4][..]), (8, &[9, 1])] {
                net.memory.begin_propagation(kind);
                net.propagate(sizes);
            }
        }
        net
    };
    let build = || ProfileGuided::new(Box::new(Simulated::new()));
    let kinds = rounds(build().with_kinds());
    assert_eq!(kinds.counts(), (2, 10, 5));
    assert_eq!(planning(&kinds.memory).missed.unknown, 5);
    assert_eq!(kinds.memory.usage().reserved, Bytes::new(10 * UNIT));
    // An allocator without kinds ignores them.
    assert!(rounds(build()).counts().1 < 10);
}

#[test]
fn misses_are_told_by_their_reason() {
    let mut net = Net::new();
    net.propagate(&[4, 2, 4]);
    net.propagate(&[4, 3, 4, 1]);
    let missed = Missed { unknown: 4, larger: 1, ..Missed::default() };
    assert_eq!(planning(&net.memory).missed, missed);
}

#[test]
fn without_memory_for_the_plan_the_pool_goes_on() {
    let backing = Simulated::with_capacity(Bytes::new(8 * UNIT));
    let mut net = Net { memory: ProfileGuided::new(Box::new(backing)) };
    let weight = net.alloc(1);
    let blocks = [3, 4].map(|size| net.alloc(size));
    net.free(blocks);
    net.memory.end_propagation();
    let wall = net.alloc(1);
    let blocks = [3, 3].map(|size| net.alloc(size));
    net.free(blocks);
    net.free([wall, weight]);
    net.memory.release_cached();
    assert_eq!(net.memory.usage().reserved, Bytes::ZERO);
}

#[test]
fn what_goes_as_planned_is_served_without_books() {
    let mut net = Net::new();
    let mut kept = Vec::new();
    for _ in 0..2 {
        kept.push(net.alloc(3));
        net.propagate(&[4, 2, 4]);
    }
    // The segment exists now. A request that outlives the propagation does not give it back.
    let weight = net.alloc(3);
    net.free(kept);
    let first = net.alloc(4);
    assert_eq!((net.memory.script.position(), net.memory.live.len()), (Some(2), 0));
    assert_eq!(net.memory.usage().used, Bytes::new((3 + 4) * UNIT));
    // The second is freed before the first, contrary to the plan.
    let second = net.alloc(2);
    net.free([second]);
    assert_eq!((net.memory.script.position(), net.memory.live.len()), (None, 1));
    assert_eq!(net.memory.usage().used, Bytes::new((3 + 4) * UNIT));
    net.free([first, weight]);
    assert_eq!(net.memory.free(first), Err(NotLive { address: first }));
}

#[test]
fn a_block_that_is_kept_costs_one_plan_and_not_one_for_each_propagation() {
    let mut net = Net::new();
    net.propagate(&[4]);
    let kept = net.alloc(4);
    net.memory.end_propagation();
    net.propagate(&[4]);
    let (plans, planned, _) = net.counts();
    for round in 1..6 {
        let block = net.propagate(&[4])[0];
        assert_ne!(block, kept);
        assert_eq!((net.counts().0, net.counts().1), (plans, planned + round));
    }
    assert_eq!(net.memory.script.position(), Some(0));
    // The old segment goes back with its last block, without effect on planned calls.
    let before = net.memory.usage().reserved;
    let block = net.alloc(4);
    net.free([kept]);
    assert_eq!((net.memory.script.position(), net.memory.live.len()), (Some(1), 0));
    assert_eq!(net.memory.usage().reserved, Bytes::new(before.get() - 4 * UNIT));
    net.free([block]);
}

#[test]
fn what_outlived_the_recorded_propagation_is_planned_once_it_does_not() {
    let mut net = Net::new();
    let kept = net.alloc(3);
    net.propagate(&[4, 2]);
    net.free([kept]);
    for _ in 0..3 {
        let block = net.alloc(3);
        net.free([block]);
        net.propagate(&[4, 2]);
    }
    assert_eq!(net.memory.usage().used, Bytes::ZERO);
    assert_eq!(net.counts(), (2, 2 + 3 + 3, 3 + 1));
}

#[test]
fn a_request_that_is_refused_may_come_again() {
    let mut net =
        Net { memory: ProfileGuided::new(Box::new(Simulated::with_capacity(Bytes::new(8 * UNIT)))) };
    net.propagate(&[2, 3]);
    net.propagate(&[2, 3]);
    let first = net.alloc(2);
    let refused = net.memory.alloc(Bytes::new(100 * UNIT), Stream::default());
    assert!(matches!(refused, Err(AllocError::OutOfMemory { .. })));
    // It is still the second request, and has the second's place.
    let second = net.alloc(3);
    net.free([first, second]);
    assert_eq!(net.counts(), (1, 4, 2));
}

#[test]
fn each_kind_keeps_its_script() {
    let mut net = Net { memory: ProfileGuided::new(Box::new(Simulated::new())).with_kinds() };
    for _ in 0..4 {
        for (kind, sizes) in [(1, [4, 2]), (2, [3, 3])] {
            net.memory.begin_propagation(kind);
            net.propagate(&sizes);
        }
    }
    net.memory.begin_propagation(1);
    assert_eq!((net.memory.script.kind(), net.memory.script.position()), (1, Some(0)));
    assert!(net.memory.parked.contains_key(&2));
    assert_eq!(net.memory.live.len(), 0);
}

/// How a call is changed, and by how much.
type Bend = (u8, u64);

/// Frees a block, which must be live or null; returns its address if it was live.
fn free(memory: &mut ProfileGuided, audit: &mut Audit, block: Address) -> Result<Address, bool> {
    let is_live = block == Address::NULL || audit.remove_block(block);
    assert_eq!(memory.free(block).is_ok(), is_live, "{block}");
    if is_live { Ok(block) } else { Err(false) }
}

/// Makes a changed call on a memory, and returns everything visible of the result.
fn call(
    (memory, audit): (&mut ProfileGuided, &mut Audit),
    event: Event,
    sizes: &[Bytes],
    blocks: &mut [Address],
    (kind, by): Bend,
) -> (Result<Address, bool>, Usage, Planning) {
    let any = usize::try_from(by % blocks.len() as u64).expect("an index");
    match kind {
        0 => memory.enter_operation(by % 3),
        1 => memory.end_propagation(),
        2 => {
            memory.end_propagation();
            memory.begin_propagation(by % 2);
        }
        3 => memory.release_cached(),
        _ => {}
    }
    let answer = match (event, kind) {
        (_, 4) => Ok(Address::NULL),
        (_, 5) => free(memory, audit, blocks[any]),
        (Event::Alloc(id), _) => {
            let size = sizes[id.index()].get() * UNIT + if kind == 6 { by % 2000 } else { 0 };
            let answer = memory.alloc(Bytes::new(size), Stream::default());
            blocks[id.index()] = answer.unwrap_or_default();
            if let Ok(block) = answer
                && block != Address::NULL
            {
                audit.handed_out(block, Bytes::new(size)).expect("nothing that is live");
            }
            answer.map_err(|_| true)
        }
        (Event::Free(id), _) => free(memory, audit, blocks[id.index()]),
    };
    // The time of planning differs.
    let planning = Planning { time: Duration::ZERO, ..planning(memory) };
    (answer, memory.usage(), planning)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: if cfg!(miri) { 4 } else { 256 }, ..ProptestConfig::default() })]

    /// Planned calls give the same answers by the script and, if it is left before each call, by the books.
    #[test]
    fn the_script_and_the_books_give_the_same_answers(
        instance in instances(Shape::plain_buffers().with_max_buffers(12).with_max_steps(8).with_max_size(6)),
        bends in proptest::collection::vec(proptest::option::weighted(0.08, (0..7_u8, any::<u64>())), 1..150),
        capacity in proptest::option::of(1..80_u64),
    ) {
        let build = || {
            let device = capacity.map_or_else(Simulated::new, |units| {
                Simulated::with_capacity(Bytes::new(units * UNIT))
            });
            ProfileGuided::new(Box::new(device)).with_kinds()
        };
        let [mut script, mut books] = [build(), build()];
        let requests = Requests::new(&instance);
        let [mut audit, mut other_audit] = [Audit::default(), Audit::default()];
        let [mut of_script, mut of_books] = [(); 2].map(|()| vec![Address::NULL; instance.len()]);
        let mut bends = bends.into_iter().map(|bend| bend.unwrap_or((u8::MAX, 0)));
        for _ in 0..6 {
            for event in requests.calls_in_order() {
                let bend = bends.next().unwrap_or((u8::MAX, 0));
                books.leave_script();
                let seen = call((&mut script, &mut audit), event, requests.sizes(), &mut of_script, bend);
                prop_assert_eq!(seen, call((&mut books, &mut other_audit), event, requests.sizes(), &mut of_books, bend));
            }
            script.end_propagation();
            books.leave_script();
            books.end_propagation();
        }
    }
}
