//! `PLANLAB_CHECK=1`: every planned block is looked at.
//!
//! Free memory of a segment is filled with a pattern. A block that is handed out may overlap no live one, and its bytes must
//! hold the pattern still: else somebody wrote where nothing was live.
#![allow(unsafe_code, reason = "memory of segments")]

use std::collections::BTreeMap;
use std::ptr;

use super::segments::word;
use crate::course::Segment;

/// What free memory holds.
const FREE: u8 = 0xdd;
/// What a block holds when it is handed out.
const FRESH: u8 = 0xa5;

/// Fills a segment in which nothing is live.
pub(super) fn fill_free(segment: Segment) {
    // SAFETY: it is mapped, and nothing is live in it.
    unsafe { fill(segment.base, segment.len, FREE) };
}

/// # Safety
///
/// The bytes are memory that nobody else uses.
unsafe fn fill(address: u64, bytes: u64, with: u8) {
    // SAFETY: as the caller promises.
    unsafe { ptr::write_bytes(ptr::with_exposed_provenance_mut::<u8>(word(address)), with, word(bytes)) };
}

/// The live planned blocks of a thread: their bytes, by address.
#[derive(Debug, Default)]
pub(super) struct Checker {
    live: BTreeMap<u64, u64>,
}

impl Checker {
    /// A block is handed out. Ends the process where it should not be.
    pub(super) fn claim(&mut self, address: u64, bytes: u64) {
        let below = self.live.range(..=address).next_back().map_or(0, |(start, bytes)| start + bytes);
        let above = self.live.range(address..).next().map_or(u64::MAX, |(start, _)| *start);
        if below > address || address + bytes > above {
            fail("a planned block overlaps a live one", address, bytes);
        }
        // SAFETY: the plan's place for a block of so many bytes, which nobody has yet.
        let block = unsafe {
            std::slice::from_raw_parts(ptr::with_exposed_provenance::<u8>(word(address)), word(bytes))
        };
        if let Some(at) = block.iter().position(|&byte| byte != FREE) {
            fail("memory was written to after it was freed", address + at as u64, bytes);
        }
        // SAFETY: as before.
        unsafe { fill(address, bytes, FRESH) };
        self.live.insert(address, bytes);
    }

    /// A block is freed. Ends the process where none is live there.
    pub(super) fn release(&mut self, address: u64) {
        match self.live.remove(&address) {
            // SAFETY: it was the program's, which has freed it.
            Some(bytes) => unsafe { fill(address, bytes, FREE) },
            None => fail("a free of planned memory at which no block is live", address, 0),
        }
    }
}

/// Says what is wrong on stderr, and aborts.
fn fail(what: &str, address: u64, bytes: u64) -> ! {
    say(&format!("planlab: {what}: address {address:#x}, a block of {bytes} bytes\n"));
    std::process::abort()
}

/// Writes to stderr.
pub(super) fn say(text: &str) {
    // SAFETY: the text has so many bytes.
    unsafe { libc::write(libc::STDERR_FILENO, text.as_ptr().cast(), text.len()) };
}
