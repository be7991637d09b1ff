//! Detects that the latest calls repeat.
//!
//! A table stores where each sequence of eight calls was last seen. The last eight calls are looked up there, and
//! their distance to that place is a candidate for the period. Only a quarter of all sequences is looked up, chosen by
//! hash, so that the same ones are chosen each time. If none was chosen for 32 calls, as in a short loop, all are
//! looked up. Once there is a candidate, each call is compared with the one a period before, until one differs. A long
//! enough run of equal calls proves the period.
//!
//! ```text
//!    a b c d e f  a b c d e f  a b c d e f
//!                 +----------------------> run: as many calls equal the one a period before
//!    <---------->
//!       period
//! ```
//!
//! An inner loop (a repeated layer) has a period of its own, and is found first if it repeats often enough. The call
//! after it breaks that run. The candidate is then the distance to the last call after the loop, which is the whole
//! round.
//!
//! # References
//!
//! 1. R. M. Karp and M. O. Rabin, *Efficient randomized pattern-matching algorithms*, IBM Journal of Research and
//!    Development 31(2), 1987, doi:10.1147/rd.312.0249 (the rolling hash).
//!
//! # Complexity
//!
//! O(1) for each call. The table has 2^10 to 2^15 entries of four bytes, which fit a processor's second-level cache.
//! If two sequences share an entry, or a round has more than four times as many calls as the table has entries, the
//! candidate is found some calls later.

use super::history::History;

/// The number of calls in a row that make a candidate.
const GRAM: u64 = EXPONENT as u64;
const EXPONENT: u32 = 8;
/// The factor of the rolling hash: odd, with evenly spread bits.
const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
/// `FACTOR` to the power of `GRAM`.
const OUTGOING: u64 = FACTOR.wrapping_pow(EXPONENT);

/// The length of the proof of a period.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Proof {
    /// The number of equal rounds in a row, at least 2. Default: 2.
    pub rounds: u64,
    /// The number of calls that must equal those a period before; shorter rounds must repeat more often. Default: 64.
    pub calls: u64,
}

impl Default for Proof {
    fn default() -> Self {
        Self { rounds: 2, calls: 64 }
    }
}

impl Proof {
    /// The length of the run of equal calls that proves a period.
    fn run_length(self, period: u64) -> u64 {
        ((self.rounds.max(2) - 1) * period).max(self.calls)
    }
}

/// The effect of the latest call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum News {
    Nothing,
    /// There may be a period: costs are measured from here on.
    Likely,
    /// The latest calls have this period; `since_likely` calls came since it was likely.
    Found {
        period: u64,
        since_likely: u64,
    },
}

/// Where eight calls ended, in four bytes: small, because a program that never repeats still pays for the cache.
///
/// The low 24 bits come from the number of calls up to the last of the eight; 0: none. The high 8 bits come from their
/// hash, after its first 10 bits. So the history is only searched if the eight are most likely the same, and the
/// entry's place in a larger table is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Place(u32);

const END_BITS: u32 = 24;
const TAG_BITS: u32 = 8;
const END: u32 = (1 << END_BITS) - 1;

impl Place {
    #[expect(clippy::cast_possible_truncation, reason = "low bits")]
    const fn new(hash: u64, end: u64) -> Self {
        let tag = (hash >> (u64::BITS - FIRST_BITS - TAG_BITS)) as u32;
        Self(tag << END_BITS | (end as u32 & END))
    }

    /// The `count` bits of the hash after the first `after`, which a smaller table used.
    const fn hash_bits(self, after: u32, count: u32) -> usize {
        let tag = self.0 >> END_BITS;
        let rest = tag << (after - FIRST_BITS) & ((1 << TAG_BITS) - 1);
        (rest >> (TAG_BITS - count)) as usize
    }

