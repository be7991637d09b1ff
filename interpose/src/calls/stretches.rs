//! Counts how often a stretch of calls occurred, whatever came in between.
//!
//! A period is proved by rounds that follow each other. If rounds of several kinds take turns (sentences of several
//! lengths), equal rounds may never do so. But between rounds only long-lived blocks are live: fewer than at any other
//! time for a while. The calls from a request at such a time to the next one form a stretch, and a stretch that
//! occurred often enough is a round. Marks bound stretches, too.
//!
//! ```text
//!   live    __      __       ____     __
//!   blocks |  |_   |  |_   _|    |   |  |_
//!          |    |__|    |_|      |___|
//!          <------><-----><--------->        stretches
//! ```

use std::hash::{Hash, Hasher};

use rustc_hash::FxHasher;

use super::token::Token;

/// The least and the greatest number of entries for digests of stretches; powers of two.
const FEWEST_PLACES: usize = 16;
const MOST_PLACES: usize = 256;
/// The least number of calls in a stretch that is not ended by a mark.
const SHORTEST: u64 = 16;
/// The most calls in a stretch.
const LONGEST: usize = 1 << 17;
/// The fewest live blocks are taken over at least this many requests, and at most twice as many.
const WHILE: usize = 1024;

#[derive(Debug)]
pub(crate) struct Stretches {
    /// The digest of a stretch and its count, by the digest's low bits; a new stretch replaces an old one.
    seen: Vec<(u64, u64)>,
    /// The call at which the current stretch began, by its number.
    begin: Option<u64>,
    /// The fewest live blocks during the current while, and during the one before.
    fewest: [usize; 2],
    /// The number of requests in the current while.
    requests: usize,
}

impl Default for Stretches {
    fn default() -> Self {
        Self { seen: Vec::new(), begin: None, fewest: [usize::MAX; 2], requests: 0 }
    }
}

impl Stretches {
    /// Handles a request while `live` blocks are live. `round`: the requests of the longest known round. Whether no
    /// fewer blocks were live for a while.
    #[inline]
    pub(crate) fn observe_request(&mut self, live: usize, round: usize) -> bool {
        self.requests += 1;
        if self.requests > WHILE.max(4 * round) {
            self.fewest = [usize::MAX, self.fewest[0]];
            self.requests = 0;
        }
        self.fewest[0] = self.fewest[0].min(live);
        self.fewest[0].min(self.fewest[1]) == live
    }

    /// Begins a stretch at a call between rounds, by its number; returns the begin of the stretch before, if that is
    /// long enough.
    pub(crate) fn begin_stretch(&mut self, at: u64) -> Option<u64> {
        match self.begin {
            Some(before) if at < before + SHORTEST => None,
            _ => self.begin.replace(at),
        }
    }

    /// Forgets the begin of the current stretch.
    pub(crate) fn drop_begun(&mut self) {
        self.begin = None;
    }

    /// Counts a stretch; returns how often it occurred, or 0 if it is too long.
    pub(crate) fn count_stretch(&mut self, calls: &[Token]) -> u64 {
        if calls.len() > LONGEST {
            return 0;
        }
        let mut hasher = FxHasher::default();
        calls.hash(&mut hasher);
        let digest = hasher.finish();
        while self.is_taken(digest) && self.seen.len() < MOST_PLACES {
            self.double_places();
        }
        let (known, count) = self.place_of(digest);
        if *known != digest {
            (*known, *count) = (digest, 0);
        }
        *count += 1;
        *count
    }

    fn place_of(&mut self, digest: u64) -> &mut (u64, u64) {
        #[expect(clippy::cast_possible_truncation, reason = "low bits")]
        let at = digest as usize % self.seen.len();
        &mut self.seen[at]
    }

    /// Whether there is no place for a digest, or it has that of another one.
    fn is_taken(&mut self, digest: u64) -> bool {
        self.seen.is_empty()
            || !matches!(self.place_of(digest), (known, count) if *count == 0 || *known == digest)
    }

    /// Doubles the number of places.
    #[cold]
    fn double_places(&mut self) {
        let count = (2 * self.seen.len()).max(FEWEST_PLACES);
        let old = std::mem::replace(&mut self.seen, vec![(0, 0); count]);
        old.into_iter().filter(|(_, count)| *count > 0).for_each(|one| *self.place_of(one.0) = one);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stretch(size: u64, calls: usize) -> Vec<Token> {
        (0..calls).map(|_| Token::from_request(size, 16).expect("in range")).collect()
    }

    #[test]
    #[cfg_attr(miri, ignore = "too many calls for an interpreter")]
    fn stretches_are_counted() {
        let mut stretches = Stretches::default();
        let (one, two) = (stretch(1, 20), stretch(2, 20));
        let counts = [&one, &two, &one, &one].map(|calls| stretches.count_stretch(calls));
        assert_eq!(counts, [1, 1, 2, 3]);
        assert_eq!(stretches.count_stretch(&stretch(1, LONGEST + 1)), 0);
    }

    #[test]
    fn what_is_fewest_is_forgotten_after_a_while() {
        let mut stretches = Stretches::default();
        assert!(stretches.observe_request(0, 10));
        assert!(!stretches.observe_request(5, 10));
        let again = (0..4 * WHILE).position(|_| stretches.observe_request(5, 10)).expect("in the end");
        assert!((WHILE..=2 * WHILE).contains(&again), "{again}");
        assert!(!stretches.observe_request(6, 10));
    }

    #[test]
    fn a_short_stretch_goes_on() {
        let mut stretches = Stretches::default();
        assert_eq!([10, 20, 30, 40].map(|at| stretches.begin_stretch(at)), [None, None, Some(10), None]);
        stretches.drop_begun();
        assert_eq!(stretches.begin_stretch(100), None);
    }
}
