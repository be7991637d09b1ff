//! The library's own memory, which never goes through its own symbols.
//!
//! Small pieces lie on pages of their own ([`pieces`]); large ones are mappings. The real allocator has no part in it:
//! its pages belong to the program's blocks, and requests would change the thresholds from which on glibc maps blocks. At
//! the end of the process pieces are cut from one mapping and kept.
#![allow(unsafe_code, reason = "an allocator")]

mod pieces;

use std::alloc::{GlobalAlloc, Layout};
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use super::system::{PAGE, map, real};

/// Pieces of at least this many bytes are mappings of their own.
const MAPPED: usize = pieces::MOST;

/// The bytes that the statistics of a process usually take; one mapping.
const LAST: usize = 1 << 20;

pub(super) struct Heap;

static IS_ENDING: AtomicBool = AtomicBool::new(false);
/// The address of the next of the last pieces, and the end of their mapping.
static NEXT: AtomicUsize = AtomicUsize::new(0);
static END: AtomicUsize = AtomicUsize::new(0);

/// From now on no piece comes from the real allocator or goes back to it.
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

/// A piece that is never given back.
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

// SAFETY: pieces and mappings have the requested size, and each is chosen only if it has the alignment. The layout
// determines which of the two it is, until they are no longer given back. Alignments above a page, which no type has,
// come from the real allocator.
unsafe impl GlobalAlloc for Heap {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        match layout.size() {
            _ if is_ending() => last(layout),
            size if is_mapped(size) && layout.align() <= PAGE => map(size, 0),
            size if pieces::is_piece(size, layout.align()) => pieces::take(size, layout.align()),
            size => real::aligned(&real::MEMALIGN, layout.align(), size).cast(),
        }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if is_mapped(layout.size()) && layout.align() <= PAGE && !is_ending() {
            return map(layout.size(), 0);
        }
        // SAFETY: the caller guarantees the layout.
        let block = unsafe { self.alloc(layout) };
        if !block.is_null() {
            // SAFETY: the block has this many bytes.
            unsafe { ptr::write_bytes(block, 0, layout.size()) };
        }
        block
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        if is_ending() {
            return;
        }
        if is_mapped(layout.size()) && layout.align() <= PAGE {
            // SAFETY: it is a whole mapping that `alloc` made.
            unsafe { libc::munmap(block.cast(), layout.size()) };
        } else if pieces::is_piece(layout.size(), layout.align()) {
            // SAFETY: it is such a piece, and nobody uses it any more.
            unsafe { pieces::give(block, layout.size(), layout.align()) };
        } else {
            // SAFETY: the real allocator returned it.
            unsafe { real::free(block.cast()) };
        }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if is_mapped(layout.size()) && is_mapped(size) && layout.align() <= PAGE && !is_ending() {
            // SAFETY: it is a whole mapping that `alloc` made.
            let at = unsafe { libc::mremap(block.cast(), layout.size(), size, libc::MREMAP_MAYMOVE) };
            return if at == libc::MAP_FAILED { ptr::null_mut() } else { at.cast() };
        }
        let Ok(new) = Layout::from_size_align(size, layout.align()) else { return ptr::null_mut() };
        // SAFETY: the caller guarantees that the layout is not empty.
        let moved = unsafe { self.alloc(new) };
        if !moved.is_null() {
            // SAFETY: both pieces have at least this many bytes; the old one is not used afterwards.
            unsafe {
                ptr::copy_nonoverlapping(block, moved, layout.size().min(size));
                self.dealloc(block, layout);
            }
        }
        moved
    }
}
