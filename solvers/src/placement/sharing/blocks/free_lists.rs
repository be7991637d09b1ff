//! Blocks, and which of them are free.

use std::collections::BTreeSet;

/// Blocks by number, and for each colour the free ones by size.
#[derive(Clone, Debug)]
pub(super) struct Blocks {
    /// The size of each block in bytes.
    pub(super) sizes: Vec<u64>,
    /// The free blocks of each colour: size, turn of the release, number.
    free: Vec<BTreeSet<(u64, u64, u32)>>,
    turn: u64,
}

impl Blocks {
    /// No blocks, for `colours` colours.
    pub(super) fn new(colours: usize) -> Self {
        Self { sizes: Vec::new(), free: vec![BTreeSet::new(); colours], turn: 0 }
    }

    /// A block of at least `bytes`. Of the free blocks of a colour: the smallest that holds them, up to
    /// `most` bytes; else the largest of at least `least` bytes, which grows; else a new block. Of equal blocks the
    /// first rule takes the one released first, and the second rule the one released last.
    pub(super) fn request_block(&mut self, colour: u32, bytes: u64, (least, most): (u64, u64)) -> u32 {
        let free = &mut self.free[colour as usize];
        let holds = free.range((bytes, 0, 0)..).next().filter(|found| found.0 <= most);
        let grows = || free.range((least, 0, 0)..(bytes.max(least), 0, 0)).next_back();
        let Some(found) = holds.or_else(grows).copied() else { return self.open_block(bytes) };
        free.remove(&found);
        let size = &mut self.sizes[found.2 as usize];
        *size = bytes.max(*size);
        found.2
    }

    pub(super) fn open_block(&mut self, bytes: u64) -> u32 {
        self.sizes.push(bytes);
        u32::try_from(self.sizes.len() - 1).expect("no more blocks than entries")
    }

    /// Frees a block at a node of a colour.
    pub(super) fn release_block(&mut self, colour: u32, block: u32) {
        self.turn += 1;
        self.free[colour as usize].insert((self.sizes[block as usize], self.turn, block));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smallest_that_holds_is_taken_and_else_the_largest_grows() {
        let mut blocks = Blocks::new(2);
        for size in [4, 8, 8, 16, 8] {
            blocks.open_block(size);
        }
        (0..5).for_each(|block| blocks.release_block(0, block));
        assert_eq!(blocks.request_block(1, 8, (0, 99)), 5, "no block of this colour");
        assert_eq!(blocks.request_block(0, 7, (1, 99)), 1, "of one size, the one released first");
        assert_eq!(blocks.request_block(0, 9, (1, 15)), 4, "16 is too large; of 8, the one released last");
        assert_eq!(blocks.request_block(0, 40, (17, 99)), 6, "all too small");
        assert_eq!(blocks.request_block(0, 40, (16, 99)), 3);
        assert_eq!(blocks.sizes, [4, 8, 8, 40, 9, 8, 40]);
    }
}
