//! Online allocators under arbitrary callers, on real memory whose every byte is checked.

use planlab_dsa::testing::{AllocatorCall, Shape, allocator_calls, first_fit, instances};
use planlab_dsa::{Address, Backing, Bytes, OnlineAllocator};
use planlab_replay::Planned;
use planlab_replay::host::{Fault, Guarded, HostBacking};
use planlab_solvers::online::{find_allocator, registry};
use proptest::prelude::*;

/// Larger requests are cut to this size, because every byte is written.
const LARGEST: u64 = 200_000;

struct Caller {
    memory: Guarded,
    freed: Vec<Address>,
}

impl Caller {
    fn block(&self, index: usize) -> Option<(Address, Bytes)> {
        self.memory.live_blocks().nth(index % self.memory.live_blocks().count().max(1))
    }

    fn free(&mut self, address: Address) -> Result<(), Fault> {
        self.memory.free(address)?;
        self.freed.push(address);
        Ok(())
    }

    fn call(&mut self, call: AllocatorCall) -> Result<(), Fault> {
        match call {
            AllocatorCall::Alloc(size, _) => match self.memory.alloc(Bytes::new(size % LARGEST)) {
                Err(fault) if fault.is_corruption() => Err(fault),
                _ => Ok(()),
            },
            AllocatorCall::Free(index) => self.block(index).map_or(Ok(()), |(address, _)| self.free(address)),
            AllocatorCall::FreeAgain(index) => {
                let again = self.freed.get(index % self.freed.len().max(1)).copied();
                again.map_or(Ok(()), |address| self.free(address))
            }
            AllocatorCall::FreeInside(index, by) => match self.block(index) {
                Some((address, size)) if by < size.get() => self.free(Address::new(address.get() + by)),
                _ => Ok(()),
            },
            AllocatorCall::FreeStranger(raw) => self.free(Address::new(raw)),
            AllocatorCall::ReleaseCached => {
                self.memory.release_cached();
                Ok(())
            }
            AllocatorCall::EndPropagation => {
                self.memory.end_propagation();
                Ok(())
            }
        }
    }
}

/// Repeats the calls, so that an allocator that plans serves the next propagation from its plan.
fn abuse(
    build: impl FnOnce(Box<dyn Backing>) -> Box<dyn OnlineAllocator>,
    calls: &[AllocatorCall],
    turns: usize,
) -> Result<(), Fault> {
    let memory = Guarded::new(HostBacking::new(), build);
    let mut caller = Caller { memory, freed: Vec::new() };
    for turn in 0..turns {
        // Each turn leaves out other calls.
        let calls = calls.iter().enumerate().filter(|(at, _)| turn == 0 || (at + turn) % 7 != 0);
        for (_, &call) in calls {
            caller.call(call)?;
        }
        caller.memory.check_live()?;
        caller.memory.end_propagation();
    }
    let all: Vec<Address> = caller.memory.live_blocks().map(|(address, _)| address).collect();
    all.into_iter().try_for_each(|address| caller.free(address))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, ..ProptestConfig::default() })]

    #[test]
    fn a_plan_of_the_last_propagation_is_never_talked_into_live_memory(calls in allocator_calls()) {
        let entry = find_allocator("profile-guided").expect("registered");
        let abused = abuse(|backing| entry.build(backing), &calls, 4);
        prop_assert!(abused.is_ok(), "{}", abused.unwrap_err());
    }

    #[test]
    fn a_verified_plan_is_never_talked_into_live_memory(
        instance in instances(
            Shape::plain_buffers().with_max_buffers(30).with_max_steps(20).with_max_size(LARGEST).with_alignment(false),
        ),
        calls in allocator_calls(),
    ) {
        let plan = instance.verify(first_fit(&instance, &[], &[])).expect("first fit is valid");
        let build = |backing| -> Box<dyn OnlineAllocator> {
            Box::new(Planned::new(&plan, backing).expect("there is memory"))
        };
        let abused = abuse(build, &calls, 4);
        prop_assert!(abused.is_ok(), "{}", abused.unwrap_err());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4, ..ProptestConfig::default() })]

    #[test]
    fn no_pool_is_talked_into_live_memory(calls in allocator_calls()) {
        for entry in registry() {
            let abused = abuse(|backing| entry.build(backing), &calls, 1);
            prop_assert!(abused.is_ok(), "{}: {}", entry.key, abused.unwrap_err());
        }
    }
}
