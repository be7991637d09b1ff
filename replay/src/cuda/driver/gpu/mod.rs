//! The driver of GPUs, through cudarc.

mod binding;
#[cfg(feature = "cuda")]
mod cuda_driver;
#[cfg(feature = "cuda")]
pub(crate) mod library;
mod requirement;

#[cfg(feature = "cuda")]
pub(crate) use cuda_driver::CudaDriver;
