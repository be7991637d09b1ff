//! The marked pages of a segment: a bit for each.
#![allow(unsafe_code, reason = "mappings, and bits in one")]

use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering};

use crate::plans::Segment;
use crate::plans::pages::PAGE;
use crate::preload::system::{map, word};

/// The marks of a segment.
pub(crate) struct Marks {
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
    pub(super) fn are_there(&self) -> bool {
        !self.bits.load(Ordering::Acquire).is_null()
    }

    /// Records that a page was replaced.
    pub(super) fn note_replaced(&self) {
        self.are_replaced.store(true, Ordering::Relaxed);
    }

    /// Whether pages were replaced since the last call.
    pub(crate) fn take_replaced(&self) -> bool {
        self.are_replaced.swap(false, Ordering::Relaxed)
    }

    /// The word with the bit of a page, and the bit; `None` if there are no marks.
    fn bit(&self, page: u64) -> Option<(&AtomicU64, u64)> {
        let bits = self.bits.load(Ordering::Acquire);
        // SAFETY: callers name pages of the segment, for which there are bits.
        (!bits.is_null()).then(|| (unsafe { &*bits.add(word(page / 64)) }, 1 << (page % 64)))
    }

    pub(super) fn set(&self, segment: Segment, pages: std::ops::Range<u64>) {
        if !self.are_there() {
            let bytes = word(segment.len / PAGE / 8 + 8);
            let bits = map(bytes, libc::MAP_NORESERVE);
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
    pub(super) fn take(&self, page: u64) -> bool {
        self.bit(page).is_some_and(|(bits, bit)| bits.fetch_and(!bit, Ordering::AcqRel) & bit != 0)
    }

    pub(super) fn has(&self, page: u64) -> bool {
        self.bit(page).is_some_and(|(bits, bit)| bits.load(Ordering::Acquire) & bit != 0)
    }
}
