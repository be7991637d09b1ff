//! Tests of what all online allocators have in common: no sequence of calls makes them hand out live memory.

use planlab_dsa::testing::{AllocatorCall, Capacity, Shape, abuse_allocator, allocator_calls, instances};
use planlab_dsa::{Address, Bytes, OnlineAllocator, Simulated, Stream};
use planlab_solvers::online::{Requests, Simulator, find_allocator, registry};
use proptest::prelude::*;

proptest! {
    #[test]
    fn no_caller_gets_live_memory(calls in allocator_calls()) {
        for entry in registry() {
            let checked = abuse_allocator(|backing| entry.build(backing), Capacity::Unlimited, &calls);
            prop_assert!(checked.is_ok(), "{}: {}", entry.key, checked.unwrap_err());
        }
    }

    #[test]
    fn no_caller_gets_live_memory_where_the_device_is_small(
        calls in allocator_calls(),
        capacity in (1_u64 << 20)..(128 << 20),
    ) {
        for entry in registry() {
            let checked = abuse_allocator(|backing| entry.build(backing), Capacity::Bytes(capacity), &calls);
            prop_assert!(checked.is_ok(), "{}: {}", entry.key, checked.unwrap_err());
        }
    }

    #[test]
    fn propagations_that_come_again_are_served_soundly(
        instance in instances(Shape::plain_buffers().with_max_buffers(40).with_max_steps(25).with_max_size(5000)),
    ) {
        let requests = Requests::new(&instance);
        let (peak, _) = requests.live_bytes();
        for entry in registry() {
            let mut memory = entry.build(Box::new(Simulated::new()));
            let mut simulator = Simulator::new(&requests, memory.as_mut()).with_audit();
            for _ in 0..4 {
                let played = simulator.run_iteration();
                prop_assert!(played.is_ok(), "{}: {:?}", entry.key, played);
            }
            prop_assert!(simulator.usage().reserved_peak >= peak, "{}", entry.key);
        }
    }

    #[test]
    fn on_one_stream_both_indices_of_cupy_find_the_same_blocks(calls in allocator_calls()) {
        let build = |key| find_allocator(key).expect("registered").build(Box::new(Simulated::new()));
        let (mut scan, mut sparse) = (build("cupy2rc1-pool"), build("cupy4-pool"));
        let mut live = Vec::new();
        for call in calls {
            let answers = [&mut scan, &mut sparse].map(|pool| answer(pool.as_mut(), call, &live));
            prop_assert_eq!(answers[0], answers[1]);
            match (call, answers[0]) {
                (AllocatorCall::Alloc(..), Some(address)) => live.push(address),
                (AllocatorCall::Free(_), Some(address)) => live.retain(|&other| other != address),
                _ => {}
            }
            prop_assert_eq!(scan.usage().reserved, sparse.usage().reserved);
        }
    }
}

/// The block that was handed out or freed.
fn answer(pool: &mut dyn OnlineAllocator, call: AllocatorCall, live: &[Address]) -> Option<Address> {
    match call {
        // Above 128 GiB the scan refuses at once, but the other pool asks the device.
        AllocatorCall::Alloc(size, _) if (1..1 << 37).contains(&size) => {
            pool.alloc(Bytes::new(size), Stream::default()).ok()
        }
        AllocatorCall::Free(index) if !live.is_empty() => {
            let address = live[index % live.len()];
            pool.free(address).ok().map(|()| address)
        }
        AllocatorCall::ReleaseCached => {
            pool.release_cached();
            None
        }
        _ => None,
    }
}

#[test]
fn a_request_for_nothing_is_refused_or_gets_nothing() {
    for entry in registry() {
        let mut memory = entry.build(Box::new(Simulated::new()));
        if let Ok(address) = memory.alloc(Bytes::ZERO, Stream::default()) {
            assert_eq!(address, Address::NULL, "{}", entry.key);
        }
        assert_eq!(memory.free(Address::NULL), Ok(()), "{}", entry.key);
        assert_eq!(memory.usage().used, Bytes::ZERO, "{}", entry.key);
    }
}

#[test]
fn a_full_device_serves_again_once_there_is_room() {
    let mib = |count: u64| Bytes::new(count << 20);
    for entry in registry() {
        let mut memory = entry.build(Box::new(Simulated::with_capacity(mib(64))));
        let mut alloc = |size| memory.alloc(size, Stream::default());
        let block = alloc(mib(40)).unwrap_or_else(|error| panic!("{}: {error}", entry.key));
        assert!(alloc(mib(40)).is_err(), "{}", entry.key);
        memory.free(block).expect("live");
        memory.end_propagation();
        let again = memory.alloc(mib(39), Stream::default());
        assert!(again.is_ok(), "{}: {again:?}", entry.key);
    }
}
