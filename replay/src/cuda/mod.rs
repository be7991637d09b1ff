//! Replay on a GPU: plans, pools and the driver's own allocators on a device's memory.
//!
//! ```text
//!   contenders  -->  player  -->  driver ---- a GPU, through cudarc (feature `cuda`)
//!   who allocates    kernels        |
//!                    on buffers     +-------- a simulated device: host memory, loops for kernels
//! ```
//!
//! [`compete`] plays the propagations of traces on contenders in turns and says what that costs. Kernels write and
//! read every byte of every buffer, so that a contender which hands live memory out is found on the device itself.
//! A [`Device`] stands for a GPU or for a simulated device; figures of the latter are no measurements.

#[cfg(any(feature = "cuda", test))]
mod binding;
mod compete;
mod contenders;
#[cfg(feature = "cuda")]
mod device;
mod driver;
mod growth;
mod kernels;
#[cfg(feature = "cuda")]
mod library;
mod memory;
mod pattern;
mod player;
mod rehearsal;
#[cfg(any(feature = "cuda", test))]
mod requirement;
mod shared;
mod shuffled;
mod simulated;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use planlab_dsa::{Address, Bytes, DeviceMemory};

use driver::Driver;

pub use compete::{News, Protocol, compete, compete_and_tell};
pub use contenders::{Builder, Contender, Idle, Strategy};
pub use driver::{DeviceInfo, DriverError};
pub use player::Score;
pub use shared::{SharedDevice, SimulatedStreams, StreamHandle};
pub use shuffled::shuffled;

/// A device that is open: a GPU, or what stands for one. It may be used from any thread; a graph is captured by one.
///
/// ```
/// use planlab_dsa::Bytes;
/// use planlab_replay::cuda::Device;
///
/// let device = Device::simulated(Bytes::new(1 << 30));
/// assert!(device.info().is_simulated);
/// let ballast = device.leave(Bytes::new(3 << 20))?;
/// assert_eq!(device.memory()?.free, Bytes::new(2 << 20));
/// ballast.give_back()?;
/// assert_eq!(device.memory()?.free, Bytes::new(1 << 30));
/// device.close()?;
/// # Ok::<(), planlab_replay::cuda::DriverError>(())
/// ```
#[derive(Clone)]
pub struct Device(Arc<dyn Driver>);

/// Whether there is a driver with a GPU, and what it says of itself.
///
/// # Errors
///
/// [`DriverError::Unavailable`] with the reason why there is none.
pub fn probe() -> Result<String, DriverError> {
    #[cfg(feature = "cuda")]
    {
        library::probe()
    }
    #[cfg(not(feature = "cuda"))]
    {
        Err(without_cuda())
    }
}

#[cfg(not(feature = "cuda"))]
fn without_cuda() -> DriverError {
    DriverError::unavailable("built without the feature `cuda`")
}

impl Device {
    /// A GPU by its number, from 0.
    ///
    /// # Errors
    ///
    /// [`DriverError::Unavailable`] where there is no driver or no such GPU.
    #[cfg_attr(not(feature = "cuda"), allow(unused_variables))]
    pub fn cuda(ordinal: u32) -> Result<Self, DriverError> {
        #[cfg(feature = "cuda")]
        {
            Ok(Self(Arc::new(device::CudaDriver::new(ordinal)?)))
        }
        #[cfg(not(feature = "cuda"))]
        {
            Err(without_cuda())
        }
    }

    /// A simulated device with so many bytes of memory.
    #[must_use]
    pub fn simulated(capacity: Bytes) -> Self {
        Self(Arc::new(simulated::SimulatedDriver::new(capacity)))
    }

    /// What it calls itself.
    #[must_use]
    pub fn info(&self) -> &DeviceInfo {
        self.0.info()
    }

    /// Free and total memory.
    ///
    /// # Errors
    ///
    /// [`DriverError::Failed`] where the device is lost.
    pub fn memory(&self) -> Result<DeviceMemory, DriverError> {
        self.0.memory()
    }

