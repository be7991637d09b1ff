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
pub(crate) fn probe_driver() -> Result<String, DriverError> {
    load_library()?;
    let version = version_text(driver_version()?);
    // SAFETY: the library is loaded and initialised; the pointer points to a local number.
    let devices = read_value("cuDeviceGetCount", 0, |devices| unsafe { sys::cuDeviceGetCount(devices) })?;
    if devices == 0 {
        return Err(DriverError::from_absence(format!("the driver (CUDA {version}) sees no GPU")));
    }
    let names =
        (0..devices).map(|number| device_name(device_handle(number)?)).collect::<Result<Vec<String>, _>>()?;
    Ok(format!("{devices} GPU(s), driver for CUDA {version}: {}", names.join(", ")))
}

/// The device of a number.
pub(crate) fn device_handle(number: i32) -> Result<sys::CUdevice, DriverError> {
    let mut device = 0;
    // SAFETY: the library is initialised; the pointer points to a local number.
    let code = unsafe { sys::cuDeviceGet(&raw mut device, number) };
    if code == CUresult::CUDA_ERROR_INVALID_DEVICE {
        return Err(DriverError::from_absence(format!("there is no GPU {number}")));
    }
    check_call("cuDeviceGet", code)?;
    Ok(device)
}

/// The device's name.
fn device_name(device: sys::CUdevice) -> Result<String, DriverError> {
    let mut name = [0 as c_char; 256];
    // SAFETY: the array has the given number of bytes.
    check_call("cuDeviceGetName", unsafe { sys::cuDeviceGetName(name.as_mut_ptr(), 256, device) })?;
    // SAFETY: the driver terminates the name with 0, within the array.
    Ok(unsafe { CStr::from_ptr(name.as_ptr()) }.to_string_lossy().into_owned())
}

/// Loads and initialises the driver's library, if it has every function that is called here.
pub(crate) fn load_library() -> Result<(), DriverError> {
    // SAFETY: the library is the driver's own; its initialisers may run in any process.
    if !unsafe { sys::is_culib_present() } {
        return Err(DriverError::from_absence("no NVIDIA driver on this machine (no libcuda)"));
    }
    let version = if has_function("cuDriverGetVersion") { driver_version().ok() } else { None };
    if let Some(reason) = requirement::lacking_requirement(version, has_function) {
        return Err(DriverError::from_absence(reason));
    }
    // SAFETY: the library is present and has the function; the flags must be 0 and are.
    let code = unsafe { sys::cuInit(0) };
    if code == CUresult::CUDA_SUCCESS {
        return Ok(());
    }
    Err(DriverError::from_absence(format!("the NVIDIA driver does not start: {}", error_text(code))))
}

/// Whether the library, which must be present, has a function: cudarc panics at the first call of a missing one.
fn has_function(function: &str) -> bool {
    // SAFETY: the function is looked up and not called, so its type does not matter.
    unsafe { sys::culib().get::<unsafe extern "C" fn()>(function.as_bytes()) }.is_ok()
}

/// The latest CUDA that the driver supports.
fn driver_version() -> Result<i32, DriverError> {
    let mut version = 0;
    // SAFETY: the library is loaded and has the function; the pointer points to a local number.
    match unsafe { sys::cuDriverGetVersion(&raw mut version) } {
        CUresult::CUDA_SUCCESS => Ok(version),
        code => Err(DriverError::from_failure("cuDriverGetVersion", format!("error {code:?}"))),
    }
}

