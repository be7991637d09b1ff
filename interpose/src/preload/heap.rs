//! The library's own memory: never through the symbols that it takes.
//!
//! Small pieces come from the real allocator. Large ones are mapped, so that they do not move the thresholds by which glibc
//! decides what it maps for the program.
#![allow(unsafe_code, reason = "an allocator")]

use std::alloc::{GlobalAlloc, Layout};
use std::ptr;

use super::real;

/// From so many bytes on a piece is a mapping of its own.
const MAPPED: usize = 64 << 10;
const PAGE: usize = 4096;

pub(super) struct Heap;

const fn is_mapped(size: usize) -> bool {
    size >= MAPPED
}

/// A private mapping of zeros, or null.
pub(super) fn map(size: usize, flags: i32) -> *mut u8 {
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | flags;
    // SAFETY: a new mapping, where nothing else is.
    let at = unsafe { libc::mmap(ptr::null_mut(), size, protection, flags, -1, 0) };
    if at == libc::MAP_FAILED { ptr::null_mut() } else { at.cast() }
}

// SAFETY: a mapping and a block of the real allocator are memory of the size, and of the alignment that is looked at; by its
// size it is known what a piece is.
unsafe impl GlobalAlloc for Heap {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        match layout.size() {
            size if is_mapped(size) && layout.align() <= PAGE => map(size, 0),
            size if layout.align() <= 16 => real::malloc(size).cast(),
            size => real::memalign(layout.align(), size).cast(),
        }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if is_mapped(layout.size()) && layout.align() <= PAGE {
            return map(layout.size(), 0);
        }
        // SAFETY: the layout is as the caller promises.
        let block = unsafe { self.alloc(layout) };
        if !block.is_null() {
            // SAFETY: it has so many bytes.
            unsafe { ptr::write_bytes(block, 0, layout.size()) };
        }
        block
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        if is_mapped(layout.size()) && layout.align() <= PAGE {
            // SAFETY: the whole of a mapping that `alloc` made.
            unsafe { libc::munmap(block.cast(), layout.size()) };
        } else {
            // SAFETY: the real allocator gave it.
            unsafe { real::free(block.cast()) };
        }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if is_mapped(layout.size()) && is_mapped(size) && layout.align() <= PAGE {
            // SAFETY: the whole of a mapping that `alloc` made.
            let at = unsafe { libc::mremap(block.cast(), layout.size(), size, libc::MREMAP_MAYMOVE) };
            return if at == libc::MAP_FAILED { ptr::null_mut() } else { at.cast() };
        }
        if !is_mapped(layout.size()) && !is_mapped(size) && layout.align() <= 16 {
            // SAFETY: the real allocator gave it.
            return unsafe { real::realloc(block.cast(), size).cast() };
        }
        let Ok(new) = Layout::from_size_align(size, layout.align()) else { return ptr::null_mut() };
        // SAFETY: the layout is not empty, says the caller.
        let moved = unsafe { self.alloc(new) };
        if !moved.is_null() {
            // SAFETY: both have so many bytes; the old piece is then of no use.
            unsafe {
                ptr::copy_nonoverlapping(block, moved, layout.size().min(size));
                self.dealloc(block, layout);
            }
        }
        moved
    }
}
