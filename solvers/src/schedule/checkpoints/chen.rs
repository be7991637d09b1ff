//! Sublinear memory: blocks of about the square root of the net's bytes.
//!
//! A plan with a threshold b takes about x + y: the bytes x of all checkpoints and the largest block y. The first plan
//! has b = 0. The geometric mean of its x and y is the next threshold, b'. The others are spread evenly from b' / sqrt
//! 2 to b' * sqrt 2.
//!
//! # References
//!
//! 1. T. Chen, B. Xu, C. Zhang, C. Guestrin: Training deep nets with sublinear memory cost. 2016. arXiv:1604.06174.
//!    Algorithm 3 and section 4.3.
//!
//! # Complexity
//!
//! O(n) for each threshold, plus the cost function.
//!
//! # Deviations from the paper
//!
//! The paper uses x + y as the cost; here the caller measures it.

use super::cut::{Round, Thresholds};

/// Thresholds spread around the root.
const TRIALS: u32 = 6;

/// Chen's thresholds.
#[derive(Clone, Copy, Debug, Default)]
pub struct Chen;

impl Thresholds for Chen {
    const KEY: &'static str = "chen";
    const SUMMARY: &'static str = "blocks of about the root of the net";
    const REFERENCE: &'static str = "Chen et al. 2016";

    fn next_threshold(self, rounds: &[Round]) -> Option<f64> {
        let Some(Round { cut, .. }) = rounds.first() else { return Some(0.0) };
        let root = (cut.checkpoints as f64 * cut.largest_block() as f64).sqrt();
        let trial = u32::try_from(rounds.len()).ok()?.checked_sub(2);
        let Some(trial) = trial else { return Some(root) };
        let [low, high] = [root / 2_f64.sqrt(), root * 2_f64.sqrt()];
        let part = f64::from(trial) / f64::from(TRIALS - 1);
        (trial < TRIALS).then_some(low + part * (high - low))
    }
}

#[cfg(test)]
mod tests {
    use planlab_dsa::Bytes;

    use super::*;
    use crate::schedule::checkpoints::{Cut, Item};

    #[test]
    fn a_chain_takes_the_root_of_its_length() {
        let items = vec![Item { bytes: Bytes::new(1), is_candidate: true }; 100];
        let cost = |cut: &Cut| Ok::<_, ()>(cut.checkpoints + cut.largest_block().max(cut.rest));
        let rounds = Chen.search(&items, cost).expect("no error");
        let least = rounds.iter().map(|round| round.cost).min();
        // Everything kept, in blocks of 1.
        assert_eq!((rounds[0].cost, rounds[1].threshold), (101, 10.0));
        assert_eq!(least, Some(20));
    }
}
