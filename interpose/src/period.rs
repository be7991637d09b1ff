//! Finds out that the latest calls repeat.
//!
//! The last eight calls are looked up in a table of where each eight were last seen: the distance is a candidate for the
//! period. From then on each call is compared with the one a period before, until one differs. A run of equal calls that
//! is long enough proves the period.
//!
//! ```text
//!    a b c d e f  a b c d e f  a b c d e f
//!                 +----------------------> run: as many calls equal the one a period before
//!    <---------->
//!       period
//! ```
//!
//! An inner loop (a layer that comes again) has a period of its own, and is found first where it comes often enough. What
//! follows it breaks that run; the candidate is then the distance to the last time that it followed, which is the whole
//! round.
//!
//! # References
//!
//! 1. R. M. Karp and M. O. Rabin, *Efficient randomized pattern-matching algorithms*, IBM Journal of Research and
//!    Development 31(2), 1987, doi:10.1147/rd.312.0249 (the rolling hash).
//!
//! # Complexity
//!
//! O(1) for each call. The table has 2^10 to 2^15 places, which a processor's second cache holds; where two sets of eight
//! share a place, and in rounds of more calls than that, the candidate comes some calls later.

use crate::history::History;

/// So many calls in a row make a candidate.
const GRAM: u64 = 8;
/// The factor of the rolling hash; odd, its bits well spread.
const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
/// `FACTOR` to the power of `GRAM`.
const OUTGOING: u64 = power(FACTOR, GRAM);

const fn power(factor: u64, exponent: u64) -> u64 {
    let (mut product, mut left) = (1_u64, exponent);
    while left > 0 {
        product = product.wrapping_mul(factor);
        left -= 1;
    }
    product
}

/// How long a proof of a period is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Proof {
    /// Equal rounds, one after the other; at least 2. Default: 2.
    pub rounds: u64,
    /// Calls that must equal those a period before; short rounds are repeated more often for it. Default: 64.
    pub calls: u64,
}

impl Default for Proof {
    fn default() -> Self {
        Self { rounds: 2, calls: 64 }
    }
}

impl Proof {
    /// The run of equal calls that proves a period.
    fn run(self, period: u64) -> u64 {
        ((self.rounds.max(2) - 1) * period).max(self.calls)
    }
}

/// What the latest call said of the period.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum News {
    Nothing,
    /// There may be a period: from here on costs are measured.
    Likely,
    /// The latest calls have this period, and so many came since it was likely.
    Found {
        period: u64,
        since_likely: u64,
    },
}

/// Where eight calls ended.
#[derive(Clone, Copy, Debug, Default)]
struct Place {
    /// Low bits of their hash: so the history is looked at only where they are most likely the same.
    tag: u32,
    /// Low bits of the number of calls up to their last; 0: none.
    end: u32,
}

/// Watches a history for a period.
#[derive(Debug)]
pub(crate) struct Watch {
    proof: Proof,
    /// Hash of the last calls.
    hash: u64,
    /// Calls since the last [`restart`](Self::restart).
    seen: u64,
    /// Where each eight calls were last seen, by the top bits of their hash.
    places: Vec<Place>,
    /// The candidate, and how many calls equal the one a period before; 0: none.
    period: u64,
    run: u64,
}

/// A run of so many calls makes a period likely.
const LIKELY: u64 = 16;
/// Calls in a row that have a period, at least, before further rounds are not kept.
const SETTLED: u64 = 1 << 13;
const FIRST_PLACES: usize = 1 << 10;
const MOST_PLACES: usize = 1 << 15;

impl Watch {
    pub(crate) fn new(proof: Proof) -> Self {
        Self { proof, hash: 0, seen: 0, places: Vec::new(), period: 0, run: 0 }
    }

    /// Looks at the latest call of a history. To be called after each call.
    pub(crate) fn look(&mut self, history: &History) -> News {
        let end = history.len();
        let Some(token) = history.get(end - 1) else { return News::Nothing };
        self.roll(history, token.word());
        if self.period > 0 && history.get(end - 1 - self.period) == Some(token) {
            self.run += 1;
            self.remember(history);
            return self.news();
        }
        (self.period, self.run) = (0, 0);
        if let Some(before) = self.remember(history)
            && equals(history, end, end - before)
        {
            (self.period, self.run) = (end - before, GRAM);
        }
        News::Nothing
    }

    fn news(&self) -> News {
        let wanted = self.proof.run(self.period);
        let likely = LIKELY.min(wanted - 1).max(GRAM + 1);
        if self.run == likely {
            return News::Likely;
        }
        // Once a period from there on: what was found may not have been of use yet.
        if self.run >= wanted && (self.run - wanted).is_multiple_of(self.period) {
            return News::Found { period: self.period, since_likely: self.run.saturating_sub(likely) };
        }
        News::Nothing
    }

    /// Takes a call into the hash, and the one that leaves the last eight out of it.
    fn roll(&mut self, history: &History, word: u64) {
        let spread = |word: u64| word ^ (word >> 29);
        self.hash = self.hash.wrapping_mul(FACTOR).wrapping_add(spread(word));
        self.seen += 1;
        if self.seen > GRAM
            && let Some(old) = history.get(history.len() - 1 - GRAM)
        {
            self.hash = self.hash.wrapping_sub(spread(old.word()).wrapping_mul(OUTGOING));
        }
    }

