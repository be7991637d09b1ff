//! Small pieces of the library's own memory, on pages of its own.
//!
//! The real allocator would put them beside blocks of the program, which may give the pages of its blocks any attribute:
//! that the child of a fork does not get them, say. Pieces are cut from mapped chunks and kept by size. There is no
//! lock: a list's head holds an address and a count of changes, so that a head that was taken and put back in between
//! is seen to have changed.
#![allow(unsafe_code, reason = "an allocator")]

use std::ptr;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use crate::preload::system::{PAGE, map_aligned, unmap, word};

/// Pieces are smaller than this, rounding included.
pub(super) const MOST: usize = 64 << 10;
const LEAST: usize = 16;
/// Sizes between two powers of two.
const STEPS: usize = 4;
const CHUNK: usize = 128 << 10;

const SIZES: usize = STEPS * (MOST.ilog2() - LEAST.ilog2()) as usize + 1;
static FREE: [AtomicU64; SIZES] = [const { AtomicU64::new(0) }; SIZES];
/// The address of the next piece; its chunk ends at the next multiple of the size of a chunk.
static NEXT: AtomicUsize = AtomicUsize::new(0);

const ADDRESS_BITS: u32 = 48;
const ADDRESS: u64 = (1 << ADDRESS_BITS) - 1;

/// The number of the smallest size that holds this many bytes, and that size.
fn class(size: usize) -> (usize, usize) {
    let size = size.max(LEAST);
    let power = (size - 1).max(LEAST - 1).ilog2();
    let step = ((1_usize << power) / STEPS).max(LEAST);
    let rounded = size.next_multiple_of(step);
    let at = STEPS * (rounded.ilog2() - LEAST.ilog2()) as usize;
    let above = (rounded - (1 << rounded.ilog2())) / ((1 << rounded.ilog2()) / STEPS).max(1);
    (at + above, rounded)
}

/// Whether pieces of this size and alignment exist.
pub(super) const fn is_piece(size: usize, align: usize) -> bool {
    size < MOST && align <= PAGE
}

/// The size that a piece really has. Greater alignments need powers of two, because a piece lies at a multiple of its
/// size from the begin of a chunk.
fn held(size: usize, align: usize) -> usize {
    if align <= LEAST { size } else { size.max(align).next_power_of_two() }
}

/// A piece; null if there is no memory.
pub(super) fn take(size: usize, align: usize) -> *mut u8 {
    let (at, rounded) = class(held(size, align));
    let piece = pop(&FREE[at]);
    if piece.is_null() { cut(rounded, align) } else { piece }
}

/// Gives a piece of [`take`] back.
///
/// # Safety
///
/// Nobody uses it any more.
pub(super) unsafe fn give(piece: *mut u8, size: usize, align: usize) {
    let head = &FREE[class(held(size, align)).0];
    let address = piece.expose_provenance() as u64;
    head.update(Ordering::Release, Ordering::Relaxed, |before| {
        // SAFETY: the piece is free, and has room and alignment for a word.
        unsafe { &*piece.cast::<AtomicU64>() }.store(before & ADDRESS, Ordering::Relaxed);
        address | count(before)
    });
}

/// The count of changes of the next head.
const fn count(head: u64) -> u64 {
    (head >> ADDRESS_BITS).wrapping_add(1) << ADDRESS_BITS
}

fn pop(head: &AtomicU64) -> *mut u8 {
    let piece_at = |head: u64| ptr::with_exposed_provenance_mut::<u8>(word(head & ADDRESS));
    let taken = head.try_update(Ordering::Acquire, Ordering::Acquire, |before| {
        if before & ADDRESS == 0 {
            return None;
        }
        // SAFETY: chunks are never unmapped. If another thread has taken the piece meanwhile, the word may be anything,
        // and the exchange fails.
        let next = unsafe { &*piece_at(before).cast::<AtomicU64>() }.load(Ordering::Relaxed);
        Some(next & ADDRESS | count(before))
    });
    taken.map_or(ptr::null_mut(), piece_at)
}

/// Cuts a piece from a chunk.
fn cut(size: usize, align: usize) -> *mut u8 {
    let mut next = NEXT.load(Ordering::Relaxed);
    loop {
        let at = next.next_multiple_of(align.max(LEAST));
        // The address 0 and an exact end have no chunk.
        let end = next.next_multiple_of(CHUNK);
        if !next.is_multiple_of(CHUNK) && at + size <= end {
            match NEXT.compare_exchange_weak(next, at + size, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return ptr::with_exposed_provenance_mut(at),
                Err(now) => next = now,
            }
            continue;
        }
        let chunk = map_aligned(CHUNK, CHUNK);
        if chunk == 0 {
            return ptr::null_mut();
        }
        match NEXT.compare_exchange(next, chunk + size, Ordering::Relaxed, Ordering::Relaxed) {
            Ok(_) => return ptr::with_exposed_provenance_mut(chunk),
            Err(now) => {
                // SAFETY: nobody knows this chunk.
                unsafe { unmap(chunk, chunk + CHUNK) };
                next = now;
            }
        }
    }
}
