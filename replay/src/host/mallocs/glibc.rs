//! `malloc` and `free` of the C library, called directly.
//!
//! The process itself allocates there too; its share is subtracted by measuring before and after.
#![allow(unsafe_code, reason = "foreign functions")]

use std::ffi::CStr;

use planlab_dsa::{AllocError, Bytes, NotLive, Usage};

use crate::address::{as_word, pointer_to};
use crate::host::memory::{Memory, block};

pub(super) struct Glibc;

/// The library's version text.
pub(super) fn version_text() -> String {
    // SAFETY: it returns a text that lives as long as the process.
    let version = unsafe { CStr::from_ptr(libc::gnu_get_libc_version()) };
    format!("glibc {}", version.to_string_lossy())
}

// SAFETY: malloc returns memory of at least that size that belongs to the caller until it is freed.
unsafe impl Memory for Glibc {
    #[inline]
    fn alloc(&mut self, size: u64) -> Result<u64, AllocError> {
        // SAFETY: malloc takes any size.
        block(unsafe { libc::malloc(as_word(size)) }, size)
    }

    #[inline]
    unsafe fn free(&mut self, address: u64) -> Result<(), NotLive> {
        // SAFETY: the caller guarantees that malloc returned it and that it was not freed since.
        unsafe { libc::free(pointer_to(address)) };
        Ok(())
    }

    unsafe fn usable_bytes(&self, address: u64) -> Option<u64> {
        // SAFETY: the caller guarantees that malloc returned it and that it was not freed since.
        Some(unsafe { libc::malloc_usable_size(pointer_to(address)) } as u64)
    }

    /// Usage of all arenas, and of blocks that are mappings of their own.
    fn process_usage() -> Option<Usage> {
        // SAFETY: it reads glibc's counters under glibc's own locks.
        let info = unsafe { libc::mallinfo2() };
        let reserved = Bytes::new((info.arena + info.hblkhd) as u64);
        Some(Usage { reserved, reserved_peak: reserved, ..Usage::default() })
    }
}
