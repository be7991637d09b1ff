//! The library's own memory: never through the symbols that it takes.
//!
//! Small pieces come from the real allocator. Large ones are mapped, so that they do not move the thresholds by which glibc
//! decides what it maps for the program. At the end of the process all are mapped: a signal handler may have called `exit`
//! in the middle of the real allocator.
#![allow(unsafe_code, reason = "an allocator")]

use std::alloc::{GlobalAlloc, Layout};
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use super::real;

/// From so many bytes on a piece is a mapping of its own.
const MAPPED: usize = 64 << 10;
const PAGE: usize = 4096;

/// What the statistics of a process take, in bytes, most often; a mapping.
const LAST: usize = 1 << 20;

pub(super) struct Heap;

static IS_ENDING: AtomicBool = AtomicBool::new(false);
/// Of the last pieces: the address of the next, and the end of their mapping.
static NEXT: AtomicUsize = AtomicUsize::new(0);
static END: AtomicUsize = AtomicUsize::new(0);

/// From now on no piece comes from the real allocator, and none goes back to it.
pub(super) fn end() {
    let begin = map(LAST, libc::MAP_NORESERVE).expose_provenance();
    if begin > 0 {
        END.store(begin + LAST, Ordering::Relaxed);
        NEXT.store(begin, Ordering::Relaxed);
    }
    IS_ENDING.store(true, Ordering::Release);
}

#[inline]
fn is_ending() -> bool {
    IS_ENDING.load(Ordering::Relaxed)
}

/// A piece that nobody gives back.
#[cold]
fn last(layout: Layout) -> *mut u8 {
    let size = layout.size().saturating_add(layout.align());
    let at = NEXT.fetch_add(size, Ordering::Relaxed);
    if at > 0 && at.saturating_add(size) <= END.load(Ordering::Relaxed) {
        return ptr::with_exposed_provenance_mut(at.next_multiple_of(layout.align()));
    }
    if layout.align() <= PAGE { map(layout.size(), 0) } else { ptr::null_mut() }
}

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
// size it is known what a piece is, until nothing is given back any more.
unsafe impl GlobalAlloc for Heap {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        match layout.size() {
            _ if is_ending() => last(layout),
            size if is_mapped(size) && layout.align() <= PAGE => map(size, 0),
            size if layout.align() <= 16 => real::malloc(size).cast(),
            size => real::memalign(layout.align(), size).cast(),
        }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if is_mapped(layout.size()) && layout.align() <= PAGE && !is_ending() {
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
        if is_ending() {
            return;
        }
        if is_mapped(layout.size()) && layout.align() <= PAGE {
            // SAFETY: the whole of a mapping that `alloc` made.
            unsafe { libc::munmap(block.cast(), layout.size()) };
        } else {
            // SAFETY: the real allocator gave it.
            unsafe { real::free(block.cast()) };
        }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if is_mapped(layout.size()) && is_mapped(size) && layout.align() <= PAGE && !is_ending() {
            // SAFETY: the whole of a mapping that `alloc` made.
            let at = unsafe { libc::mremap(block.cast(), layout.size(), size, libc::MREMAP_MAYMOVE) };
            return if at == libc::MAP_FAILED { ptr::null_mut() } else { at.cast() };
        }
        if !is_mapped(layout.size()) && !is_mapped(size) && layout.align() <= 16 && !is_ending() {
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
