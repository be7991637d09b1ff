//! System calls without the C library, for a process that has no thread-local variables of its own.
#![allow(unsafe_code, reason = "system calls")]

use std::ffi::c_long;

/// A system call; a negative error number on failure.
///
/// # Safety
///
/// As that system call.
#[cfg(target_arch = "x86_64")]
pub(crate) unsafe fn system_call(
    number: c_long,
    [first, second, third, fourth, fifth]: [usize; 5],
) -> c_long {
    let mut result = number;
    // SAFETY: as the caller promises; the kernel changes these registers alone.
    unsafe {
        std::arch::asm!("syscall", inlateout("rax") result, in("rdi") first, in("rsi") second, in("rdx") third,
            in("r10") fourth, in("r8") fifth, lateout("rcx") _, lateout("r11") _, options(nostack));
    }
    result
}

/// A system call; a negative error number on failure.
///
/// # Safety
///
/// As that system call.
#[cfg(target_arch = "aarch64")]
pub(crate) unsafe fn system_call(
    number: c_long,
    [first, second, third, fourth, fifth]: [usize; 5],
) -> c_long {
    let result;
    // SAFETY: as the caller promises.
    unsafe {
        std::arch::asm!("svc 0", in("x8") number, inlateout("x0") first => result, in("x1") second, in("x2") third,
            in("x3") fourth, in("x4") fifth, options(nostack));
    }
    result
}

/// Fails: there is no watching process on other processors.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
pub(crate) unsafe fn system_call(_: c_long, _: [usize; 5]) -> c_long {
    -1
}
