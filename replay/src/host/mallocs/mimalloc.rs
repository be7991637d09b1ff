//! mimalloc, beside the process's own allocator.
#![allow(unsafe_code, reason = "foreign functions")]

use std::ptr;

use libmimalloc_sys as sys;
use planlab_dsa::{AllocError, Bytes, NotLive, Usage};

use crate::address::{as_word, pointer_to};
use crate::host::memory::{Memory, block};

pub(super) struct Mimalloc;

/// The library's version text.
pub(super) fn version_text() -> String {
    // SAFETY: it takes nothing and returns a number.
    let version = unsafe { sys::mi_version() };
    format!("mimalloc, version number {version}")
}

// SAFETY: mi_malloc returns memory of at least that size that belongs to the caller until it is freed.
unsafe impl Memory for Mimalloc {
    #[inline]
    fn alloc(&mut self, size: u64) -> Result<u64, AllocError> {
        // SAFETY: mi_malloc takes any size.
        block(unsafe { sys::mi_malloc(as_word(size)) }, size)
    }

    #[inline]
    unsafe fn free(&mut self, address: u64) -> Result<(), NotLive> {
        // SAFETY: the caller guarantees that mi_malloc returned it and that it was not freed since.
        unsafe { sys::mi_free(pointer_to(address)) };
        Ok(())
    }

    unsafe fn usable_bytes(&self, address: u64) -> Option<u64> {
        // SAFETY: the caller guarantees that mi_malloc returned it and that it was not freed since.
        Some(unsafe { sys::mi_usable_size(pointer_to(address)) } as u64)
    }

    /// Committed bytes: memory that may be touched, whether it was or not.
    fn process_usage() -> Option<Usage> {
        let (mut commit, mut peak) = (0, 0);
        let none = ptr::null_mut();
        // SAFETY: each pointer is null, which is allowed, or points to a number of its own.
        unsafe {
            sys::mi_process_info(none, none, none, none, none, &raw mut commit, &raw mut peak, none);
        }
        let (reserved, reserved_peak) = (Bytes::new(commit as u64), Bytes::new(peak as u64));
        Some(Usage { reserved, reserved_peak, ..Usage::default() })
    }
}
