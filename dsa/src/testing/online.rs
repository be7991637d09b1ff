//! Tests online allocators with hostile callers.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard};

use proptest::collection::vec;
use proptest::prelude::*;

use crate::{Address, AllocError, Audit, Backing, Bytes, NotLive, OnlineAllocator, Simulated, Stream};

/// One action of a caller. Indices are taken modulo the number of choices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AllocatorCall {
    /// Requests this many bytes on a stream.
    Alloc(u64, u32),
    /// Frees one of the live blocks.
    Free(usize),
    /// Frees a block a second time.
    FreeAgain(usize),
    /// Frees an address this many bytes inside a live block.
    FreeInside(usize, u64),
    /// Frees an address that was never handed out.
    FreeStranger(u64),
    /// Asks the allocator to release cached memory.
    ReleaseCached,
    /// Ends a propagation.
    EndPropagation,
}

/// The memory under the allocator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Capacity {
    /// As much as there are addresses.
    Unlimited,
    /// This many bytes.
    Bytes(u64),
}

/// Random calls: sizes of every kind, frees in any order, and every kind of misuse.
pub fn allocator_calls() -> impl Strategy<Value = Vec<AllocatorCall>> {
    let size = prop_oneof![
        8 => 1_u64..5000,
        4 => (1_u64..64).prop_map(|units| units * 512),
        4 => (8_u32..25, 0_u64..3).prop_map(|(power, more)| (1 << power) - 1 + more),
        2 => 1_u64..(64 << 20),
        1 => Just(0),
        1 => (0_u64..5000).prop_map(|less| u64::MAX - less),
    ];
    let call = prop_oneof![
        12 => (size, 0_u32..3).prop_map(|(size, stream)| AllocatorCall::Alloc(size, stream)),
        9 => any::<usize>().prop_map(AllocatorCall::Free),
        1 => any::<usize>().prop_map(AllocatorCall::FreeAgain),
        1 => (any::<usize>(), 1_u64..2048).prop_map(|(at, inside)| AllocatorCall::FreeInside(at, inside)),
        1 => any::<u64>().prop_map(AllocatorCall::FreeStranger),
        1 => Just(AllocatorCall::ReleaseCached),
        1 => Just(AllocatorCall::EndPropagation),
    ];
    vec(call, 1..120)
}

/// Makes the calls on a new allocator. After each call, checks that no live memory was handed out again and that every
/// block has memory. Also checks that addresses that are not live were refused, and that the allocator's figures match
/// its backing. At the end, everything is freed and given back.
pub fn abuse_allocator(
    build: impl FnOnce(Box<dyn Backing>) -> Box<dyn OnlineAllocator>,
    capacity: Capacity,
    calls: &[AllocatorCall],
) -> Result<(), TestCaseError> {
    let device = Arc::new(Mutex::new(match capacity {
        Capacity::Unlimited => Simulated::new(),
        Capacity::Bytes(bytes) => Simulated::with_capacity(Bytes::new(bytes)),
    }));
    let allocator = build(Box::new(Arc::clone(&device)));
    let mut caller =
        Caller { allocator, device, audit: Audit::default(), freed: BTreeSet::new(), requested: 0 };
    for &call in calls {
        caller.make_call(call)?;
        caller.check_usage()?;
    }
    caller.free_everything()
}

struct Caller {
    allocator: Box<dyn OnlineAllocator>,
    device: Arc<Mutex<Simulated>>,
    audit: Audit,
    /// Addresses that were handed out but are no longer live.
    freed: BTreeSet<Address>,
    /// Bytes of live requests.
    requested: u64,
}

