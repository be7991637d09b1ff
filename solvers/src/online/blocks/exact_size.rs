//! The common part of the pools that keep freed blocks by size and neither split nor join them.
//!
//! A request is rounded up to a size class. It gets the last freed block of that class, or else a new block of the
//! class from the device. A larger block is never used.

use std::collections::BTreeMap;

use planlab_dsa::{Address, Backing, NotLive, Refused, Usage};
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

            fn serve(
                &mut self,
                size: u64,
                _: planlab_dsa::Stream,
            ) -> Result<planlab_dsa::Address, planlab_dsa::Refused> {
                self.0.serve_class($class(size).ok_or(planlab_dsa::Refused)?, $prepare)
            }
        }

        crate::online::blocks::pool!($pool, 0, 0.release_cached);
    };
}
pub(crate) use exact_size_pool;

pub(crate) struct ExactSize {
    pub(crate) device: Device,
    /// Classes of the blocks in use, by address.
    live: FxHashMap<u64, u64>,
    /// Freed blocks of each class, the last freed at the end.
    free: BTreeMap<u64, Vec<u64>>,
    used: u64,
    search_steps: u64,
}

impl ExactSize {
    pub(crate) fn new(backing: Box<dyn Backing>) -> Self {
        Self {
            device: Device::new(backing),
            live: FxHashMap::default(),
            free: BTreeMap::new(),
            used: 0,
            search_steps: 0,
        }
    }

    /// A block of a class (in bytes). Calls `prepare` before it asks the device for memory.
    pub(crate) fn serve_class(
        &mut self,
        class: u64,
        prepare: impl FnOnce(&mut Self, u64),
    ) -> Result<Address, Refused> {
        self.search_steps += 1;
        let cached = self.free.get_mut(&class).and_then(Vec::pop);
        let base = match cached {
            Some(base) => base,
            None => {
                prepare(self, class);
                self.ask_device(class)?
            }
        };
        self.live.insert(base, class);
        self.used += class;
        Ok(Address::new(base))
    }

    /// A block from the device; if the device has no memory, gives all cached blocks back and asks again.
    fn ask_device(&mut self, class: u64) -> Result<u64, Refused> {
        self.device.acquire_segment(class).or_else(|Refused| {
            self.release_cached();
            self.device.acquire_segment(class)
        })
    }

    pub(crate) fn free_block(&mut self, address: Address) -> Result<(), NotLive> {
        let class = self.live.remove(&address.get()).ok_or(NotLive { address })?;
        self.used -= class;
        self.free.entry(class).or_default().push(address.get());
        Ok(())
    }

    pub(crate) fn release_cached(&mut self) {
        for (class, blocks) in std::mem::take(&mut self.free) {
            blocks.into_iter().for_each(|base| self.device.release_segment(base, class));
        }
    }

    pub(crate) fn usage(&self) -> Usage {
        self.device.usage_with(self.used, self.search_steps)
    }
}
