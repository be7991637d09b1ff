//! What `Planned` serves and what it refuses.

use planlab_dsa::testing::{Capacity, Shape, abuse, allocator_calls, first_fit, instances};
use planlab_dsa::{
    Address, AllocError, Buffer, BufferId, Bytes, InPlace, Instance, LiveRange, NotLive, OnlineAllocator,
    Pause, Requests, Simulated, Stream, VerifiedPlan,
};
use planlab_replay::{Kind, Planned, PlannedError, Sequence};
use proptest::prelude::*;

fn buffer(size: u64, start: u32, end: u32) -> Buffer {
    Buffer::new(Bytes::new(size), LiveRange::new(start, end).expect("not empty"))
}

fn instance(rows: &[(u64, u32, u32)]) -> Instance {
    let buffers = rows.iter().map(|&(size, start, end)| buffer(size, start, end)).collect();
    Instance::from_buffers(buffers).expect("valid")
}

fn plan(instance: &Instance) -> VerifiedPlan<'_> {
    instance.verify(first_fit(instance, &[], &[])).expect("first fit is valid")
}

fn planned(plan: &VerifiedPlan<'_>) -> Planned {
    Planned::new(plan, Box::new(Simulated::new())).expect("a segment")
}

fn ask(memory: &mut Planned, size: u64) -> Result<Address, AllocError> {
    memory.alloc(Bytes::new(size), Stream::default())
}

/// Why a request is refused.
fn reason(memory: &mut Planned, size: u64) -> &'static str {
    match ask(memory, size) {
        Err(AllocError::NotPlanned { reason, .. }) => reason,
        other => panic!("{other:?}"),
    }
}

/// Requests come by step: buffer 1 before buffer 0.
const ROWS: [(u64, u32, u32); 4] = [(100, 1, 3), (50, 0, 2), (70, 2, 4), (30, 3, 5)];

#[test]
fn every_propagation_lies_where_it_was_planned() {
    let instance = instance(&ROWS);
    let plan = plan(&instance);
    let mut memory = planned(&plan);
    let sequence = Sequence::new(&Requests::new(&instance));
    let mut bases = Vec::new();
    for _ in 0..3 {
        let mut addresses = [0; ROWS.len()];
        for (kind, buffers) in sequence.runs() {
            for at in buffers.iter().map(|&buffer| buffer as usize) {
                if kind == Kind::Free {
                    memory.free(Address::new(addresses[at])).expect("live");
                    continue;
                }
                addresses[at] = ask(&mut memory, ROWS[at].0).expect("as planned").get();
                bases.push(addresses[at] - plan.offsets()[at].get());
            }
        }
        memory.end_propagation();
    }
    assert_eq!((bases.len(), memory.requests()), (12, 4));
    assert!(bases.iter().all(|&base| base == bases[0]), "{bases:?}");
    let usage = memory.usage();
    assert_eq!((usage.reserved, usage.used, usage.device_allocations), (plan.height(), Bytes::ZERO, 1));
}

#[test]
fn what_is_not_as_planned_is_refused_and_does_not_count() {
    let instance = instance(&ROWS);
    let plan = plan(&instance);
    let mut memory = planned(&plan);
    assert_eq!(reason(&mut memory, 51), "it is larger than planned");
    let first = ask(&mut memory, 50).expect("as planned");
    let second = ask(&mut memory, 100).expect("as planned");
    // The first was planned to be free by now.
    assert_eq!(reason(&mut memory, 70), "a block that was planned to be free is in use");
    memory.free(first).expect("live");
    let third = ask(&mut memory, 7).expect("smaller is as good");
    memory.free(third).expect("earlier is as good");
    memory.free(second).expect("live");
    let fourth = ask(&mut memory, 30).expect("as planned");
    assert_eq!(reason(&mut memory, 1), "the plan has no more requests");
    memory.end_propagation();
    assert_eq!(reason(&mut memory, 50), "a block of an earlier propagation is in use");
    assert_eq!(memory.free(fourth), Ok(()));
    assert_eq!(ask(&mut memory, 50), Ok(first));
}

#[test]
fn a_late_free_is_not_taken_for_that_of_the_new_propagation() {
    let instance = instance(&ROWS);
    let mut memory = planned(&plan(&instance));
    let late = ask(&mut memory, 50).expect("as planned");
    memory.end_propagation();
    memory.free(late).expect("live");
    for size in [50, 100] {
        ask(&mut memory, size).expect("as planned");
    }
    assert_eq!(reason(&mut memory, 70), "a block that was planned to be free is in use");
}

