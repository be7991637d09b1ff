//! The common part of the pools that keep freed blocks by size and neither split nor join them.
//!
//! A request is rounded up to a size class. It gets the last freed block of that class, or else a new block of the
//! class from the device. A larger block is never used.

use std::collections::BTreeMap;

use planlab_dsa::{Address, AllocError, Backing, Bytes, NotLive, Usage};
use rustc_hash::FxHashMap;

use super::device::Device;

/// An allocator that only wraps an [`ExactSize`] over a backing. One function returns the class of a request in bytes,
/// or `None` above 2^64 - 1; another prepares the pool before the device is asked for memory.
macro_rules! exact_size_pool {
    ($pool:ident, $class:path, $prepare:expr) => {
        impl $pool {
            /// An empty pool over a backing.
            #[must_use]
            pub fn new(backing: Box<dyn planlab_dsa::Backing>) -> Self {
                Self(ExactSize::new(backing))
            }
        }

        impl planlab_dsa::OnlineAllocator for $pool {
            fn alloc(
                &mut self,
                size: planlab_dsa::Bytes,
                _: planlab_dsa::Stream,
            ) -> Result<planlab_dsa::Address, planlab_dsa::AllocError> {
                if size == planlab_dsa::Bytes::ZERO {
                    return Ok(planlab_dsa::Address::NULL);
                }
                self.0.alloc(size, $class(size.get()), $prepare)
            }

            fn free(&mut self, address: planlab_dsa::Address) -> Result<(), planlab_dsa::NotLive> {
                self.0.free(address)
            }

            fn release_cached(&mut self) {
                self.0.release_cached();
            }

            fn usage(&self) -> planlab_dsa::Usage {
                self.0.usage()
            }
        }
    };
}
pub(super) use exact_size_pool;

pub(super) struct ExactSize {
    pub(super) device: Device,
    /// Classes of the blocks in use, by address.
    live: FxHashMap<u64, u64>,
    /// Freed blocks of each class, the last freed at the end.
    free: BTreeMap<u64, Vec<u64>>,
    used: u64,
    search_steps: u64,
}

impl ExactSize {
    pub(super) fn new(backing: Box<dyn Backing>) -> Self {
        Self {
            device: Device::new(backing),
            live: FxHashMap::default(),
            free: BTreeMap::new(),
            used: 0,
            search_steps: 0,
        }
    }

    /// Serves a request for `size` bytes from a class (in bytes). Calls `prepare` before it asks the device for memory.
    pub(super) fn alloc(
        &mut self,
        size: Bytes,
        class: Option<u64>,
        prepare: impl FnOnce(&mut Self, u64),
    ) -> Result<Address, AllocError> {
        let class = class.ok_or_else(|| self.device.out_of_memory(size))?;
        self.search_steps += 1;
        let cached = self.free.get_mut(&class).and_then(Vec::pop);
        let base = match cached {
            Some(base) => base,
            None => {
                prepare(self, class);
                self.ask(class).ok_or_else(|| self.device.out_of_memory(size))?
            }
        };
        self.live.insert(base, class);
        self.used += class;
        Ok(Address::new(base))
    }

    /// A block from the device; if the device has no memory, gives all cached blocks back and asks again.
    fn ask(&mut self, class: u64) -> Option<u64> {
        if let Ok(base) = self.device.acquire(class) {
            return Some(base);
        }
        self.release_cached();
        self.device.acquire(class).ok()
    }

    pub(super) fn free(&mut self, address: Address) -> Result<(), NotLive> {
        if address == Address::NULL {
            return Ok(());
        }
        let class = self.live.remove(&address.get()).ok_or(NotLive { address })?;
        self.used -= class;
        self.free.entry(class).or_default().push(address.get());
        Ok(())
    }

    pub(super) fn release_cached(&mut self) {
        for (class, blocks) in std::mem::take(&mut self.free) {
            blocks.into_iter().for_each(|base| self.device.release(base, class));
        }
    }

    pub(super) fn usage(&self) -> Usage {
        self.device.usage(self.used, self.search_steps)
    }
}
