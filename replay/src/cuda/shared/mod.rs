//! A device that a program uses by itself, with its own streams and contexts: provides memory and orders the streams.
//!
//! [`Device`](super::Device) is for replays, which own their stream and launch their own kernels. Here the program
//! does that. No call changes the program's state: the calling thread keeps its current context, and the capture of a
//! graph continues.

#[cfg(feature = "cuda")]
mod library;
mod simulated;

use std::fmt;
use std::sync::Arc;

use planlab_dsa::{Address, Bytes};

use super::driver::DriverError;

pub use simulated::SimulatedStreams;

/// A stream of the program: its handle (`cudaStream_t`, `CUstream`) as a number. 0 is the default stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StreamHandle(pub u64);

/// What a driver does for such a program.
trait StreamDriver: Send + Sync {
    fn malloc(&self, size: Bytes) -> Result<Address, DriverError>;

    fn free(&self, at: Address) -> Result<(), DriverError>;

    fn wait(&self, waits: StreamHandle, awaited: StreamHandle) -> Result<(), DriverError>;

    fn is_capturing(&self, stream: StreamHandle) -> Result<bool, DriverError>;
}

/// A device: a GPU or a simulation. Copies are the same device; any thread may use it.
///
/// ```
/// use planlab_dsa::Bytes;
/// use planlab_replay::cuda::{SharedDevice, SimulatedStreams, StreamHandle};
///
/// let streams = SimulatedStreams::new(Bytes::new(64 << 20));
/// let device = SharedDevice::simulated(&streams);
/// let block = device.malloc(Bytes::new(4096))?;
/// streams.fill(StreamHandle(1), block, Bytes::new(4096), 7);
/// device.wait(StreamHandle(2), StreamHandle(1))?;
/// streams.verify(StreamHandle(2), block, Bytes::new(4096), 7);
/// assert_eq!(streams.run(0)?, 0, "words that were not as written");
/// device.free(block)?;
/// # Ok::<(), planlab_replay::cuda::DriverError>(())
/// ```
#[derive(Clone)]
pub struct SharedDevice {
    driver: Arc<dyn StreamDriver>,
    key: String,
}

impl fmt::Debug for SharedDevice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SharedDevice").field(&self.key).finish()
    }
}

impl SharedDevice {
    /// Opens a GPU by its number, from 0. Uses the context that CUDA's runtime has for it; runs nothing, holds no
    /// memory.
    ///
    /// # Errors
    ///
    /// [`DriverError::Unavailable`] if there is no driver or no such GPU.
    #[cfg_attr(not(feature = "cuda"), allow(unused_variables))]
    pub fn cuda(ordinal: u32) -> Result<Self, DriverError> {
        #[cfg(feature = "cuda")]
        {
            let driver = Arc::new(library::Library::new(ordinal)?);
            Ok(Self { driver, key: format!("cuda:{ordinal}") })
        }
        #[cfg(not(feature = "cuda"))]
        {
            Err(super::without_cuda())
        }
    }

    /// A simulated device, whose streams are queues of simulated kernels.
    #[must_use]
    pub fn simulated(streams: &SimulatedStreams) -> Self {
        Self { driver: Arc::new(streams.clone()), key: "simulated-cuda".to_owned() }
    }

    /// The device's key: `cuda:0`, `simulated-cuda`.
    #[must_use]
    pub fn key(&self) -> &str {
        &self.key
    }

    /// Allocates memory of the device. Its address is a multiple of 512.
    ///
    /// # Errors
    ///
    /// [`DriverError::OutOfMemory`], or the driver's error.
    pub fn malloc(&self, size: Bytes) -> Result<Address, DriverError> {
        self.driver.malloc(size)
    }

    /// Frees memory of [`malloc`](Self::malloc), after all running work is done.
    ///
    /// # Errors
    ///
    /// The driver's error.
    pub fn free(&self, at: Address) -> Result<(), DriverError> {
        self.driver.free(at)
    }

    /// Makes later work on the stream `waits` run after the work launched on `awaited` so far. Does not block.
    ///
    /// # Errors
    ///
    /// The driver's error; then the order of the two is not certain.
    pub fn wait(&self, waits: StreamHandle, awaited: StreamHandle) -> Result<(), DriverError> {
        self.driver.wait(waits, awaited)
    }

    /// Whether work launched on a stream is being captured in a graph.
    ///
    /// # Errors
    ///
    /// The driver's error.
    pub fn is_capturing(&self, stream: StreamHandle) -> Result<bool, DriverError> {
        self.driver.is_capturing(stream)
    }
}
