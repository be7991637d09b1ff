//! The search of memonger, the program that accompanies the paper on sublinear memory.
//!
//! Three rounds start from threshold 0. Each next threshold is the root of half the product of the checkpoints' bytes
//! and the largest block. More thresholds follow in equal steps, from the least of the rounds' largest blocks up to the
//! last guess times the root of 2. All figures are whole MiB, and so is the cost; the first of the cheapest rounds is
//! chosen.
//!
//! # References
//!
//! 1. dmlc/mxnet-memonger, `memonger.py`, `search_plan`. Apache-2.0.
//! 2. T. Chen et al.: Training deep nets with sublinear memory cost. 2016. arXiv:1604.06174.
//!
//! # Complexity
//!
//! O(n) for each threshold, plus the cost function.
//!
//! # Deviations from the program
//!
//! - A tensor's attribute `mirror_stage` may name a stage there, whose tensors are kept together; here each candidate
//!   decides for itself, as with the value `True`.

use super::cut::{Round, Thresholds};

/// Rounds from guess to guess.
const ROUNDS: usize = 3;
/// Thresholds after the guesses.
const TRIALS: u32 = 6;
const MIB: f64 = 1_048_576.0;

/// Memonger's thresholds.
#[derive(Clone, Copy, Debug, Default)]
pub struct Memonger;

impl Thresholds for Memonger {
    const KEY: &'static str = "memonger";
    const SUMMARY: &'static str = "memonger's search for the size of blocks";
    const REFERENCE: &'static str = "dmlc/mxnet-memonger";

    fn next_threshold(self, rounds: &[Round]) -> Option<f64> {
        let guesses = &rounds[..rounds.len().min(ROUNDS)];
        let mebibytes = |bytes: u64| (bytes >> 20) as f64;
        let Some(Round { cut, .. }) = guesses.last() else { return Some(0.0) };
        let guess = (mebibytes(cut.checkpoints) * mebibytes(cut.largest_block()) / 2.0).sqrt().floor();
        if rounds.len() < ROUNDS {
            return Some(guess * MIB);
        }
        let least =
            guesses.iter().map(|round| mebibytes(round.cut.largest_block())).fold(f64::INFINITY, f64::min);
        let step = ((guess * 2_f64.sqrt() - least) / f64::from(TRIALS)).trunc();
        let trial = u32::try_from(rounds.len() + 1 - ROUNDS).ok()?;
        (step > 0.0 && trial <= TRIALS).then_some((least + f64::from(trial) * step) * MIB)
    }
}

impl Memonger {
    /// The round that the program chooses.
    #[must_use]
    pub fn choose_round(rounds: &[Round]) -> Option<&Round> {
        rounds.iter().min_by_key(|round| round.cost >> 20)
    }
}

#[cfg(test)]
mod tests {
    use planlab_dsa::Bytes;

    use super::*;
    use crate::schedule::checkpoints::Item;

    #[test]
    fn guesses_and_steps_are_whole() {
        let items = vec![Item { bytes: Bytes::new(1 << 20), is_candidate: true }; 800];
        let rounds = Memonger.search(&items, |cut| Ok::<_, ()>(cut.checkpoints)).expect("no error");
        let thresholds: Vec<_> = rounds.iter().map(|round| round.threshold / MIB).collect();
        // 800 checkpoints and blocks of 1: 20. Then 38 and blocks of 21: 19. Then 40 and blocks of 20: 20.
        assert_eq!(thresholds, [0.0, 20.0, 19.0, 5.0, 9.0, 13.0, 17.0, 21.0, 25.0]);
        assert_eq!(Memonger::choose_round(&rounds).map(|round| round.threshold), Some(25.0 * MIB));
    }
}
