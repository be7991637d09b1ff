//! Memory of GPUs by symbols, for PyTorch's `CUDAPluggableAllocator` and other programs that request memory by size,
//! device and stream.
//!
//! These symbols work without a preload. Settings and statistics are those of the preload.
#![allow(unsafe_code, reason = "the interface of C")]
#![allow(unreachable_pub, reason = "symbols are seen by the linker, not by other modules")]

use std::ffi::{c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;

use planlab_dsa::{Address, Bytes};
use planlab_replay::cuda::StreamHandle;

use crate::device::Devices;
use crate::preload::devices::{devices, known};
use crate::preload::system::word;

/// A panic must not reach the caller, which may be C++; the panic hook has reported it already.
fn guarded<T>(otherwise: T, work: impl FnOnce() -> Option<T>) -> T {
    catch_unwind(AssertUnwindSafe(work)).ok().flatten().unwrap_or(otherwise)
}

fn stream(handle: *mut c_void) -> StreamHandle {
    StreamHandle(handle.addr() as u64)
}

fn address(block: *mut c_void) -> Address {
    Address::new(block.addr() as u64)
}

/// Memory of a GPU for work on a stream (`cudaStream_t`); null for no bytes, and if there is no memory.
#[unsafe(no_mangle)]
pub extern "C" fn planlab_cuda_malloc(size: isize, device: c_int, on: *mut c_void) -> *mut c_void {
    guarded(ptr::null_mut(), || {
        let size = Bytes::new(u64::try_from(size).ok()?);
        let at = devices()?.alloc(size, device, stream(on))?;
        // The address is a device's, and has no meaning on the host.
        Some(ptr::without_provenance_mut(word(at.get())))
    })
}

/// Frees memory of a GPU that was last used on a stream. Neither waits for the stream nor uses the size.
#[unsafe(no_mangle)]
pub extern "C" fn planlab_cuda_free(block: *mut c_void, _size: isize, device: c_int, on: *mut c_void) {
    guarded(false, || known().map(|devices| devices.free(address(block), device, stream(on))));
}

/// Records that a stream other than the request's also uses a block.
#[unsafe(no_mangle)]
pub extern "C" fn planlab_cuda_record_stream(block: *mut c_void, on: *mut c_void) {
    guarded(false, || known().map(|devices| devices.record_stream(address(block), stream(on))));
}

/// Gives back to the driver the memory that no block and no plan uses.
#[unsafe(no_mangle)]
pub extern "C" fn planlab_cuda_empty_cache() {
    guarded((), || known().map(Devices::release_cached));
}