#[test]
fn only_live_blocks_can_be_freed() {
    // The third takes the second's place.
    let instance = instance(&[(64, 0, 3), (64, 1, 2), (64, 2, 4)]);
    let plan = plan(&instance);
    let mut memory = planned(&plan);
    let refused = |memory: &mut Planned, address: u64| {
        let address = Address::new(address);
        assert_eq!(memory.free(address), Err(NotLive { address }));
    };
    [1, 64, u64::MAX].into_iter().for_each(|stranger| refused(&mut memory, stranger));
    let [first, second] = [64, 64].map(|size| ask(&mut memory, size).expect("as planned"));
    refused(&mut memory, first.get() + 1);
    memory.free(first).expect("out of order, but live");
    refused(&mut memory, first.get());
    memory.free(second).expect("live");
    refused(&mut memory, second.get());
    assert_eq!(ask(&mut memory, 64), Ok(second));
    assert_eq!(memory.free(Address::NULL), Ok(()));
    assert_eq!(memory.usage().used, Bytes::new(64));
}

#[test]
fn a_request_for_nothing_counts_and_gets_nothing() {
    let instance = instance(&ROWS);
    let mut memory = planned(&plan(&instance));
    assert_eq!(ask(&mut memory, 0), Ok(Address::NULL));
    let block = ask(&mut memory, 100).expect("as planned");
    assert_eq!(memory.free(Address::NULL), Ok(()));
    assert_eq!(memory.free(block), Ok(()));
}

#[test]
fn a_segment_that_went_back_is_taken_again() {
    let instance = instance(&ROWS);
    let plan = plan(&instance);
    let mut memory = planned(&plan);
    memory.release_cached();
    assert_eq!(memory.usage().reserved, Bytes::ZERO);
    let block = ask(&mut memory, 50).expect("as planned");
    memory.release_cached();
    assert_eq!((memory.usage().reserved, memory.usage().device_allocations), (plan.height(), 2));
    memory.free(block).expect("live");
}

fn refusal(plan: &VerifiedPlan<'_>, device: Simulated) -> Option<PlannedError> {
    Planned::new(plan, Box::new(device)).err()
}

#[test]
fn pauses_and_hand_overs_cannot_be_followed() {
    let pause = Pause { steps: LiveRange::new(2, 4).expect("not empty"), window: None };
    let paused = Buffer { pauses: Box::new([pause]), ..buffer(8, 0, 9) };
    let instance = Instance::from_buffers(vec![paused]).expect("valid");
    assert_eq!(refusal(&plan(&instance), Simulated::new()), Some(PlannedError::Pauses));

    let pair = InPlace { input: BufferId::new(0), output: BufferId::new(1) };
    let two = Instance::builder().buffer(buffer(8, 0, 2)).buffer(buffer(8, 1, 3)).in_place([pair]);
    let instance = two.build().expect("valid");
    let handed = instance.verify(first_fit(&instance, &[], &[pair])).expect("first fit is valid");
    assert_eq!(handed.in_place().len(), 1);
    assert_eq!(refusal(&handed, Simulated::new()), Some(PlannedError::HandOvers));
    // The same without the hand-over can be followed.
    assert_eq!(refusal(&plan(&instance), Simulated::new()), None);
}

#[test]
fn a_segment_must_have_room_and_be_aligned() {
    let instance = instance(&[(8, 0, 2), (8, 1, 3)]);
    let small = Simulated::with_capacity(Bytes::new(15));
    let refused = refusal(&plan(&instance), small);
    assert!(matches!(refused, Some(PlannedError::NoMemory { height, .. }) if height == Bytes::new(16)));
    let align = planlab_dsa::Alignment::new(3).expect("not 0");
    let odd = Instance::from_buffers(vec![Buffer { align, ..buffer(8, 0, 1) }]).expect("valid");
    let refused = refusal(&plan(&odd), Simulated::new());
    assert!(matches!(refused, Some(PlannedError::Alignment { align: 3, .. })), "{refused:?}");
}

#[test]
fn no_buffers_need_no_memory() {
    let instance = instance(&[]);
    let mut memory = planned(&plan(&instance));
    assert_eq!(reason(&mut memory, 1), "the plan has no more requests");
    memory.end_propagation();
    assert_eq!(memory.usage().device_allocations, 0);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: if cfg!(miri) { 4 } else { 256 }, ..ProptestConfig::default() })]

    #[test]
    fn no_caller_gets_live_memory(
        instance in instances(
            Shape::plain().with_max_buffers(40).with_max_steps(25).with_max_size(1 << 20).with_alignment(false),
        ),
        calls in allocator_calls(),
    ) {
        let plan = plan(&instance);
        let build = |backing| -> Box<dyn OnlineAllocator> {
            Box::new(Planned::new(&plan, backing).expect("a segment"))
        };
        abuse(build, Capacity::Unlimited, &calls)?;
    }
}
