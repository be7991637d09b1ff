//! The driver's library, which cudarc loads when the program runs: checks it, translates its errors, and obtains a
//! device's context, stream, events, pool and kernels.

#![allow(unsafe_code, reason = "calls of the driver's library")]

use std::ffi::{CStr, c_char};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;

use cudarc::driver::sys::{self, CUdevice_attribute, CUresult};
use planlab_dsa::Bytes;

use super::requirement::{self, version_text};
use crate::cuda::driver::interface::DriverError;
use crate::cuda::driver::kernels;

/// A stream that does not wait for the default one.
const NON_BLOCKING: u32 = 1;

/// Checks for a driver, and returns its description and its devices; touches none of them.
pub(crate) fn probe() -> Result<String, DriverError> {
    load()?;
    let version = version_text(version()?);
    // SAFETY: the library is loaded and initialised; the pointer points to a local number.
    let devices = read("cuDeviceGetCount", 0, |devices| unsafe { sys::cuDeviceGetCount(devices) })?;
    if devices == 0 {
        return Err(DriverError::unavailable(format!("the driver (CUDA {version}) sees no GPU")));
    }
    let names = (0..devices).map(|number| name(device(number)?)).collect::<Result<Vec<String>, _>>()?;
    Ok(format!("{devices} GPU(s), driver for CUDA {version}: {}", names.join(", ")))
}

/// The device of a number.
pub(crate) fn device(number: i32) -> Result<sys::CUdevice, DriverError> {
    let mut device = 0;
    // SAFETY: the library is initialised; the pointer points to a local number.
    let code = unsafe { sys::cuDeviceGet(&raw mut device, number) };
    if code == CUresult::CUDA_ERROR_INVALID_DEVICE {
        return Err(DriverError::unavailable(format!("there is no GPU {number}")));
    }
    check("cuDeviceGet", code)?;
    Ok(device)
}

/// The device's name.
fn name(device: sys::CUdevice) -> Result<String, DriverError> {
    let mut name = [0 as c_char; 256];
    // SAFETY: the array has the given number of bytes.
    check("cuDeviceGetName", unsafe { sys::cuDeviceGetName(name.as_mut_ptr(), 256, device) })?;
    // SAFETY: the driver terminates the name with 0, within the array.
    Ok(unsafe { CStr::from_ptr(name.as_ptr()) }.to_string_lossy().into_owned())
}

/// Loads and initialises the driver's library, if it has every function that is called here.
pub(crate) fn load() -> Result<(), DriverError> {
    // SAFETY: the library is the driver's own; its initialisers may run in any process.
    if !unsafe { sys::is_culib_present() } {
        return Err(DriverError::unavailable("no NVIDIA driver on this machine (no libcuda)"));
    }
    let version = if has("cuDriverGetVersion") { version().ok() } else { None };
    if let Some(reason) = requirement::lacking(version, has) {
        return Err(DriverError::unavailable(reason));
    }
    // SAFETY: the library is present and has the function; the flags must be 0 and are.
    let code = unsafe { sys::cuInit(0) };
    if code == CUresult::CUDA_SUCCESS {
        return Ok(());
    }
    Err(DriverError::unavailable(format!("the NVIDIA driver does not start: {}", text(code))))
}

/// Whether the library, which must be present, has a function: cudarc panics at the first call of a missing one.
fn has(function: &str) -> bool {
    // SAFETY: the function is looked up and not called, so its type does not matter.
    unsafe { sys::culib().get::<unsafe extern "C" fn()>(function.as_bytes()) }.is_ok()
}

/// The latest CUDA that the driver supports.
fn version() -> Result<i32, DriverError> {
    let mut version = 0;
    // SAFETY: the library is loaded and has the function; the pointer points to a local number.
    match unsafe { sys::cuDriverGetVersion(&raw mut version) } {
        CUresult::CUDA_SUCCESS => Ok(version),
        code => Err(DriverError::failed("cuDriverGetVersion", format!("error {code:?}"))),
    }
}

