//! Checkpoints by a threshold that is updated from plan to plan.
//!
//! The first threshold is 0. Each round cuts the forward pass, plans the memory, and computes the next threshold from
//! the cut. The plan that needs the least memory is the result. Other files choose the candidates for checkpoints
//! (`candidates`) and those to swap (`swapping`), and contain the free list (the planner `patent-free-list`).
//!
//! # References
//!
//! 1. A Chinese patent on training with checkpoints and a free list (Zhejiang), its claims on the choice of
//!    checkpoints. Its number is not known here, and it publishes no figures to compare with.
//!
//! # Complexity
//!
//! O(n) for each round, plus the cost function.
//!
//! # Deviations from the claims
//!
//! - The formula of the update is a picture that is missing in the text; the sentence before it says that the memory
//!   stays at a similar level in each block. There are four rules; [`Update::Mean`] takes that sentence literally.
//! - The claims check a candidate before they add it to its block. Here it is added first, as memonger does and
//!   as the expected results need.

use super::cut::{Cut, Round, Thresholds};

const ROUNDS: usize = 8;

planlab_dsa::named_enum! {
    /// The rule for the next threshold after a cut.
    #[derive(Default)]
    pub enum Update {
        /// The mean of all blocks, the last one included.
        #[default]
        Mean = "mean",
        /// The root of the checkpoints' bytes times the largest block.
        Chen = "chen",
        /// The same with half the product.
        Memonger = "memonger",
        /// Half of the sum of the checkpoints' bytes and the mean block.
        Equal = "equal",
    }
}

impl Update {
    fn next_threshold(self, cut: &Cut) -> f64 {
        let checkpoints = cut.checkpoints as f64;
        let last = (cut.rest > 0).then_some(cut.rest);
        let blocks = || cut.blocks.iter().copied().chain(last);
        let largest = blocks().max().unwrap_or(0) as f64;
        let mean = blocks().map(|bytes| bytes as f64).sum::<f64>() / (blocks().count().max(1) as f64);
        match self {
            Self::Mean => mean,
            Self::Chen => (checkpoints * largest).sqrt(),
            Self::Memonger => (checkpoints * largest / 2.0).sqrt(),
            Self::Equal => f64::midpoint(checkpoints, mean),
        }
    }
}

/// The patent's thresholds.
#[derive(Clone, Copy, Debug, Default)]
pub struct Patent {
    update: Update,
}

impl Patent {
    /// The rule of the update. Default: [`Update::Mean`].
    #[must_use]
    pub const fn with_update(mut self, update: Update) -> Self {
        self.update = update;
        self
    }

    /// The round with the least memory; of equals, the first.
    #[must_use]
    pub fn choose_round(rounds: &[Round]) -> Option<&Round> {
        rounds.iter().min_by_key(|round| round.cost)
    }
}

impl Thresholds for Patent {
    const KEY: &'static str = "patent";
    const SUMMARY: &'static str = "a threshold that follows the mean block";
    const REFERENCE: &'static str = "a Chinese patent (Zhejiang) on checkpoints";

    fn next_threshold(self, rounds: &[Round]) -> Option<f64> {
        let next = rounds.last().map_or(0.0, |round| self.update.next_threshold(&round.cut));
        (rounds.len() < ROUNDS).then_some(next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_rule_has_its_threshold() {
        let cut = Cut { kept: vec![1, 2], checkpoints: 8, blocks: vec![4, 9], rest: 2 };
        assert_eq!(Update::ALL.map(|rule| rule.next_threshold(&cut)), [5.0, 72_f64.sqrt(), 6.0, 6.5]);
    }

    #[test]
    fn the_mean_rises_from_round_to_round() {
        use crate::schedule::checkpoints::Item;
        use planlab_dsa::Bytes;
        let items = vec![Item { bytes: Bytes::new(10), is_candidate: true }; 64];
        let rounds = Patent::default().search(&items, |cut| Ok::<_, ()>(cut.checkpoints)).expect("no error");
        let thresholds: Vec<_> = rounds.iter().map(|round| round.threshold).collect();
        assert!(thresholds.is_sorted() && thresholds[1] == 10.0 && thresholds.len() == 8, "{thresholds:?}");
        let least = rounds.iter().map(|round| round.cost).min();
        assert_eq!(Patent::choose_round(&rounds).map(|round| round.cost), least);
    }
}