/// The driver's text for an error.
fn error_text(code: CUresult) -> String {
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

pub(crate) fn check_call(call: &'static str, code: CUresult) -> Result<(), DriverError> {
    if code == CUresult::CUDA_SUCCESS {
        Ok(())
    } else {
        Err(DriverError::from_failure(call, error_text(code)))
    }
}

/// As [`check_call`], for a call that requests memory.
pub(crate) fn check_memory(call: &'static str, size: Bytes, code: CUresult) -> Result<(), DriverError> {
    if code == CUresult::CUDA_ERROR_OUT_OF_MEMORY {
        return Err(DriverError::OutOfMemory { size });
    }
    check_call(call, code)
}

/// What a call writes to the pointer that it gets; `value` lies there before.
pub(crate) fn read_value<T>(
    call: &'static str,
    mut value: T,
    run: impl FnOnce(*mut T) -> CUresult,
) -> Result<T, DriverError> {
    check_call(call, run(&raw mut value))?;
    Ok(value)
}

pub(crate) fn byte_length(size: Bytes) -> Result<usize, DriverError> {
    usize::try_from(size.get()).map_err(|_| DriverError::OutOfMemory { size })
}

/// Makes a context current on the calling thread.
pub(crate) fn set_current(context: sys::CUcontext) -> Result<(), DriverError> {
    // SAFETY: the driver returned the context, which is held until its binding's owner has ended.
    check_call("cuCtxSetCurrent", unsafe { sys::cuCtxSetCurrent(context) })
}

pub(crate) fn device_attribute(
    device: sys::CUdevice,
    attribute: CUdevice_attribute,
) -> Result<i32, DriverError> {
    // SAFETY: the device exists; the pointer points to a local number.
    read_value("cuDeviceGetAttribute", 0, |value| unsafe {
        sys::cuDeviceGetAttribute(value, attribute, device)
    })
}

pub(crate) fn device_count(device: sys::CUdevice, which: CUdevice_attribute) -> Result<u64, DriverError> {
    Ok(u64::try_from(device_attribute(device, which)?).unwrap_or(0))
}

/// The device's context as a number, held until it is given back.
pub(crate) fn retain_context(device: sys::CUdevice) -> Result<usize, DriverError> {
    // SAFETY: the device exists; its context is given back when the driver is dropped.
    let call = |context: *mut _| unsafe { sys::cuDevicePrimaryCtxRetain(context, device) };
    Ok(read_value("cuDevicePrimaryCtxRetain", ptr::null_mut(), call)? as usize)
}

/// The names of the device, its driver and the compiler of its kernels.
pub(crate) fn describe_device(device: sys::CUdevice, compiled: &str) -> Result<String, DriverError> {
    let (name, version) = (device_name(device)?, driver_version()?);
    let major = device_attribute(device, CUdevice_attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?;
    let minor = device_attribute(device, CUdevice_attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?;
    let multiprocessors = device_count(device, CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?;
    // Kilohertz; a driver that does not report clocks is no reason to stop.
    let clock = device_count(device, CUdevice_attribute::CU_DEVICE_ATTRIBUTE_CLOCK_RATE).unwrap_or(0) / 1000;
    let memory_clock =
        device_count(device, CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE).unwrap_or(0) / 1000;
    Ok(format!(
        "{name}, compute capability {major}.{minor}, {multiprocessors} multiprocessors, at most {clock} MHz, memory \
         {memory_clock} MHz, driver for CUDA {}, kernels by {compiled}",
        version_text(version)
    ))
}

pub(crate) fn create_stream() -> Result<usize, DriverError> {
    // SAFETY: a context is current; the stream is ended when the driver is dropped.
    let call = |stream: *mut _| unsafe { sys::cuStreamCreate(stream, NON_BLOCKING) };
    Ok(read_value("cuStreamCreate", ptr::null_mut(), call)? as usize)
}

pub(crate) fn create_event() -> Result<usize, DriverError> {
    // SAFETY: a context is current; flags of 0 mean an event with a time. It is ended when the driver is dropped.
    let call = |event: *mut _| unsafe { sys::cuEventCreate(event, 0) };
    Ok(read_value("cuEventCreate", ptr::null_mut(), call)? as usize)
}

pub(crate) fn default_pool(device: sys::CUdevice) -> Result<usize, DriverError> {
    // SAFETY: the device has pools; the default one lives as long as the context.
    let call = |pool: *mut _| unsafe { sys::cuDeviceGetDefaultMemPool(pool, device) };
    Ok(read_value("cuDeviceGetDefaultMemPool", ptr::null_mut(), call)? as usize)
}

/// The properties of device memory that mapped pieces need.
pub(crate) fn allocation_properties(device: sys::CUdevice) -> sys::CUmemAllocationProp {
    // SAFETY: the structure consists of plain numbers and a pointer, for which 0 is valid: no handle is exported.
    let mut properties: sys::CUmemAllocationProp = unsafe { std::mem::zeroed() };
    properties.type_ = sys::CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.location = memory_location(device);
    properties
}

pub(crate) fn memory_location(device: sys::CUdevice) -> sys::CUmemLocation {
    sys::CUmemLocation { type_: sys::CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE, id: device }
}

pub(crate) fn mapping_granularity(device: sys::CUdevice) -> Result<u64, DriverError> {
    let properties = allocation_properties(device);
    let option = sys::CUmemAllocationGranularity_flags::CU_MEM_ALLOC_GRANULARITY_RECOMMENDED;
    // SAFETY: both pointers point to locals.
    let call =
        |bytes: *mut _| unsafe { sys::cuMemGetAllocationGranularity(bytes, &raw const properties, option) };
    Ok(read_value("cuMemGetAllocationGranularity", 0_usize, call)?.max(1) as u64)
}

/// The kernels, and what compiled them.
pub(crate) fn load_module() -> Result<(usize, &'static str), DriverError> {
    let compiled = catch_unwind(AssertUnwindSafe(compile_kernels)).ok().flatten();
    let by_compiler = compiled.and_then(|ptx| load_ptx(&ptx).ok());
    if let Some(module) = by_compiler {
        return Ok((module, "NVRTC"));
    }
    let mut embedded = kernels::PTX.as_bytes().to_vec();
    embedded.push(0);
    Ok((load_ptx(&embedded)?, "the driver from PTX"))
}

/// The kernels as PTX that ends with 0; `None` if the run-time compiler is not available.
fn compile_kernels() -> Option<Vec<u8>> {
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
fn load_ptx(ptx: &[u8]) -> Result<usize, DriverError> {
    debug_assert_eq!(ptx.last(), Some(&0));
    // SAFETY: a context is current; the text ends with 0 and is read during the call.
    let call = |module: *mut _| unsafe { sys::cuModuleLoadData(module, ptx.as_ptr().cast()) };
    Ok(read_value("cuModuleLoadData", ptr::null_mut(), call)? as usize)
}

pub(crate) fn find_functions(module: usize) -> Result<[usize; 4], DriverError> {
    let mut functions = [0; 4];
    for (function, name) in functions.iter_mut().zip(kernels::NAMES) {
        // SAFETY: the module is loaded; the name ends with 0.
        let call = |found: *mut _| unsafe {
            sys::cuModuleGetFunction(found, module as sys::CUmodule, name.as_ptr())
        };
        *function = read_value("cuModuleGetFunction", ptr::null_mut(), call)? as usize;
    }
    Ok(functions)
}
