//! Calls of the C library that the program does not notice, and whether there may be any.
#![allow(unsafe_code, reason = "errno, stderr and resource usage")]

use std::ffi::c_int;
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether the library makes no system call any more, because the program has forbidden them to itself.
static IS_FROZEN: AtomicBool = AtomicBool::new(false);

#[inline]
pub(crate) fn is_frozen() -> bool {
    IS_FROZEN.load(Ordering::Relaxed)
}

/// Makes the library frozen; whether it was so before.
pub(crate) fn freeze() -> bool {
    IS_FROZEN.swap(true, Ordering::Relaxed)
}

/// Runs work that the program did not ask for, and hides its effect on `errno`.
pub(crate) fn keeping_errno<T>(work: impl FnOnce() -> T) -> T {
    // SAFETY: the result points to a variable of the calling thread.
    let errno = unsafe { libc::__errno_location() };
    // SAFETY: as above.
    let before = unsafe { errno.read() };
    let result = work();
    // SAFETY: as above.
    unsafe { errno.write(before) };
    result
}

/// Sets `errno`; returns -1.
pub(crate) extern "C" fn refuse(reason: c_int) -> isize {
    // SAFETY: the result points to a variable of the calling thread.
    unsafe { libc::__errno_location().write(reason) };
    -1
}

/// Writes to stderr.
pub(crate) fn say(text: &str) {
    // SAFETY: the pointer and the length are those of the text.
    unsafe { libc::write(libc::STDERR_FILENO, text.as_ptr().cast(), text.len()) };
}

/// The kernel's resource usage of the thread or the process.
pub(crate) fn usage(who: c_int) -> Option<libc::rusage> {
    let mut usage = MaybeUninit::zeroed();
    // SAFETY: it fills the whole structure; zeros are valid, too.
    unsafe { (libc::getrusage(who, usage.as_mut_ptr()) == 0).then(|| usage.assume_init()) }
}
