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
    /// The items that are kept: places, ascending.
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
    pub fn largest(&self) -> u64 {
        self.blocks.iter().copied().max().unwrap_or(0)
    }
}

/// Cuts where a block exceeds `threshold` bytes. With `check_first` a candidate is not counted in the block that it may
/// end, but in the next one.
///
/// ```
/// use planlab_dsa::Bytes;
/// use planlab_solvers::schedule::checkpoints::{Item, cut};
///
/// let items = [3, 4, 2, 6, 1].map(|bytes| Item { bytes: Bytes::new(bytes), is_candidate: true });
/// let found = cut(&items, 5.0, false);
/// assert_eq!((found.kept, found.blocks, found.rest), (vec![1, 3], vec![7, 8], 1));
/// ```
#[must_use]
pub fn cut(items: &[Item], threshold: f64, check_first: bool) -> Cut {
    let mut cut = Cut::default();
    for (place, item) in items.iter().enumerate() {
        let bytes = item.bytes.get();
        let ahead = if check_first { 0 } else { bytes };
        let block = cut.rest.saturating_add(ahead);
        if item.is_candidate && block as f64 > threshold {
            cut.kept.push(place);
            cut.checkpoints = cut.checkpoints.saturating_add(bytes);
            cut.blocks.push(block);
            cut.rest = bytes - ahead;
        } else {
            cut.rest = cut.rest.saturating_add(bytes);
        }
    }
    cut
}

/// What a search tried.
#[derive(Clone, Debug, PartialEq)]
pub struct Round {
    /// The threshold in bytes.
    pub threshold: f64,
    /// What it gave.
    pub cut: Cut,
    /// What that costs, in bytes.
    pub cost: u64,
}

/// Cuts at a threshold, and asks what it costs.
pub(super) fn try_threshold<E>(
    items: &[Item],
    threshold: f64,
    check_first: bool,
    cost: &mut impl FnMut(&Cut) -> Result<u64, E>,
) -> Result<Round, E> {
    let cut = cut(items, threshold, check_first);
    let cost = cost(&cut)?;
    Ok(Round { threshold, cut, cost })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_candidate_counts_before_or_after_it_is_checked() {
        let items = [(4, false), (4, true), (4, false), (4, true), (4, true)]
            .map(|(bytes, is_candidate)| Item { bytes: Bytes::new(bytes), is_candidate });
        let add_first = cut(&items, 4.0, false);
        assert_eq!((add_first.kept, add_first.blocks, add_first.rest), (vec![1, 3], vec![8, 8], 4));
        let check_first = cut(&items, 4.0, true);
        assert_eq!((check_first.kept, check_first.blocks, check_first.rest), (vec![3], vec![12], 8));
        assert_eq!(cut(&items, 100.0, false), Cut { rest: 20, ..Cut::default() });
    }
}
