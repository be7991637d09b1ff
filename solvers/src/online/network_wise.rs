//! Network-wise allocation: a device allocation for each request, and no memory is reused.
//!
//! Memory freed in a propagation stays reserved until the propagation is over. So the most that is reserved is the sum
//! of all requests of a propagation: the need of a net without any reuse of memory.
//!
//! # References
//!
//! 1. T. Sekiyama, T. Imamichi, H. Imai and R. Raymond, *Profile-guided memory optimization for deep
//!    neural networks*, 2018, arXiv:1804.10001.
//!
//! # Complexity
//!
//! O(1) for a request and for a free.
//!
//! # Deviations from the paper
//!
//! None. Requests are not rounded.

use planlab_dsa::{Address, AllocError, Backing, Bytes, NotLive, OnlineAllocator, Stream, Usage};
use rustc_hash::FxHashMap;

use crate::online::blocks::Device;

/// No reuse within a propagation; key `network-wise`.
///
/// ```
/// use planlab_dsa::{Bytes, OnlineAllocator, Simulated, Stream};
/// use planlab_solvers::online::NetworkWise;
///
/// let mut memory = NetworkWise::new(Box::new(Simulated::new()));
/// for _ in 0..3 {
///     let block = memory.alloc(Bytes::new(100), Stream::default())?;
///     memory.free(block)?;
/// }
/// assert_eq!(memory.usage().reserved, Bytes::new(300));
/// memory.end_propagation();
/// assert_eq!(memory.usage().reserved, Bytes::new(0));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct NetworkWise {
    device: Device,
    /// Sizes of the segments in use, by base.
    live: FxHashMap<u64, u64>,
    /// Bases and sizes of the freed segments.
    freed: Vec<(u64, u64)>,
    used: u64,
}

impl NetworkWise {
    /// An allocator over a backing.
    #[must_use]
    pub fn new(backing: Box<dyn Backing>) -> Self {
        Self { device: Device::new(backing), live: FxHashMap::default(), freed: Vec::new(), used: 0 }
    }
}

impl OnlineAllocator for NetworkWise {
    fn alloc(&mut self, size: Bytes, _: Stream) -> Result<Address, AllocError> {
        if size == Bytes::ZERO {
            return Ok(Address::NULL);
        }
        let base = self.device.acquire_segment(size.get()).map_err(|_| self.device.out_of_memory(size))?;
        self.live.insert(base, size.get());
        self.used += size.get();
        Ok(Address::new(base))
    }

    fn free(&mut self, address: Address) -> Result<(), NotLive> {
        if address == Address::NULL {
            return Ok(());
        }
        let size = self.live.remove(&address.get()).ok_or(NotLive { address })?;
        self.used -= size;
        self.freed.push((address.get(), size));
        Ok(())
    }

    fn release_cached(&mut self) {
        self.freed.drain(..).for_each(|(base, size)| self.device.release_segment(base, size));
    }

    fn end_propagation(&mut self) {
        self.release_cached();
    }

    fn usage(&self) -> Usage {
        self.device.usage_with(self.used, 0)
    }
}