    /// Notes where the latest eight calls end, and says where the same ended before, as far as the hash tells.
    fn remember(&mut self, history: &History) -> Option<u64> {
        let end = history.len();
        if self.seen < GRAM {
            return None;
        }
        if self.places.is_empty()
            || (history.known() * 2 > self.places.len() && self.places.len() < MOST_PLACES)
        {
            self.grow();
        }
        let bits = self.places.len().trailing_zeros();
        let mixed = (self.hash ^ (self.hash >> 32)).wrapping_mul(FACTOR);
        #[expect(
            clippy::cast_possible_truncation,
            reason = "the place, and low bits: what they tell is looked at"
        )]
        let (place, tag, low) = ((mixed >> (64 - bits)) as usize, mixed as u32, end as u32);
        let before = std::mem::replace(&mut self.places[place], Place { tag, end: low });
        let distance = low.wrapping_sub(before.end);
        let is_like = before.tag == tag && before.end > 0 && distance > 0;
        is_like.then(|| end.checked_sub(distance.into())).flatten()
    }

    /// More places, all empty: they fill up again within a round.
    fn grow(&mut self) {
        let count = (self.places.len() * 4).clamp(FIRST_PLACES, MOST_PLACES);
        self.places.clear();
        self.places.resize(count, Place::default());
    }

    /// Whether the latest calls have repeated with this period for so long that another round tells nothing: an inner loop
    /// of a round would have ended by then.
    pub(crate) fn is_settled(&self, period: u64) -> bool {
        self.period == period && self.run >= (8 * period).max(SETTLED)
    }

    /// Forgets what it saw: the history has lost its calls.
    pub(crate) fn restart(&mut self) {
        (self.hash, self.seen, self.period, self.run) = (0, 0, 0, 0);
        self.places.fill(Place::default());
    }
}

/// Whether the last eight calls equal those a period before.
fn equals(history: &History, end: u64, period: u64) -> bool {
    let at = |number: u64| history.get(number);
    end >= period + GRAM
        && (1..=GRAM).all(|back| at(end - back).is_some() && at(end - back) == at(end - back - period))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::token::Token;

    /// The first period that is found, and after how many calls.
    fn found(proof: Proof, sizes: impl IntoIterator<Item = u64>) -> Vec<(u64, u64)> {
        let (mut history, mut watch, mut all) = (History::default(), Watch::new(proof), Vec::new());
        for size in sizes {
            history.request(Token::request(size, 16).expect("in range"));
            if let News::Found { period, .. } = watch.look(&history) {
                all.push((period, history.len()));
            }
        }
        all
    }

    fn rounds(count: u64, round: &[u64]) -> Vec<u64> {
        (0..count).flat_map(|_| round.iter().copied()).collect()
    }

    fn assert_first(found: &[(u64, u64)], period: u64, after: u64) {
        let (first, at) = found.first().copied().expect("found");
        assert!(first == period && (after..after + 20).contains(&at), "{found:?}");
    }

    #[test]
    fn a_period_is_found_after_two_rounds() {
        let round: Vec<u64> = (1..=100).collect();
        // A few calls more where two sets of eight share a place.
        assert_first(&found(Proof::default(), rounds(3, &round)), 100, 200);
        let three = Proof { rounds: 3, ..Proof::default() };
        assert_first(&found(three, rounds(4, &round)), 100, 300);
    }

    #[test]
    fn what_comes_before_the_first_round_does_not_matter() {
        let before = 1000..1500;
        let round: Vec<u64> = (1..=100).collect();
        let all = before.chain(rounds(3, &round));
        assert_first(&found(Proof::default(), all), 100, 700);
    }

    #[test]
    fn a_short_round_needs_more_of_them() {
        let all = found(Proof::default(), rounds(100, &[1, 2]));
        assert_eq!(all.first().map(|&(period, _)| period), Some(2));
        assert!(all[0].1 >= 64, "{all:?}");
    }

    #[test]
    fn a_round_with_an_inner_loop_is_found_too() {
        let layer: Vec<u64> = (1..=40).collect();
        let mut round = vec![500, 501];
        round.extend(rounds(6, &layer));
        round.extend(600..620);
        let all = found(Proof::default(), rounds(4, &round));
        let periods: Vec<u64> = all.iter().map(|&(period, _)| period).collect();
        assert!(periods.contains(&40), "the inner loop: {all:?}");
        assert!(periods.contains(&(round.len() as u64)), "the round: {all:?}");
    }

    #[test]
    fn a_round_of_more_calls_than_places_is_found() {
        let round: Vec<u64> = (1..=200_000).collect();
        let all = found(Proof::default(), rounds(3, &round));
        assert_eq!(all.first().map(|&(period, _)| period), Some(200_000), "{all:?}");
    }

    #[test]
    fn what_never_repeats_has_no_period() {
        assert_eq!(found(Proof::default(), 1..20_000), []);
    }
}
