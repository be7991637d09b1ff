//! A program's streams on a GPU, by calls of the driver's library.

#![allow(unsafe_code, reason = "calls of the driver's library")]

use std::ptr;

use cudarc::driver::sys::{self, CUstreamCaptureMode, CUstreamCaptureStatus};
use planlab_dsa::{Address, Bytes};

use super::shared_device::{SharedDevice, StreamHandle};
use crate::cuda::driver::DriverError;
use crate::cuda::driver::gpu::library::{
    byte_length, check_call, check_memory, device_handle, load_library, read_value, retain_context,
};

/// An event without a time.
const NO_TIME: u32 = 2;
/// Handles up to this one are not real streams: they stand for the default stream.
const DEFAULTS: u64 = 2;

/// A GPU's primary context, which CUDA's runtime uses too. It is held to the end of the process, because the program's
/// memory lies in it.
pub(super) struct Library {
    key: String,
    /// A pointer of the driver's library as a number, so that it may move between threads.
    context: usize,
}

impl Library {
    pub(super) fn new(ordinal: u32) -> Result<Self, DriverError> {
        load_library()?;
        let device = device_handle(i32::try_from(ordinal).unwrap_or(i32::MAX))?;
        Ok(Self { key: format!("cuda:{ordinal}"), context: retain_context(device)? })
    }

    fn context(&self) -> sys::CUcontext {
        self.context as sys::CUcontext
    }

    /// Works in a context, and then makes the program's own context current again.
    fn within_context<T>(
        context: sys::CUcontext,
        work: impl FnOnce() -> Result<T, DriverError>,
    ) -> Result<T, DriverError> {
        // SAFETY: the context is the program's or held by this driver, and is popped again below.
        check_call("cuCtxPushCurrent", unsafe { sys::cuCtxPushCurrent_v2(context) })?;
        let result = work();
        let mut popped = ptr::null_mut();
        // SAFETY: the pointer points to a local; the call pops what was pushed above.
        check_call("cuCtxPopCurrent", unsafe { sys::cuCtxPopCurrent_v2(&raw mut popped) })?;
        result
    }

    /// As `within`, for a call that would otherwise end the capture of a graph, whichever thread captures it.
    fn within_capture<T>(&self, work: impl FnOnce() -> Result<T, DriverError>) -> Result<T, DriverError> {
        let exchange = |mode: &mut CUstreamCaptureMode| {
            // SAFETY: the pointer points to a local.
            check_call("cuThreadExchangeStreamCaptureMode", unsafe {
                sys::cuThreadExchangeStreamCaptureMode(mode)
            })
        };
        Self::within_context(self.context(), || {
            let mut mode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED;
            exchange(&mut mode)?;
            let result = work();
            exchange(&mut mode)?;
            result
        })
    }

    /// The context of a stream, which may belong to another device.
    fn context_of(&self, stream: StreamHandle) -> Result<sys::CUcontext, DriverError> {
        if stream.0 <= DEFAULTS {
            return Ok(self.context());
        }
        // SAFETY: the stream is the program's and lives, because it is in use; the pointer points to a local.
        let call = |context: *mut _| unsafe { sys::cuStreamGetCtx(stream_handle(stream), context) };
        read_value("cuStreamGetCtx", ptr::null_mut(), call)
    }
}

fn stream_handle(stream: StreamHandle) -> sys::CUstream {
    ptr::with_exposed_provenance_mut(usize::try_from(stream.0).unwrap_or(0))
}

/// Records in an event the work launched on a stream so far, and makes another stream wait for it.
fn order_streams(event: sys::CUevent, waits: StreamHandle, awaited: StreamHandle) -> Result<(), DriverError> {
    // SAFETY: the event was made for the stream's context; the stream is the program's and lives.
    check_call("cuEventRecord", unsafe { sys::cuEventRecord(event, stream_handle(awaited)) })?;
    // SAFETY: as above; a stream may wait for an event of another device.
    check_call("cuStreamWaitEvent", unsafe { sys::cuStreamWaitEvent(stream_handle(waits), event, 0) })
}

impl SharedDevice for Library {
    fn key(&self) -> &str {
        &self.key
    }

    fn malloc(&self, size: Bytes) -> Result<Address, DriverError> {
        let bytes = byte_length(size)?;
        self.within_capture(|| {
            let mut at = 0;
            // SAFETY: a context is current; the pointer points to a local.
            check_memory("cuMemAlloc", size, unsafe { sys::cuMemAlloc_v2(&raw mut at, bytes) })?;
            Ok(Address::new(at))
        })
    }

    fn free(&self, at: Address) -> Result<(), DriverError> {
        // SAFETY: the driver refuses addresses that do not begin an allocation; it waits for running work.
        self.within_capture(|| check_call("cuMemFree", unsafe { sys::cuMemFree_v2(at.get()) }))
    }

    fn wait(&self, waits: StreamHandle, awaited: StreamHandle) -> Result<(), DriverError> {
        Self::within_context(self.context_of(awaited)?, || {
            // SAFETY: a context is current; the pointer points to a local.
            let call = |event: *mut _| unsafe { sys::cuEventCreate(event, NO_TIME) };
            let event = read_value("cuEventCreate", ptr::null_mut(), call)?;
            let ordered = order_streams(event, waits, awaited);
            // SAFETY: the event was just made, and is not used any more; the driver keeps it while a stream waits for
            // it.
            ordered.and(check_call("cuEventDestroy", unsafe { sys::cuEventDestroy_v2(event) }))
        })
    }

    fn is_capturing(&self, stream: StreamHandle) -> Result<bool, DriverError> {
        if stream.0 <= DEFAULTS {
            // The default stream is never captured.
            return Ok(false);
        }
        let none = CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE;
        // SAFETY: the stream is the program's and lives, because it requests memory on it; the pointer points to a
        // local.
        let call = |status: *mut _| unsafe { sys::cuStreamIsCapturing(stream_handle(stream), status) };
        Ok(read_value("cuStreamIsCapturing", none, call)? != none)
    }
}
