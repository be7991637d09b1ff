//! Memory of GPUs by symbols, for PyTorch's `CUDAPluggableAllocator` and other programs that request memory by size,
//! device and stream.
//!
//! These symbols work without a preload. Settings and statistics are those of the preload. The driver is looked up at
//! the first request. Nothing is given back to the driver when the process ends, because the driver may be gone by
//! then.
#![allow(unsafe_code, reason = "the interface of C")]
#![allow(unreachable_pub, reason = "symbols are seen by the linker, not by other modules")]

use std::ffi::{c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use planlab_dsa::{Address, Bytes};
use planlab_replay::cuda::{SharedDevice, SimulatedStreams, StreamHandle, open_shared};
use serde_json::{Value, json};

use super::settings::{Settings, settings};
use super::{check, process, report, segments};
use crate::device::{Devices, Heap, HeapConfig};

static DEVICES: OnceLock<Devices> = OnceLock::new();
/// The child of a fork cannot use a GPU, and a thread that does not exist there may hold a lock.
static IS_CHILD: AtomicBool = AtomicBool::new(false);

/// Called in the child of a fork.
pub(super) fn after_fork() {
    IS_CHILD.store(true, Ordering::Relaxed);
}

/// The devices, after the first request.
fn known() -> Option<&'static Devices> {
    DEVICES.get().filter(|_| !IS_CHILD.load(Ordering::Relaxed))
}

fn devices() -> Option<&'static Devices> {
    if IS_CHILD.load(Ordering::Relaxed) {
        return None;
    }
    let settings = settings()?;
    Some(DEVICES.get_or_init(|| open(settings)))
}

fn open(settings: &'static Settings) -> Devices {
    let planning = settings.record.is_none().then(|| process::planning(settings));
    let config = HeapConfig { machine: settings.of_devices, planning };
    let simulated = settings.simulated;
    let open = move |number| match simulated {
        Some(bytes) => Ok(Arc::new(SimulatedStreams::new(bytes)) as Arc<dyn SharedDevice>),
        None => open_shared(number),
    };
    Devices::new(open, config, check::say)
}

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
        Some(ptr::without_provenance_mut(segments::word(at.get())))
    })
}

/// Frees memory of a GPU that was last used on a stream. Neither waits for the stream nor uses the size.
#[unsafe(no_mangle)]
pub extern "C" fn planlab_cuda_free(block: *mut c_void, _size: isize, device: c_int, on: *mut c_void) {
    guarded((), || {
        known()?.free(address(block), device, stream(on));
        Some(())
    });
}

/// Records that a stream other than the request's also uses a block.
#[unsafe(no_mangle)]
pub extern "C" fn planlab_cuda_record_stream(block: *mut c_void, on: *mut c_void) {
    guarded((), || {
        known()?.record_stream(address(block), stream(on));
        Some(())
    });
}

/// Gives back to the driver the memory that no block and no plan uses.
#[unsafe(no_mangle)]
pub extern "C" fn planlab_cuda_empty_cache() {
    guarded((), || {
        known()?.release_cached();
        Some(())
    });
}

/// Ends a round and begins the next.
pub(super) fn mark() {
    known().into_iter().for_each(Devices::mark);
}

/// The statistics of each device's memory.
pub(super) fn report() -> Vec<Value> {
    known().into_iter().flat_map(Devices::idle_heaps).map(|heap| object(&heap)).collect()
}

fn object(heap: &Heap) -> Value {
    json!({
        "device": heap.key(),
        "streams": heap.streams().count(),
        "counts": report::sums(heap.streams().map(|(_, tally)| tally)),
        "memory": report::named(heap.tally().all()),
        "plans": heap.plans().map(report::plan).collect::<Vec<Value>>(),
    })
}