impl Caller {
    fn lock_device(&self) -> MutexGuard<'_, Simulated> {
        self.device.lock().expect("nobody panicked with it")
    }

    fn make_call(&mut self, call: AllocatorCall) -> Result<(), TestCaseError> {
        match call {
            AllocatorCall::Alloc(size, stream) => self.alloc(Bytes::new(size), Stream::new(stream)),
            AllocatorCall::Free(index) => match self.nth_block(index) {
                Some((address, _)) => self.free(address),
                None => self.expect_refused(Address::new(512)),
            },
            AllocatorCall::FreeAgain(index) => {
                let freed = self.freed.iter().nth(index % self.freed.len().max(1)).copied();
                freed.map_or(Ok(()), |address| self.expect_refused(address))
            }
            AllocatorCall::FreeInside(index, inside) => match self.nth_block(index) {
                Some((address, size)) if inside < size.get() => {
                    self.expect_refused(Address::new(address.get() + inside))
                }
                _ => Ok(()),
            },
            AllocatorCall::FreeStranger(raw) => self.free_unknown(Address::new(raw)),
            AllocatorCall::ReleaseCached => {
                self.allocator.release_cached();
                Ok(())
            }
            AllocatorCall::EndPropagation => {
                self.allocator.end_propagation();
                Ok(())
            }
        }
    }

    fn free_unknown(&mut self, address: Address) -> Result<(), TestCaseError> {
        if address == Address::NULL {
            prop_assert_eq!(self.allocator.free(address), Ok(()));
        } else if !self.audit.live_blocks().any(|(live, _)| live == address) {
            self.expect_refused(address)?;
        }
        Ok(())
    }

    fn nth_block(&self, index: usize) -> Option<(Address, Bytes)> {
        self.audit.live_blocks().nth(index % self.audit.live_blocks().count().max(1))
    }

    fn alloc(&mut self, size: Bytes, stream: Stream) -> Result<(), TestCaseError> {
        match self.allocator.alloc(size, stream) {
            Ok(Address::NULL) => prop_assert_eq!(size, Bytes::ZERO, "no memory for {} bytes", size),
            Ok(address) => {
                prop_assert!(size > Bytes::ZERO, "memory for no bytes");
                self.audit
                    .handed_out(address, size)
                    .map_err(|error| TestCaseError::fail(error.to_string()))?;
                prop_assert!(self.lock_device().is_backed(address, size), "no memory under {}", address);
                self.freed.remove(&address);
                self.requested += size.get();
            }
            Err(AllocError::ZeroSize) => prop_assert_eq!(size, Bytes::ZERO),
            Err(AllocError::OutOfMemory { .. }) => {
                let is_limited = self.lock_device().device_memory().is_some();
                prop_assert!(is_limited || size.get() > 1 << 60, "{} bytes are not that many", size);
            }
            Err(AllocError::NotPlanned { .. }) => {}
        }
        Ok(())
    }

    fn free(&mut self, address: Address) -> Result<(), TestCaseError> {
        let size =
            self.audit.live_blocks().find(|&(live, _)| live == address).map_or(0, |(_, size)| size.get());
        prop_assert_eq!(self.allocator.free(address), Ok(()));
        self.audit.remove_block(address);
        self.freed.insert(address);
        self.requested -= size;
        Ok(())
    }

    fn expect_refused(&mut self, address: Address) -> Result<(), TestCaseError> {
        let before = self.allocator.usage();
        prop_assert_eq!(self.allocator.free(address), Err(NotLive { address }));
        prop_assert_eq!(self.allocator.usage(), before);
        Ok(())
    }

    fn check_usage(&self) -> Result<(), TestCaseError> {
        let usage = self.allocator.usage();
        prop_assert_eq!(usage.reserved, self.lock_device().held_bytes());
        prop_assert!(usage.reserved <= usage.reserved_peak);
        prop_assert!(usage.used <= usage.reserved, "{:?}", usage);
        prop_assert!(usage.used.get() >= self.requested, "{:?}, live {}", usage, self.requested);
        for (address, size) in self.audit.live_blocks() {
            prop_assert!(self.lock_device().is_backed(address, size), "no memory under {}", address);
        }
        Ok(())
    }

    fn free_everything(mut self) -> Result<(), TestCaseError> {
        let all: Vec<Address> = self.audit.live_blocks().map(|(address, _)| address).collect();
        for address in all {
            self.free(address)?;
        }
        prop_assert_eq!(self.allocator.usage().used, Bytes::ZERO);
        self.allocator.release_cached();
        prop_assert_eq!(self.allocator.usage().reserved, Bytes::ZERO);
        self.check_usage()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Refused, Usage};

    /// A faulty allocator: hands everything out at one address, or keeps a segment per request.
    struct Scripted {
        backing: Box<dyn Backing>,
        live: Vec<(Address, u64)>,
        is_sound: bool,
        usage: Usage,
    }

    impl OnlineAllocator for Scripted {
        fn alloc(&mut self, size: Bytes, _: Stream) -> Result<Address, AllocError> {
            if size == Bytes::ZERO {
                return Err(AllocError::ZeroSize);
            }
            if let (false, Some(&(address, _))) = (self.is_sound, self.live.first()) {
                return Ok(address);
            }
            let failed = |Refused| AllocError::OutOfMemory { size, reserved: Bytes::ZERO };
            let address = self.backing.acquire(size).map_err(failed)?;
            self.live.push((address, size.get()));
            self.count(self.usage.reserved.get() + size.get());
            Ok(address)
        }

        fn free(&mut self, address: Address) -> Result<(), NotLive> {
            if address == Address::NULL {
                return Ok(());
            }
            let found = self.live.iter().position(|&(live, _)| live == address).ok_or(NotLive { address })?;
            let (_, size) = self.live.swap_remove(found);
            self.backing.release(address);
            self.count(self.usage.reserved.get() - size);
            Ok(())
        }

        fn usage(&self) -> Usage {
            self.usage
        }
    }

    impl Scripted {
        fn count(&mut self, bytes: u64) {
            self.usage.reserved = Bytes::new(bytes);
            self.usage.used = self.usage.reserved;
            self.usage.reserved_peak = self.usage.reserved_peak.max(self.usage.reserved);
        }
    }

    fn scripted(is_sound: bool, calls: &[AllocatorCall]) -> Result<(), TestCaseError> {
        let build = |backing| {
            let allocator = Scripted { backing, live: Vec::new(), is_sound, usage: Usage::default() };
            Box::new(allocator) as Box<dyn OnlineAllocator>
        };
        abuse_allocator(build, Capacity::Unlimited, calls)
    }

    proptest! {
        #[test]
        fn a_sound_allocator_is_found_sound(calls in allocator_calls()) {
            scripted(true, &calls)?;
        }
    }

    #[test]
    fn an_allocator_that_hands_memory_out_twice_is_found_out() {
        let calls = [AllocatorCall::Alloc(8, 0), AllocatorCall::Alloc(8, 0)];
        assert!(scripted(true, &calls).is_ok());
        assert!(scripted(false, &calls).is_err());
    }
}