/// The driver's text for an error.
fn text(code: CUresult) -> String {
    let read = |of: unsafe fn(CUresult, *mut *const c_char) -> CUresult| {
        let mut found: *const c_char = ptr::null();
        // SAFETY: the library is loaded; the pointer points to a local pointer.
        let answer = unsafe { of(code, &raw mut found) };
        if answer != CUresult::CUDA_SUCCESS || found.is_null() {
            return None;
        }
        // SAFETY: the driver returns a text of its own that ends with 0 and is never freed.
        Some(unsafe { CStr::from_ptr(found) }.to_string_lossy().into_owned())
    };
    match (read(sys::cuGetErrorName), read(sys::cuGetErrorString)) {
        (Some(name), Some(says)) => format!("{name}: {says}"),
        (Some(name), None) => name,
        _ => format!("error {code:?}"),
    }
}

pub(crate) fn check(call: &'static str, code: CUresult) -> Result<(), DriverError> {
    if code == CUresult::CUDA_SUCCESS { Ok(()) } else { Err(DriverError::failed(call, text(code))) }
}

/// As [`check`], for a call that requests memory.
pub(crate) fn check_memory(call: &'static str, size: Bytes, code: CUresult) -> Result<(), DriverError> {
    if code == CUresult::CUDA_ERROR_OUT_OF_MEMORY {
        return Err(DriverError::OutOfMemory { size });
    }
    check(call, code)
}

/// What a call writes to the pointer that it gets; `value` lies there before.
pub(crate) fn read<T>(
    call: &'static str,
    mut value: T,
    run: impl FnOnce(*mut T) -> CUresult,
) -> Result<T, DriverError> {
    check(call, run(&raw mut value))?;
    Ok(value)
}

pub(crate) fn length(size: Bytes) -> Result<usize, DriverError> {
    usize::try_from(size.get()).map_err(|_| DriverError::OutOfMemory { size })
}

/// Makes a context current on the calling thread.
pub(crate) fn set_current(context: sys::CUcontext) -> Result<(), DriverError> {
    // SAFETY: the driver returned the context, which is held until its binding's owner has ended.
    check("cuCtxSetCurrent", unsafe { sys::cuCtxSetCurrent(context) })
}

pub(crate) fn attribute(device: sys::CUdevice, attribute: CUdevice_attribute) -> Result<i32, DriverError> {
    // SAFETY: the device exists; the pointer points to a local number.
    read("cuDeviceGetAttribute", 0, |value| unsafe { sys::cuDeviceGetAttribute(value, attribute, device) })
}

pub(crate) fn count(device: sys::CUdevice, which: CUdevice_attribute) -> Result<u64, DriverError> {
    Ok(u64::try_from(attribute(device, which)?).unwrap_or(0))
}

/// The device's context as a number, held until it is given back.
pub(crate) fn retain(device: sys::CUdevice) -> Result<usize, DriverError> {
    // SAFETY: the device exists; its context is given back when the driver is dropped.
    let call = |context: *mut _| unsafe { sys::cuDevicePrimaryCtxRetain(context, device) };
    Ok(read("cuDevicePrimaryCtxRetain", ptr::null_mut(), call)? as usize)
}

