//! The system calls of the program that concern the library, as C programs make them.
//!
//! - What the program does to the pages of a planned block ends with the block: see [`attributes`].
//! - A program that has forbidden itself system calls (seccomp) would be killed for those of the library. So the library
//!   ends its work first.
//! - The first child in a new name space of processes is the one on which all others there depend. So the library
//!   starts none from then on: see [`idle`].
//! - A handler on a small stack of its own gets its memory from the real allocator, which needs little stack.
//!
//! A program that makes these calls without the C library is not noticed.
//!
//! # Safety
//!
//! A symbol has the contract of the function of its name in POSIX or Linux.
#![allow(unsafe_code, reason = "the interface of C")]
#![allow(unreachable_pub, reason = "symbols are seen by the linker, not by other modules")]

use std::ffi::{c_int, c_ulong, c_void};

use crate::preload::ending;
use crate::preload::segments::{attributes, idle};
use crate::preload::system::kernel::{
    MADVISE, MLOCK, MLOCK2, MMAP, MPROTECT, MREMAP, MUNMAP, PKEY_MPROTECT, PRCTL, SETNS, SIGALTSTACK,
    UNSHARE, next,
};
use crate::preload::threads::thread;

/// Marks these bytes if a call succeeded; returns its result.
fn marked(result: c_int, at: *mut c_void, bytes: usize) -> c_int {
    if result == 0 {
        attributes::mark(at.addr() as u64, bytes as u64);
    }
    result
}

/// Whether advice lasts, and would do harm to the next block.
const fn lasts(advice: c_int) -> bool {
    /// Guard pages, which the crate libc does not know yet.
    const GUARD_INSTALL: c_int = 102;
    matches!(
        advice,
        libc::MADV_DONTFORK
            | libc::MADV_WIPEONFORK
            | libc::MADV_DONTDUMP
            | libc::MADV_MERGEABLE
            | GUARD_INSTALL
    )
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn madvise(at: *mut c_void, bytes: usize, advice: c_int) -> c_int {
    let result = next!(MADVISE(at, bytes, advice));
    if lasts(advice) { marked(result, at, bytes) } else { result }
}

/// Calls that change the attributes of pages, or take the pages away.
macro_rules! marked {
    ($($name:ident = $next:ident($($argument:ident),*);)*) => {$(
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(at: *mut c_void, bytes: usize, $($argument: c_int),*) -> c_int {
            marked(next!($next(at, bytes $(, $argument)*)), at, bytes)
        }
    )*};
}

marked! {
    mprotect = MPROTECT(access);
    pkey_mprotect = PKEY_MPROTECT(access, key);
    mlock = MLOCK();
    mlock2 = MLOCK2(flags);
    munmap = MUNMAP();
}

/// Calls that map pages, perhaps in place of others.
macro_rules! mapped {
    ($($name:ident)*) => {$(
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(
            at: *mut c_void,
            bytes: usize,
            access: c_int,
            flags: c_int,
            file: c_int,
            offset: libc::off_t,
        ) -> *mut c_void {
            let mapped = next!(MMAP(at, bytes, access, flags, file, offset));
            if flags & libc::MAP_FIXED != 0 && mapped == at {
                attributes::mark(at.addr() as u64, bytes as u64);
            }
            mapped
        }
    )*};
}

// Offsets have 64 bits in both.
mapped! { mmap mmap64 }

#[unsafe(no_mangle)]
pub unsafe extern "C" fn mremap(
    at: *mut c_void,
    before: usize,
    bytes: usize,
    flags: c_int,
    to: *mut c_void,
) -> *mut c_void {
    let moved = next!(MREMAP(at, before, bytes, flags, to));
    if moved != libc::MAP_FAILED {
        attributes::mark(at.addr() as u64, before as u64);
        if flags & libc::MREMAP_FIXED != 0 {
            attributes::mark(to.addr() as u64, bytes as u64);
        }
    }
    moved
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sigaltstack(new: *const libc::stack_t, old: *mut libc::stack_t) -> c_int {
    let result = next!(SIGALTSTACK(new, old));
    if result == 0 && !new.is_null() {
        // SAFETY: the kernel has read it, too.
        thread::set_alternate(unsafe { &*new });
    }
    result
}

/// Whether `PR_SET_SECCOMP` with these arguments forbids anything. Without a filter it only asks what the kernel knows.
pub(super) const fn is_forbidding(mode: c_ulong, filter: c_ulong) -> bool {
    mode == libc::SECCOMP_MODE_STRICT as c_ulong
        || mode == libc::SECCOMP_MODE_FILTER as c_ulong && filter != 0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn prctl(
    what: c_int,
    first: c_ulong,
    second: c_ulong,
    third: c_ulong,
    fourth: c_ulong,
) -> c_int {
    if what == libc::PR_SET_SECCOMP && is_forbidding(first, second) {
        ending::freeze();
    }
    next!(PRCTL(what, first, second, third, fourth))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn unshare(flags: c_int) -> c_int {
    if flags & libc::CLONE_NEWPID != 0 {
        idle::start_no_more();
    }
    next!(UNSHARE(flags))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn setns(file: c_int, kind: c_int) -> c_int {
    if kind == 0 || kind & libc::CLONE_NEWPID != 0 {
        idle::start_no_more();
    }
    next!(SETNS(file, kind))
}
