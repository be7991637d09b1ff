//! What programs call: `malloc` and its kin, system calls that concern planned memory, and the memory of GPUs.

pub(super) mod allocator;
#[cfg(feature = "cuda")]
mod cuda;
mod kernel;
#[cfg(target_arch = "x86_64")]
pub(super) mod system_call;