/// The names of the device, its driver and the compiler of its kernels.
pub(crate) fn describe(device: sys::CUdevice, compiled: &str) -> Result<String, DriverError> {
    let (name, version) = (name(device)?, version()?);
    let major = attribute(device, CUdevice_attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?;
    let minor = attribute(device, CUdevice_attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?;
    let multiprocessors = count(device, CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?;
    // Kilohertz; a driver that does not report clocks is no reason to stop.
    let clock = count(device, CUdevice_attribute::CU_DEVICE_ATTRIBUTE_CLOCK_RATE).unwrap_or(0) / 1000;
    let memory_clock =
        count(device, CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE).unwrap_or(0) / 1000;
    Ok(format!(
        "{name}, compute capability {major}.{minor}, {multiprocessors} multiprocessors, at most {clock} MHz, memory \
         {memory_clock} MHz, driver for CUDA {}, kernels by {compiled}",
        version_text(version)
    ))
}

pub(crate) fn stream() -> Result<usize, DriverError> {
    // SAFETY: a context is current; the stream is ended when the driver is dropped.
    let call = |stream: *mut _| unsafe { sys::cuStreamCreate(stream, NON_BLOCKING) };
    Ok(read("cuStreamCreate", ptr::null_mut(), call)? as usize)
}

pub(crate) fn event() -> Result<usize, DriverError> {
    // SAFETY: a context is current; flags of 0 mean an event with a time. It is ended when the driver is dropped.
    let call = |event: *mut _| unsafe { sys::cuEventCreate(event, 0) };
    Ok(read("cuEventCreate", ptr::null_mut(), call)? as usize)
}

pub(crate) fn default_pool(device: sys::CUdevice) -> Result<usize, DriverError> {
    // SAFETY: the device has pools; the default one lives as long as the context.
    let call = |pool: *mut _| unsafe { sys::cuDeviceGetDefaultMemPool(pool, device) };
    Ok(read("cuDeviceGetDefaultMemPool", ptr::null_mut(), call)? as usize)
}

/// The properties of device memory that mapped pieces need.
pub(crate) fn properties(device: sys::CUdevice) -> sys::CUmemAllocationProp {
    // SAFETY: the structure consists of plain numbers and a pointer, for which 0 is valid: no handle is exported.
    let mut properties: sys::CUmemAllocationProp = unsafe { std::mem::zeroed() };
    properties.type_ = sys::CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.location = location(device);
    properties
}

pub(crate) fn location(device: sys::CUdevice) -> sys::CUmemLocation {
    sys::CUmemLocation { type_: sys::CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE, id: device }
}

pub(crate) fn granularity(device: sys::CUdevice) -> Result<u64, DriverError> {
    let properties = properties(device);
    let option = sys::CUmemAllocationGranularity_flags::CU_MEM_ALLOC_GRANULARITY_RECOMMENDED;
    // SAFETY: both pointers point to locals.
    let call =
        |bytes: *mut _| unsafe { sys::cuMemGetAllocationGranularity(bytes, &raw const properties, option) };
    Ok(read("cuMemGetAllocationGranularity", 0_usize, call)?.max(1) as u64)
}

/// The kernels, and what compiled them.
pub(crate) fn load_module() -> Result<(usize, &'static str), DriverError> {
    let compiled = catch_unwind(AssertUnwindSafe(compile)).ok().flatten();
    let by_compiler = compiled.and_then(|ptx| module(&ptx).ok());
    if let Some(module) = by_compiler {
        return Ok((module, "NVRTC"));
    }
    let mut embedded = kernels::PTX.as_bytes().to_vec();
    embedded.push(0);
    Ok((module(&embedded)?, "the driver from PTX"))
}

/// The kernels as PTX that ends with 0; `None` if the run-time compiler is not available.
fn compile() -> Option<Vec<u8>> {
    // SAFETY: the library is NVIDIA's own; its initialisers may run in any process.
    if !unsafe { cudarc::nvrtc::sys::is_culib_present() } {
        return None;
    }
    let ptx = cudarc::nvrtc::compile_ptx(kernels::CUDA_C).ok()?;
    let mut bytes = ptx.to_src().into_bytes();
    bytes.push(0);
    Some(bytes)
}

/// Loads PTX that ends with 0.
fn module(ptx: &[u8]) -> Result<usize, DriverError> {
    debug_assert_eq!(ptx.last(), Some(&0));
    // SAFETY: a context is current; the text ends with 0 and is read during the call.
    let call = |module: *mut _| unsafe { sys::cuModuleLoadData(module, ptx.as_ptr().cast()) };
    Ok(read("cuModuleLoadData", ptr::null_mut(), call)? as usize)
}

pub(crate) fn functions(module: usize) -> Result<[usize; 4], DriverError> {
    let mut functions = [0; 4];
    for (function, name) in functions.iter_mut().zip(kernels::NAMES) {
        // SAFETY: the module is loaded; the name ends with 0.
        let call = |found: *mut _| unsafe {
            sys::cuModuleGetFunction(found, module as sys::CUmodule, name.as_ptr())
        };
        *function = read("cuModuleGetFunction", ptr::null_mut(), call)? as usize;
    }
    Ok(functions)
}
