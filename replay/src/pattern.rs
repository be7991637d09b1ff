//! The pattern that is written into a block and checked before the block is freed.
//!
//! Word i of a block is `key + i * STRIDE`. Each block has its own key, so a word that another block wrote, at
//! whatever place, differs except by a chance of 1 in 2^64.
//!
//! All functions take raw addresses of memory that their caller owns. Nothing in Rust refers to that memory, so two
//! blocks that overlap produce wrong bytes and no worse.
#![allow(unsafe_code, reason = "blocks are raw memory")]

use crate::address::pointer_to;

/// Bytes of a page.
pub(crate) const PAGE: u64 = 4096;
/// Bytes of a word.
const WORD: u64 = 8;
/// Odd, so that the words of a block differ.
const STRIDE: u64 = 0x9E37_79B9_7F4A_7C15;

/// The key of block `number`.
pub(crate) const fn block_key(number: u64) -> u64 {
    let mixed = (number ^ (number >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ (mixed >> 31)
}

const fn pattern_word(key: u64, index: u64) -> u64 {
    key.wrapping_add(index.wrapping_mul(STRIDE))
}

/// Writes every byte of a block.
///
/// # Safety
///
/// The `size` bytes at `address` may be written, and no Rust value lies there.
pub(crate) unsafe fn fill_block(address: u64, size: u64, key: u64) {
    let words = size / WORD;
    for index in 0..words {
        // SAFETY: the word lies inside the block, which the caller may write; an unaligned write needs no alignment.
        unsafe { pointer_to::<u64>(address + index * WORD).write_unaligned(pattern_word(key, index)) };
    }
    let rest = pattern_word(key, words).to_le_bytes();
    for (at, byte) in (words * WORD..size).zip(rest) {
        // SAFETY: as above; `at` is below `size`.
        unsafe { pointer_to::<u8>(address + at).write(byte) };
    }
}

/// Checks what [`fill_block`] wrote; returns the distance of the first wrong word from the block's begin, in bytes.
///
/// # Safety
///
/// The `size` bytes at `address` may be read and were written before, and no Rust value lies there.
pub(crate) unsafe fn first_wrong(address: u64, size: u64, key: u64) -> Option<u64> {
    let words = size / WORD;
    for index in 0..words {
        // SAFETY: the word lies inside the block, which the caller may read; an unaligned read needs no alignment.
        let found = unsafe { pointer_to::<u64>(address + index * WORD).read_unaligned() };
        if found != pattern_word(key, index) {
            return Some(index * WORD);
        }
    }
    let rest = pattern_word(key, words).to_le_bytes();
    for (at, byte) in (words * WORD..size).zip(rest) {
        // SAFETY: as above; `at` is below `size`.
        if unsafe { pointer_to::<u8>(address + at).read() } != byte {
            return Some(at);
        }
    }
    None
}

/// Writes one byte of each page that the block overlaps.
///
/// # Safety
///
/// As [`fill_block`].
pub(crate) unsafe fn touch_pages(address: u64, size: u64) {
    let end = address + size;
    let mut at = address;
    while at < end {
        // SAFETY: `at` lies inside the block, which the caller may write. Volatile, because nobody reads it.
        unsafe { pointer_to::<u8>(at).write_volatile(1) };
        at = (at / PAGE + 1) * PAGE;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Memory with exposed addresses.
    fn memory(bytes: usize) -> (Vec<u8>, u64) {
        let mut memory = vec![0_u8; bytes];
        let address = memory.as_mut_ptr().expose_provenance() as u64;
        (memory, address)
    }

    #[test]
    fn what_was_written_is_found_at_every_size_and_place() {
        let (memory, base) = memory(100);
        for (at, size) in [(0, 0), (0, 1), (3, 7), (1, 8), (5, 9), (0, 64), (13, 71)] {
            // SAFETY: all lie inside the 100 bytes, which live to the end of the test.
            unsafe {
                fill_block(base + at, size, block_key(7));
                assert_eq!(first_wrong(base + at, size, block_key(7)), None, "{at} {size}");
            }
        }
        drop(memory);
    }

    #[test]
    fn every_single_wrong_byte_is_found() {
        let (memory, base) = memory(29);
        for at in 0..29 {
            // SAFETY: all lie inside the 29 bytes, which live to the end of the test.
            unsafe {
                fill_block(base, 29, block_key(1));
                let byte = pointer_to::<u8>(base + at);
                byte.write(byte.read() ^ 1);
                assert!(first_wrong(base, 29, block_key(1)).is_some_and(|wrong| wrong <= at), "{at}");
            }
        }
        drop(memory);
    }

    #[test]
    fn a_block_over_another_is_found_at_every_shift() {
        let (memory, base) = memory(96);
        for shift in 0..64 {
            // SAFETY: both blocks lie inside the 96 bytes, which live to the end of the test.
            unsafe {
                fill_block(base, 64, block_key(1));
                fill_block(base + shift, 32, block_key(2));
                assert!(first_wrong(base, 64, block_key(1)).is_some(), "{shift}");
                assert_eq!(first_wrong(base + shift, 32, block_key(2)), None, "{shift}");
            }
        }
        drop(memory);
    }

    #[test]
    fn one_byte_of_each_page_is_touched() {
        let (memory, base) = memory(4 * 4096);
        // SAFETY: the block lies inside the memory, which lives to the end of the test.
        let touched: Vec<u64> = unsafe {
            touch_pages(base + 5, 3 * 4096);
            (0..4 * 4096).filter(|at| pointer_to::<u8>(base + at).read() == 1).collect()
        };
        assert!((3..=4).contains(&touched.len()) && touched[0] == 5, "{touched:?}");
        drop(memory);
    }
}
