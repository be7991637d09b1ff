//! What a device does for a program.

use planlab_dsa::{Address, Bytes};

use crate::cuda::driver::DriverError;

/// A stream of the program: its handle (`cudaStream_t`, `CUstream`) as a number. 0 is the default stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StreamHandle(pub u64);

/// A device: a GPU ([`open_shared`](super::open_shared)) or a simulation. Any thread may use it.
///
/// ```
/// use planlab_dsa::Bytes;
/// use planlab_replay::cuda::{SharedDevice, SimulatedStreams, StreamHandle};
///
/// let device = SimulatedStreams::new(Bytes::new(64 << 20));
/// let block = device.malloc(Bytes::new(4096))?;
/// device.fill(StreamHandle(1), block, Bytes::new(4096), 7);
/// device.wait(StreamHandle(2), StreamHandle(1))?;
/// device.verify(StreamHandle(2), block, Bytes::new(4096), 7);
/// assert_eq!(device.run(0)?, 0, "words that were not as written");
/// device.free(block)?;
/// # Ok::<(), planlab_replay::cuda::DriverError>(())
/// ```
pub trait SharedDevice: Send + Sync {
    /// The device's key: `cuda:0`, `simulated-cuda`.
    fn key(&self) -> &str;

    /// Allocates memory of the device. Its address is a multiple of 512.
    ///
    /// # Errors
    ///
    /// [`DriverError::OutOfMemory`], or the driver's error.
    fn malloc(&self, size: Bytes) -> Result<Address, DriverError>;

    /// Frees memory of [`malloc`](Self::malloc), after all running work is done.
    ///
    /// # Errors
    ///
    /// The driver's error.
    fn free(&self, at: Address) -> Result<(), DriverError>;

    /// Makes later work on the stream `waits` run after the work launched on `awaited` so far. Does not block.
    ///
    /// # Errors
    ///
    /// The driver's error; then the order of the two is not certain.
    fn wait(&self, waits: StreamHandle, awaited: StreamHandle) -> Result<(), DriverError>;

    /// Whether work launched on a stream is being captured in a graph.
    ///
    /// # Errors
    ///
    /// The driver's error.
    fn is_capturing(&self, stream: StreamHandle) -> Result<bool, DriverError>;
}
