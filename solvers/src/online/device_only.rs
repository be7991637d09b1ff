//! No pool at all: every request and every free is a call of the device.
//!
//! It reserves exactly what is in use, so its peak is the load. The price is the calls: they take far longer than any
//! pool, and on a GPU they wait for its work.
//!
//! # References
//!
//! 1. NVIDIA, *CUDA Runtime API*, `cudaMalloc` and `cudaFree`.
//!
//! # Complexity
//!
//! O(1) and a call of the device for a request and for a free.
//!
//! # Deviations from the original
//!
//! None. The granules of a device's own memory manager (2 MiB) are not counted.

use planlab_dsa::{Address, AllocError, Backing, Bytes, NotLive, OnlineAllocator, Stream, Usage};

use super::network_wise::NetworkWise;

/// Device calls alone; key `device`.
///
/// ```
/// use planlab_dsa::{Bytes, OnlineAllocator, Simulated, Stream};
/// use planlab_solvers::online::DeviceOnly;
///
/// let mut memory = DeviceOnly::new(Box::new(Simulated::new()));
/// let block = memory.alloc(Bytes::new(100), Stream::default())?;
/// memory.free(block)?;
/// assert_eq!(memory.usage().reserved, Bytes::new(0));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct DeviceOnly(NetworkWise);

impl DeviceOnly {
    /// An allocator over a backing.
    #[must_use]
    pub fn new(backing: Box<dyn Backing>) -> Self {
        Self(NetworkWise::new(backing))
    }
}

impl OnlineAllocator for DeviceOnly {
    fn alloc(&mut self, size: Bytes, stream: Stream) -> Result<Address, AllocError> {
        self.0.alloc(size, stream)
    }

    fn free(&mut self, address: Address) -> Result<(), NotLive> {
        self.0.free(address)?;
        self.0.release_cached();
        Ok(())
    }

    fn release_cached(&mut self) {}

    fn usage(&self) -> Usage {
        self.0.usage()
    }
}