    /// How many calls before `later` the same eight may have ended; `None` if they were others.
    fn calls_before(self, later: Self) -> Option<u64> {
        let distance = later.0.wrapping_sub(self.0) & END;
        let is_like = self.0 & END != 0 && self.0 >> END_BITS == later.0 >> END_BITS;
        (is_like && distance > 0).then_some(distance.into())
    }
}

/// Watches a history for a period.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    proof: Proof,
    /// Hash of the last eight calls.
    hash: u64,
    /// Calls since the last restart.
    seen: u64,
    /// Calls since a sequence was last chosen by its hash.
    unchosen: u32,
    /// Where each sequence was last seen, by the top bits of its hash.
    places: Vec<Place>,
    /// The candidate, and how many calls equal the one a period before; 0: no candidate.
    period: u64,
    run: u64,
}

/// After this many calls in a row that were not chosen, every call is. By chance that happens once in ten thousand calls.
const UNCHOSEN_LIMIT: u32 = 32;
/// The least number of calls with a period before further rounds are dropped.
const SETTLED: u64 = 1 << 13;
/// The table's sizes, as powers of two: no more bits than these and a tag's.
const FIRST_BITS: u32 = 10;
const MOST_BITS: u32 = 15;

impl Watch {
    pub(crate) fn new(proof: Proof) -> Self {
        Self { proof, ..Self::default() }
    }

    /// Looks at the latest call of a history. Must be called after each call.
    pub(crate) fn look_at_call(&mut self, history: &History) -> News {
        let end = history.len();
        let Some(token) = history.get(end - 1) else { return News::Nothing };
        self.roll_hash(history, token.as_word());
        if self.period > 0 && history.get(end - 1 - self.period) == Some(token) {
            self.run += 1;
            self.remember_call(history);
            return self.latest_event();
        }
        (self.period, self.run) = (0, 0);
        if let Some(before) = self.remember_call(history)
            && equals_period_before(history, end, end - before)
        {
            (self.period, self.run) = (end - before, GRAM);
        }
        News::Nothing
    }

    fn latest_event(&self) -> News {
        let wanted = self.proof.run_length(self.period);
        // Half of a proof: most runs end long before, and querying the page faults takes longer than the call.
        let likely = (wanted / 2).max(GRAM + 1);
        if self.run == likely {
            return News::Likely;
        }
        // Reported once per period, because the caller may not have been able to use an earlier report.
        if self.run >= wanted && (self.run - wanted).is_multiple_of(self.period) {
            return News::Found { period: self.period, since_likely: self.run.saturating_sub(likely) };
        }
        News::Nothing
    }

    /// Adds a call to the hash, and removes the call that leaves the last eight.
    fn roll_hash(&mut self, history: &History, word: u64) {
        let spread = |word: u64| word ^ (word >> 29);
        self.hash = self.hash.wrapping_mul(FACTOR).wrapping_add(spread(word));
        self.seen += 1;
        if self.seen > GRAM
            && let Some(old) = history.get(history.len() - 1 - GRAM)
        {
            self.hash = self.hash.wrapping_sub(spread(old.as_word()).wrapping_mul(OUTGOING));
        }
    }

    /// Stores where the latest eight calls end, and returns where the same eight probably ended before.
    fn remember_call(&mut self, history: &History) -> Option<u64> {
        let end = history.len();
        let mixed = (self.hash ^ (self.hash >> 32)).wrapping_mul(FACTOR);
        if self.seen < GRAM || !self.is_sampled(mixed) {
            return None;
        }
        let is_full = history.known_calls() > 4 * self.places.len() && self.places.len() < 1 << MOST_BITS;
        if self.places.is_empty() || is_full {
            self.enlarge_table();
        }
        let bits = self.places.len().trailing_zeros();
        #[expect(clippy::cast_possible_truncation, reason = "fewer places than that")]
        let place = (mixed >> (64 - bits)) as usize;
        let new = Place::new(mixed, end);
        let before = std::mem::replace(&mut self.places[place], new);
        end.checked_sub(before.calls_before(new)?)
    }

