//! Saves the activations with the most seconds whose sizes, rounded to slots, fit the budget: a table over slots.
//!
//! All activations together have 10,000 slots. Each size is rounded to the nearest number of slots, so the saved bytes
//! may exceed the budget by half a slot for each activation, and those below half a slot are free.
//!
//! # References
//!
//! 1. PyTorch, `torch/_functorch/_activation_checkpointing/knapsack.py`: the solver `dp`.
//!
//! # Complexity
//!
//! O(n * 10,000), time and memory.
//!
//! # Deviations from the paper
//!
//! Seconds are numbers of 64 bits; PyTorch's have 32.

use super::activations::{Activation, total_bytes};

/// The slots of all activations together.
const SLOTS: f64 = 10_000.0;

/// For each activation, whether it is saved. The budget is a share of all bytes.
pub(super) fn choose_by_slots(activations: &[Activation], budget: f64) -> Vec<bool> {
    let total = total_bytes(activations) as f64;
    let weights: Vec<usize> =
        activations.iter().map(|activation| count_slots(activation.bytes.get() as f64 / total)).collect();
    let room = count_slots(budget);
    // For each number of slots: the most seconds of the activations so far.
    let mut best = vec![0.0; room + 1];
    let mut improves = vec![vec![false; room + 1]; activations.len()];
    for ((activation, &weight), improves) in activations.iter().zip(&weights).zip(&mut improves) {
        for slots in (weight..=room).rev() {
            let with = best[slots - weight] + activation.seconds;
            if with > best[slots] {
                best[slots] = with;
                improves[slots] = true;
            }
        }
    }
    let mut left = room;
    let mut saved = vec![false; activations.len()];
    for index in (0..activations.len()).rev() {
        if improves[index][left] {
            saved[index] = true;
            left -= weights[index];
        }
    }
    saved
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a share is from 0 to 1")]
fn count_slots(share: f64) -> usize {
    (share * SLOTS).round_ties_even() as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::knapsack::testing::activations;

    #[test]
    fn dense_item_gives_way_to_a_large_one() {
        let items = activations(&[(1, 2.0), (9, 9.0)]);
        assert_eq!(choose_by_slots(&items, 0.9), [false, true]);
        assert_eq!(choose_by_slots(&items, 0.1), [true, false]);
    }

    #[test]
    fn rounded_sizes_exceed_the_budget() {
        // A third has 3,333 slots: three of them fit 9,999.
        let items = activations(&[(1, 1.0), (1, 1.0), (1, 1.0)]);
        assert_eq!(choose_by_slots(&items, 0.9999), [true; 3]);
        assert_eq!(choose_by_slots(&items, 0.9998), [true, true, false]);
    }

    #[test]
    fn item_below_half_a_slot_is_free() {
        let items = activations(&[(1, 1.0), (100_000, 1.0)]);
        assert_eq!(choose_by_slots(&items, 0.0), [true, false]);
    }
}
