//! Corollary 15: boxes of one height for items of many heights.
//!
//! Items go into buckets by height, from one power of 1 + e to the next. Each item counts as high as the upper edge of
//! its bucket. So all items of a bucket have height 1 in that unit, and Theorem 2 makes boxes that hold as many of them
//! as fit in the height.
//!
//! # References
//!
//! 1. A. L. Buchsbaum, H. Karloff, C. Kenyon, N. Reingold and M. Thorup, *OPT versus LOAD in dynamic storage
//!    allocation*, SIAM Journal on Computing 33(3), 2004, doi:10.1137/S0097539703423941, Corollary 15.
//!
//! # Complexity
//!
//! Theorem 2's for each bucket; O(log(highest) / e) buckets.

use planlab_dsa::{Halt, Run};

use super::item::{Boxes, Item, round_down};
use super::theorem_2::{Goal, theorem_2};

/// Puts every item into a box of `height`, which no item exceeds.
pub(super) fn corollary_15(
    run: &mut Run<'_>,
    boxes: &mut Boxes,
    mut items: Vec<Item>,
    height: u64,
    epsilon: f64,
) -> Result<Vec<Item>, Halt> {
    items.sort_unstable_by_key(|item| (item.height, item.number));
    let mut boxed = Vec::new();
    let mut edge = 1.0;
    let mut left = &items[..];
    while let Some(lowest) = left.first() {
        while edge < lowest.height as f64 {
            edge *= 1.0 + epsilon;
        }
        // Heights above 2^53 are rounded on the way.
        let unit = round_down(edge).max(lowest.height);
        let (bucket, rest) = left.split_at(left.partition_point(|item| item.height <= unit));
        let capacity = usize::try_from((height / unit).max(1)).unwrap_or(usize::MAX);
        let goal = Goal { capacity, height: height.max(unit), epsilon };
        boxed.extend(theorem_2(run, boxes, bucket.to_vec(), goal)?);
        left = rest;
    }
    Ok(boxed)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::placement::approximation::boxing::testing::{
        highest_load, in_a_run, item_strategy, original_items,
    };

    proptest! {
        #[test]
        fn what_lies_in_a_box_is_never_higher_than_the_box(
            items in item_strategy(80),
            height in 70_u64..400,
            epsilon in 0.1_f64..0.62,
        ) {
            let (boxes, boxed) = in_a_run(3, |run| {
                let mut boxes = Boxes::new(items.len());
                let boxed = corollary_15(run, &mut boxes, items.clone(), height, epsilon)?;
                Ok((boxes, boxed))
            });
            for &item in &boxed {
                prop_assert_eq!(item.height, height);
                let inside = boxes.box_contents(item).expect("a box");
                prop_assert!(highest_load(inside, |item| item.height) <= height);
            }
            prop_assert_eq!(original_items(&boxes, &boxed), (0..items.len()).collect::<Vec<_>>());
        }
    }
}
