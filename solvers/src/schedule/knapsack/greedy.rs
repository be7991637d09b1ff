//! Saves the activations with the most seconds per byte, each if it fits the rest of the budget.
//!
//! # References
//!
//! 1. PyTorch, `torch/_functorch/_activation_checkpointing/knapsack.py`: the solver `greedy`.
//!
//! # Complexity
//!
//! O(n log n).

use super::activations::{Activation, total_bytes};

/// For each activation, whether it is saved; of equals the first. The budget is a share of all bytes.
pub(super) fn choose_greedily(activations: &[Activation], budget: f64) -> Vec<bool> {
    let room = budget * total_bytes(activations) as f64;
    let ratio = |index: usize| activations[index].seconds / activations[index].bytes.get() as f64;
    let mut order: Vec<usize> = (0..activations.len()).collect();
    order.sort_by(|&a, &b| ratio(b).total_cmp(&ratio(a)));
    let mut saved = vec![false; activations.len()];
    let mut taken = 0.0;
    for index in order {
        let bytes = activations[index].bytes.get() as f64;
        if taken + bytes <= room {
            taken += bytes;
            saved[index] = true;
        }
    }
    saved
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::knapsack::testing::activations;

    #[test]
    fn small_item_fills_the_rest_of_the_budget() {
        // Seconds per byte: 1, 3/4, 1/2.
        let items = activations(&[(5, 5.0), (4, 3.0), (1, 0.5)]);
        assert_eq!(choose_greedily(&items, 0.6), [true, false, true]);
        assert_eq!(choose_greedily(&items, 0.5), [true, false, false]);
        assert_eq!(choose_greedily(&items, 0.4), [false, true, false]);
        assert_eq!(choose_greedily(&items, 0.0), [false; 3]);
    }

    #[test]
    fn large_item_is_lost_behind_a_dense_one() {
        let items = activations(&[(1, 2.0), (9, 9.0)]);
        assert_eq!(choose_greedily(&items, 0.9), [true, false]);
    }
}
