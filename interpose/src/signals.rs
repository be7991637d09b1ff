//! Blocks signals in the calling thread for a while, and for good in threads that it starts meanwhile; and cancellation.
#![allow(unsafe_code, reason = "signal masks")]

use std::ffi::c_int;
use std::mem::MaybeUninit;
use std::ptr;

/// While this exists, the calling thread handles no signals.
pub(crate) struct Masked {
    /// The mask before; `None` if it could not be changed.
    before: Option<libc::sigset_t>,
}

impl Masked {
    pub(crate) fn new() -> Self {
        let (mut all, mut before) = (MaybeUninit::uninit(), MaybeUninit::uninit());
        // SAFETY: `sigfillset` writes the set; `pthread_sigmask` reads it, and writes the other set if it returns 0.
        let before = unsafe {
            libc::sigfillset(all.as_mut_ptr());
            let is_set = libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), before.as_mut_ptr()) == 0;
            is_set.then(|| before.assume_init())
        };
        Self { before }
    }
}

impl Drop for Masked {
    fn drop(&mut self) {
        if let Some(before) = &self.before {
            // SAFETY: the C library wrote the set.
            unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, before, ptr::null_mut()) };
        }
    }
}

/// While this exists, the thread handles no signals and is not cancelled, which `write` would allow.
pub(crate) struct Undisturbed {
    _mask: Masked,
    cancel: c_int,
}

// SAFETY: the name and parameters are those of POSIX; it writes the old state if that pointer is not null.
unsafe extern "C" {
    /// A function of the C library that the crate libc leaves out.
    safe fn pthread_setcancelstate(state: c_int, old: *mut c_int) -> c_int;
}

const DISABLE: c_int = 1;

impl Undisturbed {
    pub(crate) fn new() -> Self {
        let mut cancel = 0;
        pthread_setcancelstate(DISABLE, &raw mut cancel);
        Self { _mask: Masked::new(), cancel }
    }
}

impl Drop for Undisturbed {
    fn drop(&mut self) {
        pthread_setcancelstate(self.cancel, ptr::null_mut());
    }
}
