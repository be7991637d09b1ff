//! A device's driver: its interface, a simulation, and the driver of GPUs.

#[cfg(any(feature = "cuda", test))]
pub(super) mod gpu;
pub(super) mod interface;
#[cfg(any(feature = "cuda", test))]
mod kernels;
pub(super) mod pattern;
pub(super) mod simulated;

pub(super) use interface::{Driver, Faults, GRANULE, Graph, Kernel, Mark, PoolMemory, SLOTS, WORD};
pub(super) use simulated::SimulatedDriver;

pub use interface::{DeviceInfo, DriverError};
