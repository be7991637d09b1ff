//! Tests which requests `Planned` serves and which it refuses.

use planlab_dsa::testing::{
    Capacity, Shape, abuse_allocator, allocator_calls, first_fit, instances, test_buffer as buffer,
    test_instance as instance,
};
use planlab_dsa::{
    Address, Alignment, AllocError, Audit, Backing, Buffer, BufferId, Bytes, InPlace, Instance, LiveRange,
    NotLive, OnlineAllocator, Pause, Refused, Requests, Simulated, Stream, VerifiedPlan,
};
use planlab_replay::{Kind, Planned, PlannedError, Sequence};
use proptest::prelude::*;

fn plan(instance: &Instance) -> VerifiedPlan<'_> {
    instance.verify(first_fit(instance, &[], &[])).expect("first fit is valid")
}

fn planned(plan: &VerifiedPlan<'_>) -> Planned {
    Planned::new(plan, Box::new(Simulated::new())).expect("a segment")
}

fn planned_rows(rows: &[(u64, u32, u32)]) -> Planned {
    planned(&plan(&instance(rows)))
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

/// Requests come in the order of steps: buffer 1 before buffer 0.
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
    assert_eq!(bases.len(), 12);
    assert!(bases.iter().all(|&base| base == bases[0]), "{bases:?}");
    let usage = memory.usage();
    assert_eq!((usage.reserved, usage.used, usage.device_allocations), (plan.height(), Bytes::ZERO, 1));
}

#[test]
fn what_is_not_as_planned_is_refused_and_does_not_count() {
    let mut memory = planned_rows(&ROWS);
    assert_eq!(reason(&mut memory, 51), "it is larger than planned");
    let first = ask(&mut memory, 50).expect("as planned");
    let second = ask(&mut memory, 100).expect("as planned");
    // The first block was planned to be free by now.
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
    let mut memory = planned_rows(&ROWS);
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
    // The third block takes the second's place.
    let mut memory = planned_rows(&[(64, 0, 3), (64, 1, 2), (64, 2, 4)]);
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
    let mut memory = planned_rows(&ROWS);
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
    // Without the hand-over the same plan can be followed.
    assert_eq!(refusal(&plan(&instance), Simulated::new()), None);
}

#[test]
fn a_segment_must_have_room() {
    let instance = instance(&[(8, 0, 2), (8, 1, 3)]);
    let small = Simulated::with_capacity(Bytes::new(15));
    let refused = refusal(&plan(&instance), small);
    assert!(matches!(refused, Some(PlannedError::NoMemory { height, .. }) if height == Bytes::new(16)));
}

/// Segments that begin at odd multiples of 512, each at another place.
struct Skewed(u64);

impl Backing for Skewed {
    fn acquire(&mut self, size: Bytes) -> Result<Address, Refused> {
        let at = self.0;
        self.0 += size.get().next_multiple_of(1024) + 1024;
        Ok(Address::new(at))
    }

    fn release(&mut self, base: Address) {
        assert!(base.get() % 1024 == 512 && base.get() < self.0, "what was acquired");
    }
}

#[test]
fn a_segment_is_aligned_whenever_it_is_taken() {
    for align in [3, 512, 768, 4096] {
        let align = Alignment::new(align).expect("not 0");
        let instance = Instance::from_buffers(vec![buffer(8, 0, 2).with_align(align)]).expect("valid");
        let plan = plan(&instance);
        let mut memory = Planned::new(&plan, Box::new(Skewed(512))).expect("a segment");
        let spare = if align.get() == 512 { 0 } else { align.get() - 1 };
        for propagation in 1..4 {
            let block = ask(&mut memory, 8).expect("as planned");
            assert!(align.divides(block.get()), "{block} {align:?}");
            assert_eq!(memory.usage().reserved.get(), plan.height().get() + spare);
            memory.free(block).expect("live");
            memory.end_propagation();
            memory.release_cached();
            assert_eq!(memory.usage().device_releases, propagation);
        }
    }
}