    /// Occupies memory, in granules of 2 MiB, so that at most so many bytes are left.
    ///
    /// # Errors
    ///
    /// [`DriverError`] where less is free already.
    pub fn leave(&self, bytes: Bytes) -> Result<Ballast, DriverError> {
        let free = self.memory()?.free.get();
        let size = free.checked_sub(bytes.get()).ok_or(DriverError::OutOfMemory { size: bytes })?;
        let size = size.next_multiple_of(GRANULE);
        let at = if size > 0 { self.0.malloc(Bytes::new(size))? } else { Address::NULL };
        Ok(Ballast { driver: Arc::clone(&self.0), at })
    }

    /// Uses once all that turns use (kernels, `memset`, the driver's pool, a graph, mapped ranges), so that what the
    /// driver loads at the first use counts for no contender, and keeps the device at work for a while: an idle one has
    /// slow clocks. A part that the device does not have is left out.
    ///
    /// # Errors
    ///
    /// [`DriverError`] of the first call that failed, if the device does not answer after it.
    pub fn rehearse(&self, work: Duration) -> Result<(), DriverError> {
        rehearsal::rehearse(self.0.as_ref(), work)
    }

    /// Makes a simulated device fail in every call from now on, as a GPU does in a process after an illegal access. A
    /// GPU is left alone.
    pub fn break_down(&self) {
        self.0.break_down();
    }

    /// Whether the device still answers.
    fn ask(&self) -> Result<(), DriverError> {
        self.0.synchronise()?;
        self.0.memory().map(drop)
    }

    /// Gives back what it holds itself: stream, events, kernels. Without this call that happens when the last use of it
    /// is dropped, and nobody learns what failed.
    ///
    /// # Errors
    ///
    /// [`DriverError`] where it is still in use elsewhere, and is then left as it is; where a call fails, and of a
    /// simulated device where memory was not given back.
    pub fn close(mut self) -> Result<(), DriverError> {
        let in_use = || DriverError::failed("close", "the device is still in use");
        Arc::get_mut(&mut self.0).ok_or_else(in_use)?.close()
    }

    fn driver(&self) -> &Arc<dyn Driver> {
        &self.0
    }
}

/// Devices give memory in multiples of it, in bytes.
const GRANULE: u64 = 2 << 20;

impl fmt::Debug for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Device").field(self.info()).finish()
    }
}

/// Memory that nobody else gets until it is given back, or dropped.
pub struct Ballast {
    driver: Arc<dyn Driver>,
    at: Address,
}

impl fmt::Debug for Ballast {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ballast").field("at", &self.at).finish_non_exhaustive()
    }
}

impl Ballast {
    /// Gives it back.
    ///
    /// # Errors
    ///
    /// [`DriverError::Failed`] where the device does not take it.
    pub fn give_back(mut self) -> Result<(), DriverError> {
        self.release()
    }

    fn release(&mut self) -> Result<(), DriverError> {
        match std::mem::replace(&mut self.at, Address::NULL) {
            Address::NULL => Ok(()),
            at => self.driver.free(at),
        }
    }
}

impl Drop for Ballast {
    fn drop(&mut self) {
        // Who wants to know gives it back by name.
        drop(self.release());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_is_closed_by_its_last_user() {
        let device = Device::simulated(Bytes::new(8 << 20));
        let other = device.clone();
        assert!(device.close().is_err(), "in use");
        let ballast = other.leave(Bytes::new(2 << 20)).expect("room");
        assert_eq!(ballast.give_back(), Ok(()));
        assert_eq!(other.close(), Ok(()));
    }

    #[test]
    fn a_ballast_that_is_gone_already_is_told() {
        let device = Device::simulated(Bytes::new(8 << 20));
        let ballast = device.leave(Bytes::new(2 << 20)).expect("room");
        device.driver().free(ballast.at).expect("behind its back");
        assert!(ballast.give_back().is_err());
        assert_eq!(device.close(), Ok(()));
    }

    #[test]
    fn a_device_is_used_from_other_threads() {
        let device = Device::simulated(Bytes::new(8 << 20));
        let ballast = std::thread::scope(|scope| {
            let taken = scope.spawn(|| device.leave(Bytes::new(4 << 20)));
            taken.join().expect("no panic").expect("room")
        });
        assert_eq!(device.memory().map(|memory| memory.free), Ok(Bytes::new(4 << 20)));
        let given = std::thread::spawn(move || ballast.give_back()).join().expect("no panic");
        assert_eq!((given, device.close()), (Ok(()), Ok(())));
    }
}
