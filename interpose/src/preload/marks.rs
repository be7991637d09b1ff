//! Remembers which pages of planned blocks the program has given attributes that outlive the block.
//!
//! A block of the C library that has pages of its own goes back to the kernel when it is freed, and its pages'
//! attributes with it. Planned memory stays. So what the program does to its pages is marked here, a bit for each, and
//! undone when the block is freed.
#![allow(unsafe_code, reason = "mappings, and bits in one")]

use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering};

use super::process::keeping_errno;
use super::segments::{self, Entry, word};
use super::{heap, kernel};
use crate::course::Segment;
use crate::machine::PAGE;

/// The marks of a segment.
pub(super) struct Marks {
    /// A bit for each page, once there is a mark; never unmapped.
    bits: AtomicPtr<AtomicU64>,
    /// Whether a page was replaced, which has no huge pages from then on.
    are_replaced: AtomicBool,
}

impl Marks {
    pub(super) const fn new() -> Self {
        Self { bits: AtomicPtr::new(ptr::null_mut()), are_replaced: AtomicBool::new(false) }
    }

    /// Whether any page was ever marked.
    #[inline]
    fn are_there(&self) -> bool {
        !self.bits.load(Ordering::Acquire).is_null()
    }

    /// Whether pages were replaced since the last call.
    pub(super) fn take_replaced(&self) -> bool {
        self.are_replaced.swap(false, Ordering::Relaxed)
    }

    /// The word with the bit of a page, and the bit; `None` if there are no marks.
    fn bit(&self, page: u64) -> Option<(&AtomicU64, u64)> {
        let bits = self.bits.load(Ordering::Acquire);
        // SAFETY: callers name pages of the segment, for which there are bits.
        (!bits.is_null()).then(|| (unsafe { &*bits.add(word(page / 64)) }, 1 << (page % 64)))
    }

    fn set(&self, segment: Segment, pages: std::ops::Range<u64>) {
        if !self.are_there() {
            let bytes = word(segment.len / PAGE / 8 + 8);
            let bits = heap::map(bytes, libc::MAP_NORESERVE);
            let put =
                self.bits.compare_exchange(ptr::null_mut(), bits.cast(), Ordering::AcqRel, Ordering::Relaxed);
            if put.is_err() {
                // SAFETY: another thread was first, and nobody knows this mapping.
                unsafe { libc::munmap(bits.cast(), bytes) };
            }
        }
        for (bits, bit) in pages.filter_map(|page| self.bit(page)) {
            bits.fetch_or(bit, Ordering::AcqRel);
        }
    }

    /// Removes the mark of a page; whether it had one.
    fn take(&self, page: u64) -> bool {
        self.bit(page).is_some_and(|(bits, bit)| bits.fetch_and(!bit, Ordering::AcqRel) & bit != 0)
    }

    fn has(&self, page: u64) -> bool {
        self.bit(page).is_some_and(|(bits, bit)| bits.load(Ordering::Acquire) & bit != 0)
    }
}

/// Marks the pages of segments among these bytes.
pub(super) fn mark(begin: u64, bytes: u64) {
    let end = begin.saturating_add(bytes);
    for entry in segments::among(begin, end) {
        let segment = entry.segment();
        let first = begin.max(segment.base) - segment.base;
        let last = end.min(segment.base + segment.len) - segment.base;
        entry.marks.set(segment, first / PAGE..last.div_ceil(PAGE));
    }
}

/// Whether a page of a block is marked.
pub(super) fn has_any(entry: &Entry, address: u64) -> bool {
    entry.marks.are_there() && pages(entry, address).any(|page| entry.marks.has(page))
}

/// Undoes what was done to the pages of a block that is being freed.
#[inline]
pub(super) fn undo(entry: &Entry, address: u64) {
    if entry.marks.are_there() {
        keeping_errno(|| undo_marked(entry, address));
    }
}

fn pages(entry: &Entry, address: u64) -> std::ops::Range<u64> {
    let at = address - entry.segment().base;
    at / PAGE..(at + entry.size_of(address)).div_ceil(PAGE)
}

#[cold]
fn undo_marked(entry: &Entry, address: u64) {
    let segment = entry.segment();
    let (begin, end) = (address, address + entry.size_of(address));
    for page in pages(entry, address).filter(|&page| entry.marks.take(page)) {
        let at = segment.base + page * PAGE;
        if begin <= at && at + PAGE <= end {
            replace(at);
            entry.marks.are_replaced.store(true, Ordering::Relaxed);
        } else {
            restore(at);
        }
    }
}

/// Replaces a page by a new one.
fn replace(at: u64) {
    let page = ptr::with_exposed_provenance_mut(word(at));
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | libc::MAP_FIXED;
    // SAFETY: the page belongs to a block that is being freed, so nobody needs its contents.
    unsafe { kernel::map_unmarked(page, word(PAGE), libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0) };
}

/// Restores a page that another block uses, too.
fn restore(at: u64) {
    let page: *mut std::ffi::c_void = ptr::with_exposed_provenance_mut(word(at));
    // SAFETY: the page is mapped by the library, and keeps its contents.
    unsafe {
        kernel::protect_unmarked(page, word(PAGE), libc::PROT_READ | libc::PROT_WRITE);
        for advice in [libc::MADV_DOFORK, libc::MADV_KEEPONFORK, libc::MADV_DODUMP, libc::MADV_UNMERGEABLE] {
            libc::madvise(page, word(PAGE), advice);
        }
        libc::munlock(page, word(PAGE));
    }
}
