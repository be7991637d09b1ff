//! What the driver's library must have: a version, and every function that is called.
//!
//! cudarc looks a function up at its first call, and panics if the library lacks it. All functions are therefore
//! looked up before anything else is called, so that an older driver is refused with a reason.
//!
//! The version is that of the newest functions: graphs that allocate, and the query of their memory
//! (`cuDeviceGetGraphMemAttribute`), came with CUDA 11.4.

/// The oldest supported version, in the driver's own form: 1000 times the major, 10 times the minor number.
pub(super) const OLDEST: i32 = 11_040;

/// Every function of the library that is called, several in a line.
const FUNCTIONS: &[&str] = &[
    "cuDriverGetVersion cuCtxPopCurrent_v2 cuCtxPushCurrent_v2 cuCtxSetCurrent cuDeviceGet",
    "cuDeviceGetAttribute cuDeviceGetCount cuDeviceGetDefaultMemPool cuDeviceGetGraphMemAttribute",
    "cuDeviceGetName cuDeviceGraphMemTrim cuDevicePrimaryCtxRelease_v2 cuDevicePrimaryCtxRetain",
    "cuDeviceSetGraphMemAttribute cuEventCreate cuEventDestroy_v2 cuEventElapsedTime cuEventRecord",
    "cuGetErrorName cuGetErrorString cuGraphDestroy cuGraphExecDestroy cuGraphInstantiateWithFlags",
    "cuGraphLaunch cuInit cuLaunchKernel cuMemAddressFree cuMemAddressReserve cuMemAllocAsync",
    "cuMemAlloc_v2 cuMemCreate cuMemFreeAsync cuMemFree_v2 cuMemGetAllocationGranularity cuMemGetInfo_v2",
    "cuMemMap cuMemPoolGetAttribute cuMemPoolSetAttribute cuMemPoolTrimTo cuMemRelease cuMemSetAccess",
    "cuMemUnmap cuMemcpyDtoH_v2 cuMemsetD8Async cuModuleGetFunction cuModuleLoadData cuModuleUnload",
    "cuStreamBeginCapture_v2 cuStreamCreate cuStreamDestroy_v2 cuStreamEndCapture cuStreamGetCtx",
    "cuStreamIsCapturing cuStreamSynchronize cuStreamWaitEvent cuThreadExchangeStreamCaptureMode",
];

/// The version as `12.4`.
pub(super) fn version_text(version: i32) -> String {
    format!("{}.{}", version / 1000, version % 1000 / 10)
}

/// Why a driver is not supported: it is too old, or lacks a function. `version`: the version that it reports, if any.
pub(super) fn lacking_requirement(version: Option<i32>, has: impl Fn(&str) -> bool) -> Option<String> {
    let needed = version_text(OLDEST);
    if let Some(old) = version.filter(|&version| version < OLDEST) {
        return Some(format!("the driver supports CUDA {}, {needed} is needed", version_text(old)));
    }
    let missing = FUNCTIONS.iter().flat_map(|line| line.split(' ')).find(|&name| !has(name))?;
    let supports = match version {
        Some(known) => format!("CUDA {}", version_text(known)),
        None => "an unknown CUDA".to_owned(),
    };
    Some(format!("the driver supports {supports} but has no {missing}; CUDA {needed} or later is needed"))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn an_old_driver_is_told_by_its_version() {
        let all = |_: &str| true;
        assert_eq!(lacking_requirement(Some(OLDEST), all), None);
        assert_eq!(lacking_requirement(None, all), None);
        let says = lacking_requirement(Some(11_020), |_| false);
        assert_eq!(says.as_deref(), Some("the driver supports CUDA 11.2, 11.4 is needed"));
    }

    #[test]
    fn a_missing_function_is_named() {
        let without = |name: &str| name != "cuMemMap";
        let says = lacking_requirement(Some(12_080), without).expect("it is missing");
        assert!(says.contains("supports CUDA 12.8 but has no cuMemMap"), "{says}");
        let says = lacking_requirement(None, without).expect("it is missing");
        assert!(says.contains("an unknown CUDA but has no cuMemMap"), "{says}");
    }

    #[test]
    fn every_function_that_is_called_is_looked_for() {
        let is_of_name = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
        let callers = [
            include_str!("cuda_driver.rs"),
            include_str!("library.rs"),
            include_str!("../../shared/library.rs"),
        ];
        let called = callers.iter().flat_map(|text| text.split("sys::").skip(1)).map(|rest| {
            let end = rest.find(|letter: char| !is_of_name(letter)).unwrap_or(rest.len());
            &rest[..end]
        });
        // Types are `CU...`; the library itself is loaded by `is_culib_present` and `culib`.
        let is_function = |name: &&str| name.starts_with("cu") && *name != "culib";
        let called: BTreeSet<&str> = called.filter(is_function).collect();
        assert_eq!(called, FUNCTIONS.iter().flat_map(|line| line.split(' ')).collect::<BTreeSet<&str>>());
    }
}
