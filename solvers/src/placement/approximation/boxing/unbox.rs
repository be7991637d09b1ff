//! Loose offsets: the offsets of buffers when boxes are opened in place.
//!
//! Boxes of one height are coloured, row on row. The contents of a box are coloured again, from the box's offset on,
//! and so on down to the buffers. First fit in the order of these offsets then makes a plan of true sizes, in which no
//! buffer lies higher than here.
//!
//! # Complexity
//!
//! O(n log n) for each level of nested boxes.

use std::cmp::Reverse;

use super::interval_colouring::interval_colouring;
use super::item::{Boxed, Item};

/// How items of several heights lie in a box.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Shelves {
    /// In the rows of one colouring, each as high as its highest item. They fit into the box, since it was made for as
    /// many rows of the highest: the loose offsets are a plan.
    #[default]
    Rows,
    /// In rows for each height, the highest below, as in the published code. They may be higher than the
    /// box: the loose offsets are only an order.
    Classes,
}

/// The offset of every item that is not a box, by number, in units of the instance's granularity.
pub(super) fn loose_offsets(boxed: Boxed, shelves: Shelves) -> Vec<u128> {
    let mut offsets = vec![0; boxed.boxes.originals];
    let mut left = vec![(boxed.items, 0_u128)];
    while let Some((items, bottom)) = left.pop() {
        for (item, offset) in unbox_shelves(items, bottom, shelves) {
            match boxed.boxes.box_contents(item) {
                Some(inside) => left.push((inside.to_vec(), offset)),
                None => offsets[item.number] = offset,
            }
        }
    }
    offsets
}

fn unbox_shelves(items: Vec<Item>, bottom: u128, shelves: Shelves) -> Vec<(Item, u128)> {
    let rows = interval_colouring(items);
    if shelves == Shelves::Rows || rows.len() <= 1 {
        return stack_rows(&rows, bottom);
    }
    let mut items: Vec<Item> = rows.into_iter().flatten().collect();
    items.sort_unstable_by_key(|item| (Reverse(item.height), item.number));
    let classes = items.chunk_by(|a, b| a.height == b.height);
    let rows: Vec<Vec<Item>> = classes.flat_map(|class| interval_colouring(class.to_vec())).collect();
    stack_rows(&rows, bottom)
}

/// Stacks rows, each as high as its highest item.
fn stack_rows(rows: &[Vec<Item>], mut bottom: u128) -> Vec<(Item, u128)> {
    let mut placed = Vec::new();
    for row in rows {
        placed.extend(row.iter().map(|&item| (item, bottom)));
        bottom += row.iter().map(|item| u128::from(item.height)).max().unwrap_or(0);
    }
    placed
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::placement::approximation::boxing::item::Boxes;
    use crate::placement::approximation::boxing::testing::{in_a_run, item_strategy};
    use crate::placement::approximation::boxing::theorem_16::{add_dummy, find_epsilon, finish_boxes};

    fn overlap(a: &Item, b: &Item) -> bool {
        a.start < b.end && b.start < a.end
    }

    proptest! {
        #[test]
        fn rows_make_a_plan(original in item_strategy(60), seed in 0_u64..5) {
            prop_assume!(original.iter().any(|item| item.height != original[0].height));
            let mut all = original;
            add_dummy(&mut all);
            let boxed = in_a_run(seed, |run| {
                let (epsilon, boxed) = find_epsilon(run, &all)?;
                finish_boxes(run, boxed, epsilon)
            });
            let offsets = loose_offsets(boxed, Shelves::Rows);
            for (a, low) in all.iter().zip(&offsets) {
                for (b, other) in all.iter().zip(&offsets).filter(|(b, _)| b.number != a.number) {
                    let is_apart = low + u128::from(a.height) <= *other || other + u128::from(b.height) <= *low;
                    prop_assert!(!overlap(a, b) || is_apart, "{:?} at {} and {:?} at {}", a, low, b, other);
                }
            }
        }
    }

    fn three_in_a_box() -> Boxed {
        let item = |start, end, height, number| Item { start, end, height, number };
        let mut boxes = Boxes::new(3);
        let inside = [item(0, 4, 2, 0), item(0, 2, 5, 1), item(2, 4, 3, 2)];
        let outer = boxes.close_box(10, inside);
        Boxed { boxes, items: vec![outer] }
    }

    #[test]
    fn a_row_is_as_high_as_what_is_highest_in_it() {
        assert_eq!(loose_offsets(three_in_a_box(), Shelves::Rows), [0, 2, 2]);
    }

    #[test]
    fn classes_lie_one_on_another_the_highest_below() {
        assert_eq!(loose_offsets(three_in_a_box(), Shelves::Classes), [8, 0, 5]);
    }
}