    /// Whether the latest eight calls are looked up, by hash bits that determine neither place nor tag.
    #[inline]
    fn is_sampled(&mut self, mixed: u64) -> bool {
        let is_chosen = (mixed >> END_BITS) & 3 == 0;
        self.unchosen = if is_chosen { 0 } else { self.unchosen.saturating_add(1) };
        is_chosen || self.unchosen > UNCHOSEN_LIMIT
    }

    /// Enlarges the table and keeps its entries.
    #[cold]
    fn enlarge_table(&mut self) {
        if self.places.is_empty() {
            self.places.resize(1 << FIRST_BITS, Place::default());
            return;
        }
        let before = self.places.len().trailing_zeros();
        let more = (MOST_BITS - before).min(2);
        let old = std::mem::take(&mut self.places);
        self.places.resize(old.len() << more, Place::default());
        for (at, place) in old.into_iter().enumerate().filter(|(_, place)| *place != Place::default()) {
            self.places[at << more | place.hash_bits(before, more)] = place;
        }
    }

    /// Whether the latest calls have repeated with this period for so long that another round adds no information: an
    /// inner loop would have ended by then.
    pub(crate) fn is_settled(&self, period: u64) -> bool {
        self.period == period && self.run >= (8 * period).max(SETTLED)
    }
}

/// Whether the last eight calls equal those a period before.
fn equals_period_before(history: &History, end: u64, period: u64) -> bool {
    let at = |number: u64| history.get(number);
    end >= period + GRAM
        && (1..=GRAM).all(|back| at(end - back).is_some() && at(end - back) == at(end - back - period))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calls::Token;

    /// Each period that is found, and after how many calls.
    fn found(proof: Proof, sizes: impl IntoIterator<Item = u64>) -> Vec<(u64, u64)> {
        let (mut history, mut watch, mut all) = (History::default(), Watch::new(proof), Vec::new());
        for size in sizes {
            history.record_request(Token::from_request(size, 16).expect("in range"));
            if let News::Found { period, .. } = watch.look_at_call(&history) {
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
    fn a_period_is_found_after_as_many_rounds_as_prove_it() {
        let round: Vec<u64> = (1..=100).collect();
        // A few calls more if two sequences share an entry.
        assert_first(&found(Proof::default(), rounds(3, &round)), 100, 200);
        let three = Proof { rounds: 3, ..Proof::default() };
        assert_first(&found(three, rounds(4, &round)), 100, 300);
        // What comes before the first round does not matter.
        assert_first(&found(Proof::default(), (1000..1500).chain(rounds(3, &round))), 100, 700);
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
    #[cfg_attr(miri, ignore = "too many calls for an interpreter")]
    fn a_round_of_more_calls_than_places_is_found() {
        let round: Vec<u64> = (1..=200_000).collect();
        let all = found(Proof::default(), rounds(3, &round));
        assert_eq!(all.first().map(|&(period, _)| period), Some(200_000), "{all:?}");
    }

    #[test]
    #[cfg_attr(miri, ignore = "too many calls for an interpreter")]
    fn rounds_of_any_length_are_found_soon() {
        for calls in (1..60).chain([100, 1000, 5000]) {
            for salt in 1..6_u64 {
                let round: Vec<u64> = (1..=calls).map(|call| call * 4096 + salt).collect();
                let all = found(Proof::default(), rounds(200 / calls + 4, &round));
                let (period, at) = all.first().copied().expect("found");
                // Two rounds, or 64 calls, and some more until the first sequence is looked up.
                let latest = (2 * calls + 40).max(64 + u64::from(UNCHOSEN_LIMIT) + calls + 20);
                assert!(period == calls && at <= latest, "{calls} calls: {period} after {at}");
            }
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "too many calls for an interpreter")]
    fn what_never_repeats_has_no_period() {
        assert_eq!(found(Proof::default(), 1..20_000), []);
    }
}
