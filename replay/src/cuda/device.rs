//! A device that is open for a replay, and memory that is kept from it.

use std::sync::Arc;
use std::time::Duration;

use planlab_dsa::{Address, Bytes, DeviceMemory};

#[cfg(feature = "cuda")]
use super::driver::gpu;
use super::driver::{DeviceInfo, Driver, DriverError, GRANULE, SimulatedDriver};
use super::rehearsal;

/// An open device: a GPU or a simulation. Any thread may use it; a graph is captured by one thread.
///
/// ```
/// use planlab_dsa::Bytes;
/// use planlab_replay::cuda::Device;
///
/// let device = Device::with_simulation(Bytes::new(1 << 30));
/// assert!(device.info().is_simulated);
/// let ballast = device.leave_free(Bytes::new(3 << 20))?;
/// assert_eq!(device.device_memory()?.free, Bytes::new(2 << 20));
/// ballast.give_back()?;
/// assert_eq!(device.device_memory()?.free, Bytes::new(1 << 30));
/// device.close()?;
/// # Ok::<(), planlab_replay::cuda::DriverError>(())
/// ```
#[derive(Clone)]
pub struct Device(pub(super) Arc<dyn Driver>);

/// Checks for a driver with a GPU, and returns the driver's description.
///
/// # Errors
///
/// [`DriverError::Unavailable`] with the reason if there is no usable driver or GPU.
pub fn probe() -> Result<String, DriverError> {
    #[cfg(feature = "cuda")]
    {
        gpu::library::probe_driver()
    }
    #[cfg(not(feature = "cuda"))]
    {
        Err(DriverError::without_cuda())
    }
}

impl Device {
    /// Opens a GPU by its number, from 0.
    ///
    /// # Errors
    ///
    /// [`DriverError::Unavailable`] if there is no driver or no such GPU.
    #[cfg_attr(not(feature = "cuda"), allow(unused_variables))]
    pub fn open_cuda(ordinal: u32) -> Result<Self, DriverError> {
        #[cfg(feature = "cuda")]
        {
            Ok(Self(Arc::new(gpu::CudaDriver::new(ordinal)?)))
        }
        #[cfg(not(feature = "cuda"))]
        {
            Err(DriverError::without_cuda())
        }
    }

    /// A simulated device with `capacity` bytes of memory.
    #[must_use]
    pub fn with_simulation(capacity: Bytes) -> Self {
        Self(Arc::new(SimulatedDriver::new(capacity)))
    }

    /// The device's name and properties.
    #[must_use]
    pub fn info(&self) -> &DeviceInfo {
        self.0.info()
    }

    /// Free and total memory.
    ///
    /// # Errors
    ///
    /// [`DriverError::Failed`] if the device is lost.
    pub fn device_memory(&self) -> Result<DeviceMemory, DriverError> {
        self.0.device_memory()
    }

    /// Occupies memory, in granules of 2 MiB, so that at most `bytes` bytes stay free.
    ///
    /// # Errors
    ///
    /// [`DriverError`] if less is free already.
    pub fn leave_free(&self, bytes: Bytes) -> Result<Ballast, DriverError> {
        let free = self.device_memory()?.free.get();
        let size = free.checked_sub(bytes.get()).ok_or(DriverError::OutOfMemory { size: bytes })?;
        let size = size.next_multiple_of(GRANULE);
        let at = if size > 0 { self.0.malloc(Bytes::new(size))? } else { Address::NULL };
        Ok(Ballast { driver: Arc::clone(&self.0), at })
    }

    /// Uses once everything that turns use: kernels, `memset`, the driver's pool, a graph, mapped ranges. So what the
    /// driver loads at the first use counts for no contender. Then keeps the device busy for `work`, because an idle
    /// device has slow clocks. Skips any part that the device lacks.
    ///
    /// # Errors
    ///
    /// [`DriverError`] of the first failed call, if the device does not answer after it.
    pub fn rehearse_turns(&self, work: Duration) -> Result<(), DriverError> {
        rehearsal::rehearse_driver(self.0.as_ref(), work)
    }

    /// Makes every further call of a simulated device fail, as calls of a GPU do in a process after an illegal access.
    /// Does nothing to a GPU.
    pub fn break_down(&self) {
        self.0.break_down();
    }

    /// Checks whether the device still answers.
    pub(super) fn check_alive(&self) -> Result<(), DriverError> {
        self.0.synchronise()?;
        self.0.device_memory().map(drop)
    }

    /// Gives back the device's own stream, events and kernels. Without this call that happens when the last handle is
    /// dropped, and failures go unreported.
    ///
    /// # Errors
    ///
    /// [`DriverError`] if the device is still in use elsewhere (it then stays open), if a call fails, or if memory of
    /// a simulated device was not given back.
    pub fn close(mut self) -> Result<(), DriverError> {
        let in_use = || DriverError::from_failure("close", "the device is still in use");
        Arc::get_mut(&mut self.0).ok_or_else(in_use)?.close()
    }

    pub(super) fn driver(&self) -> &Arc<dyn Driver> {
        &self.0
    }
}

/// Memory that stays occupied until it is given back or dropped.
pub struct Ballast {
    driver: Arc<dyn Driver>,
    at: Address,
}

impl Ballast {
    /// Gives the memory back.
    ///
    /// # Errors
    ///
    /// [`DriverError::Failed`] if the device refuses it.
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
        // To see errors, callers use `give_back`.
        drop(self.release());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_is_closed_by_its_last_user() {
        let device = Device::with_simulation(Bytes::new(8 << 20));
        let other = device.clone();
        assert!(device.close().is_err(), "in use");
        let ballast = other.leave_free(Bytes::new(2 << 20)).expect("room");
        assert_eq!(ballast.give_back(), Ok(()));
        assert_eq!(other.close(), Ok(()));
    }

    #[test]
    fn a_ballast_that_is_gone_already_is_told() {
        let device = Device::with_simulation(Bytes::new(8 << 20));
        let ballast = device.leave_free(Bytes::new(2 << 20)).expect("room");
        device.driver().free(ballast.at).expect("behind its back");
        assert!(ballast.give_back().is_err());
        assert_eq!(device.close(), Ok(()));
    }

    #[test]
    fn a_device_is_used_from_other_threads() {
        let device = Device::with_simulation(Bytes::new(8 << 20));
        let ballast = std::thread::scope(|scope| {
            let taken = scope.spawn(|| device.leave_free(Bytes::new(4 << 20)));
            taken.join().expect("no panic").expect("room")
        });
        assert_eq!(device.device_memory().map(|memory| memory.free), Ok(Bytes::new(4 << 20)));
        let given = std::thread::spawn(move || ballast.give_back()).join().expect("no panic");
        assert_eq!((given, device.close()), (Ok(()), Ok(())));
    }
}
