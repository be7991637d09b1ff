//! A cut of the forward pass into blocks.

use std::collections::BTreeMap;

use planlab_dsa::Bytes;

/// The value of memonger's attribute for a tensor that decides for itself.
const ALONE: &str = "True";

/// Whether a block may end with a tensor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mark {
    /// It may not.
    #[default]
    Inside,
    /// It may: it is a candidate.
    Alone,
    /// It is part of a stage. The first tensor of a stage is a candidate. If it is kept, so are those of the same stage
    /// that follow before any other candidate.
    Stage(u32),
}

impl Mark {
    /// A candidate, or not.
    #[must_use]
    pub const fn candidate(yes: bool) -> Self {
        if yes { Self::Alone } else { Self::Inside }
    }

    /// The marks that memonger reads from an attribute, `mirror_stage`: `True` marks a separate candidate, any other
    /// value is the name of a stage.
    ///
    /// ```
    /// use planlab_solvers::schedule::checkpoints::Mark;
    ///
    /// let stages = [Some("one"), None, Some("two"), Some("one"), Some("True")];
    /// let expected = [Mark::Stage(0), Mark::Inside, Mark::Stage(1), Mark::Stage(0), Mark::Alone];
    /// assert_eq!(Mark::of_stages(stages), expected);
    /// ```
    #[must_use]
    pub fn of_stages<'a>(stages: impl IntoIterator<Item = Option<&'a str>>) -> Vec<Self> {
        let mut numbers = BTreeMap::new();
        let mark = |stage: Option<&'a str>| match stage {
            None => Self::Inside,
            Some(ALONE) => Self::Alone,
            Some(name) => {
                let next = u32::try_from(numbers.len()).expect("a net has fewer than 2^32 stages");
                Self::Stage(*numbers.entry(name).or_insert(next))
            }
        };
        stages.into_iter().map(mark).collect()
    }
}

/// A tensor of the forward pass, in the order of the pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Item {
    /// Its size.
    pub bytes: Bytes,
    /// Whether a block may end with it.
    pub mark: Mark,
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
    pub fn largest(&self) -> u64 {
        self.blocks.iter().copied().max().unwrap_or(0)
    }
}

/// Cuts whenever a block exceeds `threshold` bytes. With `check_first` a candidate does not count in the block that it
/// may end, but in the next one. Items kept because of their checkpoint's stage also count in the next block.
///
/// ```
/// use planlab_dsa::Bytes;
/// use planlab_solvers::schedule::checkpoints::{Item, Mark, cut};
///
/// let items = [3, 4, 2, 6, 1].map(|bytes| Item { bytes: Bytes::new(bytes), mark: Mark::Alone });
/// let found = cut(&items, 5.0, false);
/// assert_eq!((found.kept, found.blocks, found.rest), (vec![1, 3], vec![7, 8], 1));
/// ```
#[must_use]
pub fn cut(items: &[Item], threshold: f64, check_first: bool) -> Cut {
    let mut cut = Cut::default();
    // The stage of the last candidate, and whether it was kept.
    let (mut stage, mut is_kept) = (Mark::Alone, false);
    for (place, item) in items.iter().enumerate() {
        let bytes = item.bytes.get();
        let is_candidate = item.mark != Mark::Inside && (item.mark == Mark::Alone || item.mark != stage);
        if is_candidate {
            stage = item.mark;
            is_kept = cut.decide(place, bytes, threshold, check_first);
            continue;
        }
        cut.rest = cut.rest.saturating_add(bytes);
        if item.mark != Mark::Inside && is_kept {
            cut.keep(place, bytes);
        }
    }
    cut
}

impl Cut {
    fn keep(&mut self, place: usize, bytes: u64) {
        self.kept.push(place);
        self.checkpoints = self.checkpoints.saturating_add(bytes);
    }

    /// Whether a candidate ends its block.
    fn decide(&mut self, place: usize, bytes: u64, threshold: f64, check_first: bool) -> bool {
        let ahead = if check_first { 0 } else { bytes };
        let block = self.rest.saturating_add(ahead);
        let is_over = block as f64 > threshold;
        if is_over {
            self.keep(place, bytes);
            self.blocks.push(block);
            self.rest = bytes - ahead;
        } else {
            self.rest = self.rest.saturating_add(bytes);
        }
        is_over
    }
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

/// Cuts at a threshold, and measures the cost.
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
            .map(|(bytes, yes)| Item { bytes: Bytes::new(bytes), mark: Mark::candidate(yes) });
        let add_first = cut(&items, 4.0, false);
        assert_eq!((add_first.kept, add_first.blocks, add_first.rest), (vec![1, 3], vec![8, 8], 4));
        let check_first = cut(&items, 4.0, true);
        assert_eq!((check_first.kept, check_first.blocks, check_first.rest), (vec![3], vec![12], 8));
        assert_eq!(cut(&items, 100.0, false), Cut { rest: 20, ..Cut::default() });
    }

    #[test]
    fn a_stage_is_kept_or_dropped_as_its_first_tensor_is() {
        let stages = [
            Some("a"),
            None,
            Some("a"),
            Some("a"),
            Some("b"),
            Some("b"),
            Some("a"),
            Some("True"),
            Some("True"),
        ];
        let items: Vec<_> =
            Mark::of_stages(stages).into_iter().map(|mark| Item { bytes: Bytes::new(4), mark }).collect();
        // Place 0 ends a block of 4, and 2 and 3 follow it. 4 ends the 16 bytes since, and 5 follows it. 6 belongs to a
        // stage again, and decides again: 8 bytes end. 7 and 8 decide for themselves.
        let found = cut(&items, 3.0, false);
        assert_eq!(found.kept, [0, 2, 3, 4, 5, 6, 7, 8]);
        assert_eq!((found.blocks, found.checkpoints, found.rest), (vec![4, 16, 8, 4, 4], 32, 0));
        // Place 0 does not end its block, so that 2 and 3 are not kept; 4 does.
        let found = cut(&items, 16.0, false);
        assert_eq!((found.kept, found.blocks, found.rest), (vec![4, 5], vec![20], 16));
    }
}
