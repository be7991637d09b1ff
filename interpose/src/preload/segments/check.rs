//! Checks every planned block under `PLANLAB_CHECK=1`.
//!
//! Free memory of a segment is filled with a pattern. A block that is handed out may overlap no live block, and its
//! bytes must still hold the pattern. Otherwise the program wrote to free memory.
#![allow(unsafe_code, reason = "memory of segments")]

use std::collections::BTreeMap;
use std::ptr;

use crate::plans::Segment;
use crate::preload::system::{say, word};

/// The byte that fills free memory.
const FREE: u8 = 0xdd;
/// The byte that fills a new block.
const FRESH: u8 = 0xa5;

/// Fills a segment in which nothing is live.
pub(crate) fn fill_free(segment: Segment) {
    // SAFETY: the segment is mapped, and nothing is live in it.
    unsafe { fill(segment.base, segment.len, FREE) };
}

/// Fills memory with a byte.
///
/// # Safety
///
/// The bytes are memory that nobody else uses.
pub(super) unsafe fn fill(address: u64, bytes: u64, with: u8) {
    // SAFETY: as the caller promises.
    unsafe { ptr::write_bytes(ptr::with_exposed_provenance_mut::<u8>(word(address)), with, word(bytes)) };
}

/// The live planned blocks of a thread: their bytes, by address.
#[derive(Debug, Default)]
pub(crate) struct Checker {
    live: BTreeMap<u64, u64>,
}

impl Checker {
    /// Checks a block that is handed out; aborts if it is wrong.
    pub(crate) fn claim(&mut self, address: u64, bytes: u64) {
        let below = self.live.range(..=address).next_back().map_or(0, |(start, bytes)| start + bytes);
        let above = self.live.range(address..).next().map_or(u64::MAX, |(start, _)| *start);
        if below > address || address + bytes > above {
            fail("a planned block overlaps a live one", address, bytes);
        }
        // SAFETY: these are the plan's bytes for this block, and nobody has them yet.
        let block = unsafe {
            std::slice::from_raw_parts(ptr::with_exposed_provenance::<u8>(word(address)), word(bytes))
        };
        if let Some(at) = block.iter().position(|&byte| byte != FREE) {
            fail("memory was written to after it was freed", address + at as u64, bytes);
        }
        // SAFETY: as above.
        unsafe { fill(address, bytes, FRESH) };
        self.live.insert(address, bytes);
    }

    /// Checks a block that is freed; aborts if no block is live there.
    pub(crate) fn release(&mut self, address: u64) {
        match self.live.remove(&address) {
            // SAFETY: the block was the program's, which has just freed it.
            Some(bytes) => unsafe { fill(address, bytes, FREE) },
            None => fail("a free of planned memory at which no block is live", address, 0),
        }
    }
}

/// Reports an error on stderr, and aborts.
fn fail(what: &str, address: u64, bytes: u64) -> ! {
    say(&format!("planlab: {what}: address {address:#x}, a block of {bytes} bytes\n"));
    std::process::abort()
}
