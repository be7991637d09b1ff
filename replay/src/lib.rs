//! Performs plans and online allocators on real memory, and checks every byte.
//!
//! [`Planned`] serves the requests of a trace from a verified plan; it takes no other plan. [`host`] plays the
//! requests of a trace on it, on online allocators over the host's memory, and on the allocators that processes use
//! (glibc, jemalloc, mimalloc), and reports what that costs. [`cuda`] does the same on a GPU, beside the allocators of
//! its driver, or on a simulated device.
//!
//! Memory is reached by raw addresses; each module that does so says at each place why that is sound.

mod address;
pub mod cuda;
pub mod host;
mod looks;
mod pattern;
mod planned;
mod sequence;

pub use planlab_dsa::performance::{CallTime, End, Performance, Sample, Work};
pub use planned::{Planned, PlannedError};
pub use sequence::{Kind, Sequence};
