//! Addresses, and mappings of the library's own.
#![allow(unsafe_code, reason = "mappings")]

use std::ptr;

/// The size of a page in bytes.
pub(crate) const PAGE: usize = 4096;

/// An address as a word of this machine.
#[expect(clippy::cast_possible_truncation, reason = "addresses have 64 bits on every supported machine")]
pub(crate) const fn word(address: u64) -> usize {
    address as usize
}

/// A private mapping of zeros; null on failure.
pub(crate) fn map(size: usize, flags: i32) -> *mut u8 {
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | flags;
    // SAFETY: a new mapping at an address of the kernel's choice replaces nothing.
    let at = unsafe { libc::mmap(ptr::null_mut(), size, protection, flags, -1, 0) };
    if at == libc::MAP_FAILED { ptr::null_mut() } else { at.cast() }
}

/// The address of a private mapping of zeros, a multiple of `align` bytes; 0 on failure. Both are whole pages.
pub(crate) fn map_aligned(size: usize, align: usize) -> usize {
    let Some(whole) = size.checked_add(align) else { return 0 };
    let first = map(whole, libc::MAP_NORESERVE).expose_provenance();
    if first == 0 {
        return 0;
    }
    let begin = first.next_multiple_of(align);
    // SAFETY: these are the parts of the mapping that was just made around what is returned.
    unsafe {
        unmap(first, begin);
        unmap(begin + size, first + whole);
    }
    begin
}

/// Unmaps the bytes between two addresses, if there are any.
///
/// # Safety
///
/// They are mapped by the library, and nobody uses them.
pub(crate) unsafe fn unmap(from: usize, to: usize) {
    if to > from {
        // SAFETY: as the caller promises.
        unsafe { libc::munmap(ptr::with_exposed_provenance_mut(from), to - from) };
    }
}
