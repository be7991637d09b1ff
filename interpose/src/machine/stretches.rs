//! Counts how often a stretch of calls came, whatever came between.
//!
//! A period is proved by rounds that follow each other. Where rounds of several kinds take turns (sentences of several
//! lengths) none need do so. But once one plan is there it is known how many blocks live on from round to round: from
//! one request that comes when only so many are live to the next such is a stretch, and a stretch that came often enough
//! is a round. Marks bound stretches too.

use std::hash::{Hash, Hasher};

use rustc_hash::FxHasher;

use crate::token::Token;

/// Stretches that are remembered.
const MOST: usize = 256;
/// The most calls of a stretch.
const LONGEST: usize = 1 << 17;

#[derive(Debug, Default)]
pub(super) struct Stretches {
    /// Digests of stretches with how often each came, the latest first.
    seen: Vec<(u64, u64)>,
    /// Where the stretch began that is on its way, as a number of calls.
    begin: Option<u64>,
    /// Blocks of the real allocator that live on from round to round.
    baseline: Option<usize>,
}

impl Stretches {
    /// A planned round began: so many blocks live on.
    pub(super) fn learn(&mut self, live: usize) {
        self.baseline = Some(live);
    }

    /// Whether no more blocks are live than between rounds.
    pub(super) fn is_between(&self, live: usize) -> bool {
        self.baseline == Some(live)
    }

    /// A stretch begins; where the one before it began.
    pub(super) fn begin(&mut self, at: u64) -> Option<u64> {
        self.begin.replace(at)
    }

    /// What came so far is no stretch.
    pub(super) fn drop_begun(&mut self) {
        self.begin = None;
    }

    /// How often a stretch has come, this time with it; 0 if it is too long to tell.
    pub(super) fn count(&mut self, calls: &[Token]) -> u64 {
        if calls.len() > LONGEST {
            return 0;
        }
        let mut hasher = FxHasher::default();
        calls.hash(&mut hasher);
        let digest = hasher.finish();
        let known = self.seen.iter().position(|&(other, _)| other == digest);
        let before = known.map_or(0, |at| self.seen.remove(at).1);
        self.seen.truncate(MOST - 1);
        self.seen.insert(0, (digest, before + 1));
        before + 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stretches_are_counted_and_old_ones_forgotten() {
        let stretch = |size: u64| [Token::request(size + 1, 16).expect("in range"), Token::free(1)];
        let mut stretches = Stretches::default();
        assert_eq!((stretches.count(&stretch(1)), stretches.count(&stretch(2))), (1, 1));
        assert_eq!(stretches.count(&stretch(1)), 2);
        (10..10 + MOST as u64).for_each(|size| assert_eq!(stretches.count(&stretch(size)), 1));
        assert_eq!(stretches.count(&stretch(1)), 1);
        assert_eq!(stretches.count(&vec![Token::free(1); LONGEST + 1]), 0);
    }
}
