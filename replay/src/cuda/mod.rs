//! Replay on a GPU: plans, pools and the driver's own allocators on a device's memory.
//!
//! ```text
//!   contenders  -->  player  -->  driver ---- a GPU, through cudarc (feature `cuda`)
//!   who allocates    kernels        |
//!                    on buffers     +-------- a simulated device: host memory, loops for kernels
//! ```
//!
//! [`compete_on_device`] plays the propagations of traces on contenders in turns and reports the costs. Kernels write and read
//! every byte of every buffer, so the device itself detects a contender that hands out live memory. A [`Device`] is a
//! GPU or a simulated device; figures of a simulated device are no measurements.

mod contest;
mod device;
mod driver;
mod rehearsal;
mod shared;
mod shuffled;

pub use contest::{Builder, Contender, Idle, News, Protocol, Score, Strategy, compete_on_device};
pub use device::{Ballast, Device, probe};
pub use driver::{DeviceInfo, DriverError};
pub use shared::{SharedDevice, SimulatedStreams, StreamHandle, open_shared};
pub use shuffled::shuffle_plan;
