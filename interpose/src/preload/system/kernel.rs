//! The next functions of the names in `symbols::kernel`, which make system calls.
#![allow(unsafe_code, reason = "the interface of C")]

use std::ffi::{c_int, c_ulong, c_void};

use super::next::{Lazy, lookups};

lookups! { prepare:
    MADVISE = c"madvise": unsafe extern "C" fn(*mut c_void, usize, c_int) -> c_int;
    MPROTECT = c"mprotect": unsafe extern "C" fn(*mut c_void, usize, c_int) -> c_int;
    PKEY_MPROTECT = c"pkey_mprotect": unsafe extern "C" fn(*mut c_void, usize, c_int, c_int) -> c_int;
    MLOCK = c"mlock": unsafe extern "C" fn(*mut c_void, usize) -> c_int;
    MLOCK2 = c"mlock2": unsafe extern "C" fn(*mut c_void, usize, c_int) -> c_int;
    MMAP = c"mmap": unsafe extern "C" fn(*mut c_void, usize, c_int, c_int, c_int, libc::off_t) -> *mut c_void;
    MUNMAP = c"munmap": unsafe extern "C" fn(*mut c_void, usize) -> c_int;
    MREMAP = c"mremap": unsafe extern "C" fn(*mut c_void, usize, usize, c_int, *mut c_void) -> *mut c_void;
    PRCTL = c"prctl": unsafe extern "C" fn(c_int, c_ulong, c_ulong, c_ulong, c_ulong) -> c_int;
    SIGALTSTACK = c"sigaltstack": unsafe extern "C" fn(*const libc::stack_t, *mut libc::stack_t) -> c_int;
    UNSHARE = c"unshare": unsafe extern "C" fn(c_int) -> c_int;
    SETNS = c"setns": unsafe extern "C" fn(c_int, c_int) -> c_int;
}

/// Calls the next function of a name; returns -1 and sets `errno` if there is no such function.
macro_rules! next {
    ($function:ident($($argument:expr),*)) => {
        match $function.get() {
            // SAFETY: it is the function of that name; the caller guarantees the arguments.
            Some(call) => unsafe { call($($argument),*) },
            None => {
                $crate::preload::system::refuse(libc::ENOSYS);
                -1_i32 as _
            }
        }
    };
}
pub(crate) use next;
