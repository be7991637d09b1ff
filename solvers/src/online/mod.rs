//! Online allocators: the pools that a planner competes with, one file each.
//!
//! A pool sees one request at a time. The most that it *reserves* from the device over a trace is compared with the
//! height of a plan. [`registry`] has all pools; [`Simulator`] plays a trace on one.
//!
//! # Example
//!
//! ```
//! use planlab_dsa::{Buffer, Bytes, Instance, LiveRange, Simulated};
//! use planlab_solvers::online::{Requests, Simulator, find_allocator};
//!
//! let rows = [(4096, 0, 2), (512, 1, 3), (4096, 2, 4)];
//! let buffers = rows.map(|(size, start, end)| {
//!     Buffer::new(Bytes::new(size), LiveRange::new(start, end).expect("not empty"))
//! });
//! let requests = Requests::new(&Instance::from_buffers(buffers.to_vec())?);
//! let mut pool = find_allocator("cupy2rc1-pool").ok_or("no such allocator")?.build(Box::new(Simulated::new()));
//! let mut simulator = Simulator::new(&requests, pool.as_mut());
//! simulator.run_iteration()?;
//! assert_eq!(simulator.usage().reserved_peak, Bytes::new(4608));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod blocks;
mod device_only;
mod frameworks;
mod network_wise;
pub mod profile_guided;
mod registry;
mod simulate;
mod tlsf;

pub use device_only::DeviceOnly;
pub use frameworks::{
    Cupy1Pool, Cupy2Pool, Cupy4Pool, MxnetNaive, MxnetRounded, PytorchCaching, PytorchExpandable,
    TensorflowBfc, TensorflowBfcOneRegion,
};
pub use network_wise::NetworkWise;
pub use planlab_dsa::Requests;
pub use profile_guided::{ProfileGuided, ProfileGuidedScoped};
pub use registry::{Entry, find_allocator, keys, registry};
pub use simulate::{SimulationError, Simulator};
pub use tlsf::Tlsf;