#[test]
fn alignments_without_a_common_address_are_refused() {
    let aligned = |align: u64| buffer(8, 0, 1).with_align(Alignment::new(align).expect("not 0"));
    let instance = Instance::from_buffers(vec![aligned(3), aligned(1 << 63)]).expect("valid");
    let offsets = [0, 1 << 63].map(planlab_dsa::Offset::new);
    let plan = instance.verify(planlab_dsa::Plan::from_offsets(offsets)).expect("valid");
    assert_eq!(refusal(&plan, Simulated::new()), Some(PlannedError::Alignments));
}

#[test]
fn no_buffers_need_no_memory() {
    let mut memory = planned_rows(&[]);
    assert_eq!(reason(&mut memory, 1), "the plan has no more requests");
    memory.end_propagation();
    assert_eq!(memory.usage().device_allocations, 0);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: if cfg!(miri) { 4 } else { 256 }, ..ProptestConfig::default() })]

    #[test]
    fn no_caller_gets_live_memory(
        instance in instances(
            Shape::plain_buffers().with_max_buffers(40).with_max_steps(25).with_max_size(1 << 20).with_alignment(false),
        ),
        calls in allocator_calls(),
    ) {
        let plan = plan(&instance);
        let build = |backing| -> Box<dyn OnlineAllocator> {
            Box::new(Planned::new(&plan, backing).expect("a segment"))
        };
        abuse_allocator(build, Capacity::Unlimited, &calls)?;
    }

    /// One caller frees an unknown address before each call: it leaves the planned order, and the ledger serves. The
    /// other is served from the table while its calls are as planned.
    #[test]
    fn the_table_and_the_ledger_give_the_same_answers(
        instance in instances(Shape::plain_buffers().with_max_buffers(20).with_max_steps(12).with_max_size(1 << 12)),
        bends in proptest::collection::vec(proptest::option::weighted(0.1, (0..5_u8, any::<u64>())), 1..120),
    ) {
        let plan = plan(&instance);
        let [mut table, mut ledger] = [planned(&plan), planned(&plan)];
        let sequence = Sequence::new(&Requests::new(&instance));
        let calls: Vec<(Kind, u32)> = sequence.calls().collect();
        let mut addresses = vec![Address::NULL; instance.len()];
        let mut audit = Audit::default();
        let mut bends = bends.iter().copied();
        let stranger = Address::new(u64::MAX);
        for _ in 0..4 {
            for &(kind, buffer) in &calls {
                prop_assert_eq!(ledger.free(stranger), Err(NotLive { address: stranger }));
                let bend = bends.next().flatten();
                let size = sequence.sizes()[buffer as usize];
                let (size, address) = match bend {
                    Some((0, raw)) => (raw % (size + 2), Address::new(raw)),
                    Some((1, raw)) => (size, addresses[raw.trailing_zeros() as usize % addresses.len()]),
                    _ => (size, addresses[buffer as usize]),
                };
                for memory in [&mut table, &mut ledger] {
                    match bend {
                        Some((3, _)) => memory.end_propagation(),
                        Some((4, _)) => memory.release_cached(),
                        _ => {}
                    }
                }
                if matches!(bend, Some((2, _))) {
                    continue;
                }
                if kind == Kind::Alloc {
                    let answer = ask(&mut table, size);
                    prop_assert_eq!(answer, ask(&mut ledger, size));
                    addresses[buffer as usize] = answer.unwrap_or_default();
                    let block = addresses[buffer as usize];
                    if block != Address::NULL {
                        prop_assert_eq!(audit.handed_out(block, Bytes::new(size)), Ok(()));
                    }
                } else {
                    let is_live = address == Address::NULL || audit.remove_block(address);
                    let freed = table.free(address);
                    prop_assert_eq!(freed.is_ok(), is_live);
                    prop_assert_eq!(freed, ledger.free(address));
                }
                prop_assert_eq!(table.usage(), ledger.usage());
            }
            table.end_propagation();
            ledger.end_propagation();
        }
    }
}
