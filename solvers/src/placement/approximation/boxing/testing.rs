//! Random items and a run for tests of the steps of boxing.

use planlab_dsa::{Descriptor, Halt, Honours, Run};
use proptest::prelude::*;

use super::item::{Boxes, Item};
use crate::placement::testing::{self, test_descriptor};

/// Up to `count` items of heights 1 to 40 over 60 steps, numbered from 0.
pub(super) fn item_strategy(count: usize) -> impl Strategy<Value = Vec<Item>> {
    prop::collection::vec((0_u32..60, 1_u32..30, 1_u64..40), 0..count).prop_map(|rows| {
        let item = |(number, (start, width, height))| Item { start, end: start + width, height, number };
        rows.into_iter().enumerate().map(item).collect()
    })
}

/// The most of live items at one step: the sum of their sizes, or their number if each counts 1.
pub(super) fn highest_load(items: &[Item], size: fn(&Item) -> u64) -> u64 {
    let live = |step: u32| items.iter().filter(move |item| item.start <= step && step < item.end);
    items.iter().map(|item| live(item.start).map(size).sum::<u64>()).max().unwrap_or(0)
}

/// The numbers of the items that are not boxes, in the list or inside its boxes; ascending.
pub(super) fn original_items(boxes: &Boxes, items: &[Item]) -> Vec<usize> {
    let mut found = Vec::new();
    let mut left = items.to_vec();
    while let Some(item) = left.pop() {
        match boxes.box_contents(item) {
            Some(inside) => left.extend(inside),
            None => found.push(item.number),
        }
    }
    found.sort_unstable();
    found
}

/// The result of a function in a run.
pub(super) fn in_a_run<T: Send>(
    seed: u64,
    call: impl Fn(&mut Run<'_>) -> Result<T, Halt> + Send + Sync,
) -> T {
    let descriptor = Descriptor { randomized: true, ..test_descriptor("call", Honours::default()) };
    testing::in_a_run(descriptor, &testing::test_instance(&[(1, 0, 1)]), seed, call)
}
