//! A device that a program uses by itself, with its own streams and contexts: provides memory and orders the streams.
//!
//! [`Device`](super::Device) is for replays, which own their stream and launch their own kernels. Here the program
//! does that. No call changes the program's state: the calling thread keeps its current context, and the capture of a
//! graph continues.

#[cfg(feature = "cuda")]
mod library;
mod shared_device;
mod simulated;

use std::sync::Arc;

use super::driver::DriverError;

pub use shared_device::{SharedDevice, StreamHandle};
pub use simulated::SimulatedStreams;

/// Opens a GPU by its number, from 0. Uses the context that CUDA's runtime has for it; runs nothing, holds no memory.
///
/// # Errors
///
/// [`DriverError::Unavailable`] if there is no driver or no such GPU.
#[cfg_attr(not(feature = "cuda"), allow(unused_variables))]
pub fn open_shared(ordinal: u32) -> Result<Arc<dyn SharedDevice>, DriverError> {
    #[cfg(feature = "cuda")]
    {
        Ok(Arc::new(library::Library::new(ordinal)?))
    }
    #[cfg(not(feature = "cuda"))]
    {
        Err(DriverError::without_cuda())
    }
}
