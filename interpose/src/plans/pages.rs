//! Which pages of a segment hold memory, and which blocks spread over more of them from round to round.
//!
//! A program may request a large block and write to little of it. On the pages of a plan it costs what it writes to,
//! as it would elsewhere. But if it writes to other places each time, the plan's pages would hold all of these in the
//! end, whereas the real allocator begins with fresh pages. Such a block leaves the plan.

/// The size of a page in bytes.
pub(crate) const PAGE: u64 = 4096;
/// Smaller blocks do not leave a plan because of their pages, in bytes.
pub(crate) const LEAST_SPARSE: u64 = 256 << 10;
/// A block may grow by a quarter and by this many bytes before it counts as spreading.
const SLACK: u64 = 64 << 10;

/// Which pages of a segment hold memory.
#[derive(Clone, Debug, Default)]
pub struct Pages(Vec<u8>);

impl Pages {
    /// `pages`: an entry for each page, odd if it holds memory (as `mincore` writes them).
    #[must_use]
    pub fn new(pages: Vec<u8>) -> Self {
        Self(pages)
    }

    /// The bytes of memory on the pages between two offsets of the segment.
    pub(crate) fn held_bytes(&self, from: u64, to: u64) -> u64 {
        let [from, to] =
            [from / PAGE, to.div_ceil(PAGE)].map(|page| usize::try_from(page).unwrap_or(usize::MAX));
        let pages = self.0.get(from..to.min(self.0.len())).unwrap_or_default();
        PAGE * pages.iter().filter(|&page| page & 1 == 1).count() as u64
    }
}

/// A large block of a plan.
pub(crate) struct LargeBlock {
    /// The index of its request in the round.
    pub(crate) request: usize,
    /// Its offsets in the segment, in bytes.
    pub(crate) from: u64,
    pub(crate) to: u64,
    /// The bytes of memory on its pages after the first round on fresh pages.
    pub(crate) held_first: Option<u64>,
}

impl LargeBlock {
    /// Whether the block uses little of its memory, and more than in the first round.
    pub(crate) fn is_spreading(&mut self, pages: &Pages) -> bool {
        let held = pages.held_bytes(self.from, self.to);
        let first = *self.held_first.get_or_insert(held);
        2 * held < self.to - self.from && held > first + first / 4 + SLACK
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_between_two_offsets_are_counted() {
        let pages = Pages::new(vec![1, 0, 0, 1, 1]);
        let held = [(0, 1), (1, PAGE + 1), (PAGE, 3 * PAGE), (3 * PAGE, 9 * PAGE), (9 * PAGE, 10 * PAGE)];
        assert_eq!(held.map(|(from, to)| pages.held_bytes(from, to) / PAGE), [1, 1, 0, 2, 0]);
    }

    #[test]
    fn block_that_fills_up_is_not_spreading() {
        let mut block = LargeBlock { request: 0, from: 0, to: 1 << 20, held_first: None };
        let mut held = |count: usize| {
            let mut pages = vec![1; count];
            pages.resize(256, 0);
            block.is_spreading(&Pages::new(pages))
        };
        assert_eq!(
            [10, 20, 26, 40, 127, 128, 256].map(&mut held),
            [false, false, false, true, true, false, false]
        );
    }
}
