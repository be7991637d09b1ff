//! Recognises recent requests: a new size among many known ones is no part of a round.
//!
//! A loop that reads files requests a buffer of another size each time. With these in the history, no two rounds would
//! be equal, and nothing would ever be planned.

use super::token::Token;

/// The least and the greatest number of sets of four tokens, looked up by hash; powers of two.
const FEWEST_SETS: usize = 16;
const MOST_SETS: usize = 512;
const WAYS: usize = 4;
/// After this many known requests in a row, an unknown one is odd. When a program begins to do something else, only
/// the first such request is.
const USED: u32 = 16;

/// The tokens of recent requests.
#[derive(Debug, Default)]
pub(crate) struct Familiar {
    /// Each set's tokens, the latest first.
    sets: Vec<[u64; WAYS]>,
    /// Unknown requests since the number of sets changed.
    unknown: usize,
    /// Known requests in a row.
    run: u32,
}

impl Familiar {
    /// Records a request; whether it is odd.
    #[inline]
    pub(crate) fn is_odd(&mut self, token: Token) -> bool {
        if self.record_request(token) {
            self.run = self.run.saturating_add(1);
            return false;
        }
        std::mem::take(&mut self.run) >= USED
    }

    /// Records a request; whether it was known before.
    fn record_request(&mut self, token: Token) -> bool {
        if self.sets.is_empty() || self.unknown > self.sets.len() && self.sets.len() < MOST_SETS {
            self.double_sets();
        }
        let is_known = self.move_to_front(token.as_word());
        self.unknown += usize::from(!is_known);
        is_known
    }

    /// Moves a token to the begin of its set; whether it was there.
    fn move_to_front(&mut self, word: u64) -> bool {
        let mixed = (word ^ (word >> 32)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let count = self.sets.len();
        let set = &mut self.sets[(mixed >> 40) as usize % count];
        let at = set.iter().position(|&other| other == word);
        set[..=at.unwrap_or(WAYS - 1)].rotate_right(1);
        set[0] = word;
        at.is_some()
    }

    /// Doubles the number of sets, and keeps their tokens.
    #[cold]
    fn double_sets(&mut self) {
        let count = (8 * self.sets.len()).clamp(FEWEST_SETS, MOST_SETS);
        let old = std::mem::replace(&mut self.sets, vec![[0; WAYS]; count]);
        self.unknown = 0;
        for word in old.into_iter().flat_map(|set| set.into_iter().rev()).filter(|&word| word != 0) {
            self.move_to_front(word);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(size: u64) -> Token {
        Token::from_request(size, 16).expect("in range")
    }

    #[test]
    fn a_new_size_among_known_ones_is_odd() {
        let mut familiar = Familiar::default();
        let round =
            |familiar: &mut Familiar| (1..=40).filter(|&size| familiar.is_odd(request(size * 4096))).count();
        assert_eq!(round(&mut familiar), 0, "all is new at first");
        assert_eq!(round(&mut familiar), 0);
        for stray in 0..1000 {
            assert!(familiar.is_odd(request((1 << 30) + stray * 16)), "{stray}");
            assert_eq!(round(&mut familiar), 0, "{stray}");
        }
    }

    #[test]
    fn another_sequence_is_odd_once() {
        let mut familiar = Familiar::default();
        for sequence in 1..20_u64 {
            let odd =
                (0..3).flat_map(|_| 1..=40).filter(|&size| familiar.is_odd(request(sequence << 30 | size)));
            assert_eq!(odd.count(), usize::from(sequence > 1), "{sequence}");
        }
    }
}
