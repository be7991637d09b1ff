//! A table of states that are known to fail.
//!
//! The outcome of a partial plan depends only on the remaining items, the lowest offset that each may take, and whether
//! the item would rest there on something placed. Two ways to the same state fail together, whatever the order in which
//! their items were placed and ranked. A state that fails at one capacity fails at every lower one.
//!
//! The table identifies a state by a 128-bit hash: a proof that uses the table is sound except for a chance of about
//! `n^2 / 2^128` in n states. Certificates do not use it.

/// Hash of a state: the exclusive or of its items' hashes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct State(u64, u64);

impl State {
    /// Adds an item whose lowest offset is `low`.
    pub(super) fn add_item(&mut self, item: usize, low: u64, rests: bool) {
        let word = low << 1 | u64::from(rests);
        let first = fold_product(word ^ 0x9E37_79B9_7F4A_7C15, (item as u64) ^ 0xD6E8_FEB8_6659_FD93);
        let second = fold_product(first ^ word, 0xE703_7ED1_A0B4_28DB);
        self.0 ^= fold_product(second ^ item as u64, 0x5899_65CC_7537_4CC3);
        self.1 ^= second;
    }
}

/// Both halves of a product, combined.
fn fold_product(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b | 1);
    let high = u64::try_from(product >> 64).unwrap_or(0);
    let low = u64::try_from(product & u128::from(u64::MAX)).unwrap_or(0);
    high ^ low ^ a.rotate_left(32)
}

#[derive(Clone, Copy, Debug, Default)]
struct Entry {
    state: State,
    /// The capacity at which it failed plus one; 0: no entry.
    below: u64,
}

/// Failed states, each with the capacity at which it failed. A newer state may replace an older one.
#[derive(Clone, Debug)]
pub(super) struct Memo {
    entries: Vec<Entry>,
    kept: usize,
}

impl Memo {
    const LEAST: usize = 1 << 10;
    const MOST: usize = 1 << 20;

    pub(super) fn new() -> Self {
        Self { entries: vec![Entry::default(); Self::LEAST], kept: 0 }
    }

    fn slot_of(&self, state: State) -> usize {
        usize::try_from(state.0 & (self.entries.len() as u64 - 1)).unwrap_or(0)
    }

    /// Whether the state is known to fail at `capacity`.
    pub(super) fn knows_failure(&self, state: State, capacity: u64) -> bool {
        let entry = &self.entries[self.slot_of(state)];
        entry.state == state && capacity < entry.below
    }

    pub(super) fn keep_failure(&mut self, state: State, capacity: u64) {
        if self.kept > self.entries.len() / 2 && self.entries.len() < Self::MOST {
            let old = std::mem::take(&mut self.entries);
            self.entries = vec![Entry::default(); 4 * old.len()];
            for entry in old.into_iter().filter(|entry| entry.below > 0) {
                let slot = self.slot_of(entry.state);
                self.entries[slot] = entry;
            }
        }
        let slot = self.slot_of(state);
        if self.entries[slot].below == 0 {
            self.kept += 1;
        }
        self.entries[slot] = Entry { state, below: capacity + 1 };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(items: &[(usize, u64, bool)]) -> State {
        let mut state = State::default();
        items.iter().for_each(|&(item, low, rests)| state.add_item(item, low, rests));
        state
    }

    #[test]
    fn a_state_does_not_depend_on_the_order_of_its_items_but_on_all_else() {
        let two = state(&[(1, 5, true), (2, 7, false)]);
        assert_eq!(two, state(&[(2, 7, false), (1, 5, true)]));
        for other in
            [[(1, 5, false), (2, 7, false)], [(1, 7, true), (2, 5, false)], [(2, 5, true), (1, 7, false)]]
        {
            assert_ne!(two, state(&other));
        }
    }

    #[test]
    fn a_failure_counts_at_its_capacity_and_below() {
        let mut memo = Memo::new();
        let failed = state(&[(1, 5, true)]);
        assert!(!memo.knows_failure(failed, 0) && !memo.knows_failure(State::default(), 0));
        memo.keep_failure(failed, 10);
        assert!(
            memo.knows_failure(failed, 10)
                && memo.knows_failure(failed, 3)
                && !memo.knows_failure(failed, 11)
        );
        for low in 0..5_000 {
            memo.keep_failure(state(&[(2, low, true)]), 10);
        }
        assert!(memo.entries.len() > Memo::LEAST);
        assert!(memo.knows_failure(state(&[(2, 4_999, true)]), 10));
    }
}
