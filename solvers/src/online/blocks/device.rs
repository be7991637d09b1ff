//! Counts what an allocator holds from its backing.

use planlab_dsa::{Address, AllocError, Backing, Bytes, DeviceMemory, Refused, Usage};

/// Most pools round requests up to a multiple of this, in bytes.
pub(crate) const UNIT: u64 = 512;

/// [`planlab_dsa::OnlineAllocator`] for a pool whose `serve(size, stream)` answers requests of more than 0 bytes. The
/// other arguments are the part that frees blocks and counts, the method that gives back what is cached, and the answer
/// to a request for 0 bytes: a null address if there is no such argument.
macro_rules! pool {
    ($pool:ident, $($part:tt).+, $($release:tt).+) => {
        crate::online::blocks::pool!($pool, $($part).+, $($release).+, Ok(planlab_dsa::Address::NULL));
    };
    ($pool:ident, $($part:tt).+, $($release:tt).+, $none:expr) => {
        impl planlab_dsa::OnlineAllocator for $pool {
            fn alloc(
                &mut self,
                size: planlab_dsa::Bytes,
                stream: planlab_dsa::Stream,
            ) -> Result<planlab_dsa::Address, planlab_dsa::AllocError> {
                if size == planlab_dsa::Bytes::ZERO {
                    return $none;
                }
                let served = self.serve(size.get(), stream);
                served.map_err(|planlab_dsa::Refused| self.$($part).+.device.out_of_memory(size))
            }

            fn free(&mut self, address: planlab_dsa::Address) -> Result<(), planlab_dsa::NotLive> {
                if address == planlab_dsa::Address::NULL {
                    return Ok(());
                }
                self.$($part).+.free_block(address)
            }

            fn release_cached(&mut self) {
                self.$($release).+();
            }

            fn usage(&self) -> planlab_dsa::Usage {
                self.$($part).+.usage()
            }
        }
    };
}
pub(crate) use pool;

/// A backing, and the memory taken from it.
pub(crate) struct Device {
    backing: Box<dyn Backing>,
    reserved: u64,
    peak: u64,
    allocations: u64,
    releases: u64,
}

impl Device {
    pub(crate) fn new(backing: Box<dyn Backing>) -> Self {
        Self { backing, reserved: 0, peak: 0, allocations: 0, releases: 0 }
    }

    pub(crate) fn acquire_segment(&mut self, size: u64) -> Result<u64, Refused> {
        let base = self.backing.acquire(Bytes::new(size))?;
        self.count_taken(size);
        Ok(base.get())
    }

    pub(crate) fn release_segment(&mut self, base: u64, size: u64) {
        self.backing.release(Address::new(base));
        self.count_given(size);
    }

    /// The first address of a range of `size` bytes without memory.
    pub(crate) fn reserve_range(&mut self, size: u64) -> Result<u64, Refused> {
        Ok(self.backing.reserve(Bytes::new(size))?.get())
    }

    /// The same, for ranges whose memory is mapped and unmapped in multiples of `page` from the first address.
    pub(crate) fn reserve_pages(&mut self, size: u64, page: u64) -> Result<u64, Refused> {
        Ok(self.backing.reserve_pages(Bytes::new(size), Bytes::new(page))?.get())
    }

    pub(crate) fn map_memory(&mut self, at: u64, size: u64) -> Result<(), Refused> {
        self.backing.map(Address::new(at), Bytes::new(size))?;
        self.count_taken(size);
        Ok(())
    }

    pub(crate) fn unmap_memory(&mut self, at: u64, size: u64) {
        let gone = self.backing.unmap(Address::new(at), Bytes::new(size));
        self.count_given(gone.get());
    }

    pub(crate) fn page_size(&self) -> u64 {
        self.backing.page_size().get()
    }

    pub(crate) fn device_memory(&self) -> Option<DeviceMemory> {
        self.backing.device_memory()
    }

    fn count_taken(&mut self, size: u64) {
        self.reserved += size;
        self.peak = self.peak.max(self.reserved);
        self.allocations += 1;
    }

    fn count_given(&mut self, size: u64) {
        self.reserved -= size;
        self.releases += 1;
    }

    pub(crate) fn reserved_bytes(&self) -> u64 {
        self.reserved
    }

    pub(crate) fn out_of_memory(&self, size: Bytes) -> AllocError {
        AllocError::OutOfMemory { size, reserved: Bytes::new(self.reserved) }
    }

    pub(crate) fn usage_with(&self, used: u64, search_steps: u64) -> Usage {
        Usage {
            reserved: Bytes::new(self.reserved),
            reserved_peak: Bytes::new(self.peak),
            used: Bytes::new(used),
            device_allocations: self.allocations,
            device_releases: self.releases,
            search_steps,
        }
    }
}
