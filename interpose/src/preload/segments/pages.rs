//! The pages of segments: which hold memory, huge ones, zeroed ones, and their way back to the kernel.
#![allow(unsafe_code, reason = "advice to the kernel on mappings")]

use std::ptr;

use super::check::{fill, fill_free};
use crate::plans::Segment;
use crate::plans::pages::PAGE;
use crate::preload::settings::settings;
use crate::preload::system::{is_frozen, keeping_errno, word};

/// Segments are multiples of a huge page, in bytes.
pub(super) const UNIT: u64 = 2 << 20;
/// Smaller segments get no huge pages.
const LEAST_HUGE: u64 = 8 * UNIT;
/// Zeroed blocks with fewer whole pages are written, in bytes.
const LEAST_DISCARDED: u64 = 1 << 20;
/// The pages that are looked at to estimate how much memory a block holds; looking at all takes a tenth of writing to them.
const SAMPLES: u64 = 4;
/// If more memory than this would have to be written with zeros, the kernel provides new pages instead: glibc maps larger
/// blocks each time, too. Bytes.
const MOST_WRITTEN: u64 = 32 << 20;

/// Advises the kernel on whole pages of segments; whether it took the advice.
///
/// # Safety
///
/// If the advice loses the contents, nobody needs them.
unsafe fn advise(address: u64, bytes: u64, advice: i32) -> bool {
    let memory = ptr::with_exposed_provenance_mut(word(address));
    // SAFETY: as the caller promises.
    unsafe { libc::madvise(memory, word(bytes), advice) == 0 }
}

/// An entry for each page from an address on, which is odd if the page holds memory. Pages that were swapped out count
/// as if they held none.
pub(crate) fn resident_pages(address: u64, bytes: u64) -> Option<Vec<u8>> {
    let mut pages = vec![0; word(bytes.div_ceil(PAGE))];
    let memory = ptr::with_exposed_provenance_mut(word(address));
    // SAFETY: it writes an entry for each page of the range.
    unsafe { libc::mincore(memory, word(bytes), pages.as_mut_ptr()) == 0 }.then_some(pages)
}

/// Whether a page holds memory.
fn is_resident(page: u64) -> bool {
    let (memory, mut state) = (ptr::with_exposed_provenance_mut(word(page)), 0);
    // SAFETY: it writes an entry for the page.
    unsafe { libc::mincore(memory, word(PAGE), &raw mut state) == 0 && state & 1 == 1 }
}

/// Takes huge pages for those units of a segment that a round wrote to as a whole, and notes which have them. Their
/// pages are given back; nothing may be live in the segment.
pub(crate) fn use_huge_pages(segment: Segment, pages: &[u8], huge: &mut Vec<bool>) {
    if segment.len < LEAST_HUGE {
        return;
    }
    let units = pages.chunks_exact(word(UNIT / PAGE));
    huge.resize(units.len().max(huge.len()), false);
    for (unit, (pages, is_huge)) in (0..).zip(units.zip(huge)) {
        let held = pages.iter().filter(|&page| page & 1 == 1).count();
        if *is_huge || held < pages.len() - pages.len() / 8 {
            continue;
        }
        let at = segment.base + unit * UNIT;
        // SAFETY: nothing is live in the segment.
        *is_huge = unsafe { advise(at, UNIT, libc::MADV_HUGEPAGE) && advise(at, UNIT, libc::MADV_DONTNEED) };
    }
}

/// Lets a segment have small pages again. Keeps all contents.
pub(super) fn use_small_pages(segment: Segment) {
    if segment.len >= LEAST_HUGE {
        // SAFETY: this advice keeps all contents.
        unsafe { advise(segment.base, segment.len, libc::MADV_NOHUGEPAGE) };
    }
}

/// Writes zeros to a planned block of this many bytes, or lets the kernel provide new pages as the program writes to
/// them: if it wrote to few the last time, or if there are many.
pub(crate) fn clear(address: u64, bytes: u64) {
    let (begin, end) = (address.next_multiple_of(PAGE), (address + bytes) / PAGE * PAGE);
    if end < begin + LEAST_DISCARDED || !is_discarded(begin, end - begin) {
        // SAFETY: the caller's plan has this many bytes there, and nobody else uses them.
        return unsafe { fill(address, bytes, 0) };
    }
    // SAFETY: as above; these are the parts of the block outside of the whole pages.
    unsafe {
        fill(address, begin - address, 0);
        fill(end, address + bytes - end, 0);
    }
}

/// Discards the contents of whole pages if that is cheaper than writing zeros; whether it did. In a frozen process it is
/// not possible.
fn is_discarded(begin: u64, bytes: u64) -> bool {
    !is_frozen()
        && keeping_errno(|| {
            let samples = (0..SAMPLES).map(|sample| begin + bytes / SAMPLES * sample / PAGE * PAGE);
            let held = bytes / SAMPLES * samples.filter(|&page| is_resident(page)).count() as u64;
            // Pages that were only read count as if they held memory, so huge pages could be much larger than what is used.
            // SAFETY: the block is new, and needs no contents.
            (held < bytes / 2 || held > MOST_WRITTEN)
                && unsafe {
                    advise(begin, bytes, libc::MADV_NOHUGEPAGE);
                    advise(begin, bytes, libc::MADV_DONTNEED)
                }
        })
}

/// Gives the pages of a segment back. Nothing may be live in it.
pub(crate) fn rest(segment: Segment) {
    // SAFETY: nothing is live in the segment.
    unsafe { advise(segment.base, segment.len, libc::MADV_DONTNEED) };
    if settings().is_some_and(|settings| settings.checks) {
        fill_free(segment);
    }
}
