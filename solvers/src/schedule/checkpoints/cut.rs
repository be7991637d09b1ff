//! A cut of the forward pass into blocks.

use planlab_dsa::Bytes;

/// A tensor of the forward pass, in the order of the pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Item {
    /// Its size.
    pub bytes: Bytes,
    /// Whether a block may end with it.
    pub is_candidate: bool,
}

/// Blocks, and the checkpoints between them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cut {
    /// The places of the kept items, ascending.
    pub kept: Vec<usize>,
    /// Their bytes.
    pub checkpoints: u64,
    /// The bytes of each block that ends with a checkpoint.
    pub blocks: Vec<u64>,
    /// The bytes after the last checkpoint.
    pub rest: u64,
}

impl Cut {
    /// The largest block that ends with a checkpoint; 0 without one.
    #[must_use]
    pub fn largest_block(&self) -> u64 {
        self.blocks.iter().copied().max().unwrap_or(0)
    }
}

/// Cuts whenever a block exceeds `threshold` bytes. A candidate counts in the block that it may end.
///
/// ```
/// use planlab_dsa::Bytes;
/// use planlab_solvers::schedule::checkpoints::{Item, cut_items};
///
/// let items = [3, 4, 2, 6, 1].map(|bytes| Item { bytes: Bytes::new(bytes), is_candidate: true });
/// let found = cut_items(&items, 5.0);
/// assert_eq!((found.kept, found.blocks, found.rest), (vec![1, 3], vec![7, 8], 1));
/// ```
#[must_use]
pub fn cut_items(items: &[Item], threshold: f64) -> Cut {
    let mut cut = Cut::default();
    for (place, item) in items.iter().enumerate() {
        let bytes = item.bytes.get();
        cut.rest = cut.rest.saturating_add(bytes);
        if item.is_candidate && cut.rest as f64 > threshold {
            cut.kept.push(place);
            cut.checkpoints = cut.checkpoints.saturating_add(bytes);
            cut.blocks.push(std::mem::take(&mut cut.rest));
        }
    }
    cut
}

/// One trial of a search.
#[derive(Clone, Debug, PartialEq)]
pub struct Round {
    /// The threshold in bytes.
    pub threshold: f64,
    /// The resulting cut.
    pub cut: Cut,
    /// Its cost, in bytes.
    pub cost: u64,
}

/// A search for a cut: a rule for the thresholds to try.
pub trait Thresholds: Copy + Send + Sync {
    /// The last part of the key of a scheduler with these thresholds.
    const KEY: &'static str;
    /// What the thresholds are, in a few words.
    const SUMMARY: &'static str;
    /// Where they come from.
    const REFERENCE: &'static str;

    /// The next threshold in bytes after some rounds; `None` at the end of the search.
    fn next_threshold(self, rounds: &[Round]) -> Option<f64>;

    /// All rounds, in order. Errors are those of `cost`.
    fn search<E>(
        self,
        items: &[Item],
        mut cost: impl FnMut(&Cut) -> Result<u64, E>,
    ) -> Result<Vec<Round>, E> {
        let mut rounds = Vec::new();
        while let Some(threshold) = self.next_threshold(&rounds) {
            let cut = cut_items(items, threshold);
            let cost = cost(&cut)?;
            rounds.push(Round { threshold, cut, cost });
        }
        Ok(rounds)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_candidate_counts_in_the_block_that_it_ends() {
        let items = [(4, false), (4, true), (4, false), (4, true), (4, true)]
            .map(|(bytes, is_candidate)| Item { bytes: Bytes::new(bytes), is_candidate });
        let found = cut_items(&items, 4.0);
        assert_eq!((found.kept, found.blocks, found.rest), (vec![1, 3], vec![8, 8], 4));
        assert_eq!(cut_items(&items, 100.0), Cut { rest: 20, ..Cut::default() });
    }
}
