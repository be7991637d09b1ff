//! Counts how often a stretch of calls came, whatever came between.
//!
//! A period is proved by rounds that follow each other. Where rounds of several kinds take turns (sentences of several
//! lengths) none need do so. But between rounds only that is live which lives on: fewer blocks than at any time for a
//! while. From one request that comes at such a time to the next such is a stretch, and a stretch that came often enough is
//! a round. Marks bound stretches too.
//!
//! ```text
//!   live    __      __       ____     __
//!   blocks |  |_   |  |_   _|    |   |  |_
//!          |    |__|    |_|      |___|
//!          <------><-----><--------->        stretches
//! ```

use std::hash::{Hash, Hasher};

use rustc_hash::FxHasher;

use crate::token::Token;

/// Places for digests of stretches; a power of two.
const PLACES: usize = 256;
/// A stretch that no mark ends has so many calls at least.
const SHORTEST: u64 = 16;
/// A stretch has so many calls at most.
const LONGEST: usize = 1 << 17;
/// Requests over which the fewest live blocks are looked for, at least; at most twice as many.
const WHILE: usize = 1024;

#[derive(Debug)]
pub(super) struct Stretches {
    /// The digest of a stretch and how often it came, by its low bits; a new one takes the place of an old one.
    seen: Vec<(u64, u64)>,
    /// Where the stretch began that is on its way, as a number of calls.
    begin: Option<u64>,
    /// The fewest live blocks of this while, and of the one before.
    fewest: [usize; 2],
    /// Requests of this while.
    requests: usize,
}

impl Default for Stretches {
    fn default() -> Self {
        Self { seen: Vec::new(), begin: None, fewest: [usize::MAX; 2], requests: 0 }
    }
}

impl Stretches {
    /// A request comes when so many blocks are live. `round`: requests of the longest round that is known. Whether fewer
    /// were not live for a while.
    #[inline]
    pub(super) fn observe(&mut self, live: usize, round: usize) -> bool {
        self.requests += 1;
        if self.requests > WHILE.max(4 * round) {
            self.fewest = [usize::MAX, self.fewest[0]];
            self.requests = 0;
        }
        self.fewest[0] = self.fewest[0].min(live);
        self.fewest[0].min(self.fewest[1]) == live
    }

    /// Between rounds a stretch begins at a call, by its number; where the one before it began, if that is long enough.
    pub(super) fn begin(&mut self, at: u64) -> Option<u64> {
        match self.begin {
            Some(before) if at < before + SHORTEST => None,
            _ => self.begin.replace(at),
        }
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
        self.seen.resize(PLACES, (0, 0));
        #[expect(clippy::cast_possible_truncation, reason = "low bits")]
        let (known, count) = &mut self.seen[digest as usize % PLACES];
        if *known != digest {
            (*known, *count) = (digest, 0);
        }
        *count += 1;
        *count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stretch(size: u64, calls: usize) -> Vec<Token> {
        (0..calls).map(|_| Token::request(size, 16).expect("in range")).collect()
    }

    #[test]
    #[cfg_attr(miri, ignore = "too many calls for an interpreter")]
    fn stretches_are_counted() {
        let mut stretches = Stretches::default();
        let (one, two) = (stretch(1, 20), stretch(2, 20));
        let counts = [&one, &two, &one, &one].map(|calls| stretches.count(calls));
        assert_eq!(counts, [1, 1, 2, 3]);
        assert_eq!(stretches.count(&stretch(1, LONGEST + 1)), 0);
    }

    #[test]
    fn what_is_fewest_is_forgotten_after_a_while() {
        let mut stretches = Stretches::default();
        assert!(stretches.observe(0, 10));
        assert!(!stretches.observe(5, 10));
        let again = (0..4 * WHILE).position(|_| stretches.observe(5, 10)).expect("in the end");
        assert!((WHILE..=2 * WHILE).contains(&again), "{again}");
        assert!(!stretches.observe(6, 10));
    }

    #[test]
    fn a_short_stretch_goes_on() {
        let mut stretches = Stretches::default();
        assert_eq!([10, 20, 30, 40].map(|at| stretches.begin(at)), [None, None, Some(10), None]);
        stretches.drop_begun();
        assert_eq!(stretches.begin(100), None);
    }
}
