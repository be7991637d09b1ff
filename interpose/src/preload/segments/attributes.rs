//! Remembers which pages of planned blocks the program has given attributes that outlive the block.
//!
//! A block of the C library that has pages of its own goes back to the kernel when it is freed, and its pages'
//! attributes with it. Planned memory stays. So what the program does to its pages is marked here, a bit for each, and
//! undone when the block is freed.
#![allow(unsafe_code, reason = "mappings")]

use std::ffi::c_void;
use std::ptr;

use super::entry::Entry;
use super::table;
use crate::plans::pages::PAGE;
use crate::preload::system::kernel::{MMAP, MPROTECT, next};
use crate::preload::system::{keeping_errno, word};

/// Marks the pages of segments among these bytes.
pub(crate) fn mark(begin: u64, bytes: u64) {
    let end = begin.saturating_add(bytes);
    for entry in table::among(begin, end) {
        let segment = entry.segment();
        let first = begin.max(segment.base) - segment.base;
        let last = end.min(segment.base + segment.len) - segment.base;
        entry.marks.set(segment, first / PAGE..last.div_ceil(PAGE));
    }
}

/// Whether a page of a block is marked.
#[cold]
pub(crate) fn has_any(entry: &Entry, address: u64) -> bool {
    entry.marks.are_there() && pages(entry, address).any(|page| entry.marks.has(page))
}

/// Undoes what was done to the pages of a block that is being freed.
#[inline]
pub(crate) fn undo(entry: &Entry, address: u64) {
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
            entry.marks.note_replaced();
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
    next!(MMAP(page, word(PAGE), libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0));
}

/// Restores a page that another block uses, too.
fn restore(at: u64) {
    let page: *mut c_void = ptr::with_exposed_provenance_mut(word(at));
    // SAFETY: the page is mapped by the library, and keeps its contents.
    next!(MPROTECT(page, word(PAGE), libc::PROT_READ | libc::PROT_WRITE));
    // SAFETY: as above.
    unsafe {
        for advice in [libc::MADV_DOFORK, libc::MADV_KEEPONFORK, libc::MADV_DODUMP, libc::MADV_UNMERGEABLE] {
            libc::madvise(page, word(PAGE), advice);
        }
        libc::munlock(page, word(PAGE));
    }
}
