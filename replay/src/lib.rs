//! Performs plans and online allocators on real memory, and checks every byte.
//!
//! [`Planned`] serves the requests of a trace from a plan that was verified; there is no other way to bring a plan
//! here. [`host`] plays the requests of a trace on it, on online allocators over the host's memory, and on the
//! allocators that processes use (glibc, jemalloc, mimalloc), and says what that costs. [`cuda`] does so on a GPU, beside
//! the allocators of its driver, or on a simulated device.
//!
//! Memory is reached by raw addresses; the modules that do so say why that is sound at each place.

mod address;
pub mod cuda;
pub mod host;
mod looks;
mod pattern;
mod planned;
mod ranges;
mod sequence;

pub use planlab_dsa::performance::{CallTime, End, Performance, Sample, Work};
pub use planned::{Planned, PlannedError};
pub use sequence::{Kind, Sequence};
