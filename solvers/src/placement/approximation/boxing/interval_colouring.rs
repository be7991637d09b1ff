//! Packs items into the fewest rows without overlaps.
//!
//! In the order of starts, each item goes into the lowest free row. A new row begins only if every row is taken, so
//! there are as many rows as items live at one step. For items of one height the plan is as high as the load.
//!
//! # Complexity
//!
//! O(n log n).

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::item::Item;

/// The rows, the lowest first; in each, items by start.
///
/// Of items that start together, the one that ends last comes first, then the one with the lower number.
pub(super) fn interval_colouring(mut items: Vec<Item>) -> Vec<Vec<Item>> {
    items.sort_unstable_by_key(|item| (item.start, Reverse(item.end), item.number));
    let mut rows: Vec<Vec<Item>> = Vec::new();
    let mut taken: BinaryHeap<Reverse<(u32, usize)>> = BinaryHeap::new();
    let mut free: BinaryHeap<Reverse<usize>> = BinaryHeap::new();
    for item in items {
        while let Some(&Reverse((end, row))) = taken.peek()
            && end <= item.start
        {
            taken.pop();
            free.push(Reverse(row));
        }
        let row = free.pop().map_or(rows.len(), |Reverse(row)| row);
        if row == rows.len() {
            rows.push(Vec::new());
        }
        rows[row].push(item);
        taken.push(Reverse((item.end, row)));
    }
    rows
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::placement::approximation::boxing::testing::{highest_load, item_strategy};

    proptest! {
        #[test]
        fn there_are_as_many_rows_as_items_live_at_once(rows in item_strategy(40)) {
            let coloured = interval_colouring(rows.clone());
            prop_assert_eq!(coloured.len() as u64, highest_load(&rows, |_| 1));
            prop_assert!(coloured.iter().all(|row| row.windows(2).all(|pair| pair[0].end <= pair[1].start)));
            let mut numbers: Vec<usize> = coloured.iter().flatten().map(|item| item.number).collect();
            numbers.sort_unstable();
            prop_assert_eq!(numbers, (0..rows.len()).collect::<Vec<_>>());
        }
    }
}
