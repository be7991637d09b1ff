//! The memory of a simulated device, and its addresses without memory.

use std::collections::BTreeMap;

use planlab_dsa::Bytes;

use crate::cuda::driver::interface::{DriverError, GRANULE, WORD};

/// A 16-byte word of memory.
pub(super) type Word = [u64; 2];

/// The memory, and the addresses without memory.
#[derive(Default)]
pub(super) struct Memory {
    pub(super) capacity: u64,
    pub(super) held: u64,
    pub(super) next: u64,
    /// Memory by its base.
    pub(super) blocks: BTreeMap<u64, Vec<Word>>,
    /// Base and end of addresses that may be mapped.
    pub(super) reserved: BTreeMap<u64, u64>,
}

impl Memory {
    pub(super) fn new_range(&mut self, size: u64) -> u64 {
        // One granule is left free, so that no access runs from one block into the next.
        let base = self.next;
        self.next = base + size.next_multiple_of(GRANULE) + GRANULE;
        base
    }

    pub(super) fn take_bytes(&mut self, base: u64, size: u64) -> Result<(), DriverError> {
        let refused = DriverError::OutOfMemory { size: Bytes::new(size) };
        let physical = size.checked_next_multiple_of(GRANULE).ok_or(refused.clone())?;
        if physical == 0 || physical > self.capacity - self.held {
            return Err(refused);
        }
        let words = usize::try_from(size.div_ceil(WORD)).map_err(|_| refused)?;
        self.held += physical;
        self.blocks.insert(base, vec![[0; 2]; words]);
        Ok(())
    }

    pub(super) fn acquire(&mut self, size: u64) -> Result<u64, DriverError> {
        if size > self.capacity {
            return Err(DriverError::OutOfMemory { size: Bytes::new(size) });
        }
        let base = self.next;
        self.take_bytes(base, size)?;
        Ok(self.new_range(size))
    }

    pub(super) fn release(&mut self, base: u64, call: &'static str) -> Result<(), DriverError> {
        let block = self.blocks.remove(&base);
        let words =
            block.ok_or_else(|| DriverError::from_failure(call, format!("nothing begins at {base}")))?;
        self.held -= (words.len() as u64 * WORD).next_multiple_of(GRANULE);
        Ok(())
    }

    /// Walks over words in pieces; `act` receives the index of a piece's first word, and the piece.
    pub(super) fn walk_words(
        &mut self,
        at: u64,
        words: u64,
        mut act: impl FnMut(u64, &mut [Word]),
    ) -> Result<(), String> {
        let mut done = 0;
        while done < words {
            let here = at + done * WORD;
            let stray = || format!("an illegal access at address {here}");
            let (base, block) = self.blocks.range_mut(..=here).next_back().ok_or_else(stray)?;
            let first = (here - base) / WORD;
            let count = (block.len() as u64).saturating_sub(first).min(words - done);
            if count == 0 || !(here - base).is_multiple_of(WORD) {
                return Err(stray());
            }
            #[expect(clippy::cast_possible_truncation, reason = "less than the length of a vector")]
            let piece = &mut block[first as usize..(first + count) as usize];
            act(done, piece);
            done += count;
        }
        Ok(())
    }
}
