//! Lemma 1: boxes for items of height 1 that are all live at one point of time.
//!
//! Sorted by start, the items make a staircase to the left of the point, sorted by end one to its right. The earliest
//! starts and the latest ends are set aside. The rest is cut into strips, in turns of the earliest starts and of the
//! latest ends. Items of a strip of starts are boxed by end, those of a strip of ends by start, `capacity` at a time.
//!
//! ```text
//!          ______|_________        set aside: the outermost strips
//!        __|_____|_______ |        then strips from outside to inside
//!     ____|______|_____|__|
//!          starts | ends           a box of a strip of starts holds items that end at about one time
//! ```
//!
//! A strip of starts wastes less than a box at every step to the right of the point, and only one strip of ends is cut
//! by the step; the items set aside are live there, too. So the boxes take at most 1 + 4e times the load of all items,
//! at every step.
//!
//! # References
//!
//! 1. A. L. Buchsbaum, H. Karloff, C. Kenyon, N. Reingold and M. Thorup, *OPT versus LOAD in dynamic storage
//!    allocation*, SIAM Journal on Computing 33(3), 2004, doi:10.1137/S0097539703423941, Lemma 1.
//!
//! # Complexity
//!
//! O(n log n).

use std::cmp::Reverse;

use super::item::{Item, round_down};

/// The contents of each box, and the items that are left over.
#[derive(Clone, Debug, Default)]
pub(super) struct Groups {
    pub(super) boxes: Vec<Vec<Item>>,
    pub(super) unresolved: Vec<Item>,
}

/// Groups of at most `capacity` items. At most 2 * `capacity` / e^2 items are left over.
pub(super) fn lemma_1(items: Vec<Item>, capacity: usize, epsilon: f64) -> Groups {
    let outer = strip_length(capacity, epsilon.powi(2));
    if items.len() <= outer.saturating_mul(2) {
        return Groups { boxes: Vec::new(), unresolved: items };
    }
    let inner = strip_length(capacity, epsilon);
    let mut deck = Deck::new(&items);
    let mut groups = Groups { boxes: Vec::new(), unresolved: deck.earliest_starts(outer) };
    groups.unresolved.extend(deck.latest_ends(outer));
    loop {
        let (mut starts, mut ends) = (deck.earliest_starts(inner), deck.latest_ends(inner));
        if starts.is_empty() && ends.is_empty() {
            return groups;
        }
        starts.sort_unstable_by_key(|item| (Reverse(item.end), item.number));
        ends.sort_unstable_by_key(|item| (item.start, item.number));
        groups.boxes.extend(starts.chunks(capacity).chain(ends.chunks(capacity)).map(<[Item]>::to_vec));
    }
}

/// `capacity` times the reciprocal of `part`, rounded up first.
fn strip_length(capacity: usize, part: f64) -> usize {
    capacity.saturating_mul(usize::try_from(round_down(part.recip().ceil())).unwrap_or(usize::MAX))
}

/// Items that are dealt out from both ends.
struct Deck<'a> {
    items: &'a [Item],
    is_dealt: Vec<bool>,
    by_start: std::vec::IntoIter<usize>,
    by_end: std::vec::IntoIter<usize>,
}

impl<'a> Deck<'a> {
    fn new(items: &'a [Item]) -> Self {
        let mut by_start: Vec<usize> = (0..items.len()).collect();
        let mut by_end = by_start.clone();
        by_start.sort_unstable_by_key(|&index| (items[index].start, items[index].number));
        by_end.sort_unstable_by_key(|&index| (Reverse(items[index].end), items[index].number));
        let is_dealt = vec![false; items.len()];
        Self { items, is_dealt, by_start: by_start.into_iter(), by_end: by_end.into_iter() }
    }

    fn earliest_starts(&mut self, count: usize) -> Vec<Item> {
        deal_items(self.items, &mut self.is_dealt, &mut self.by_start, count)
    }

    fn latest_ends(&mut self, count: usize) -> Vec<Item> {
        deal_items(self.items, &mut self.is_dealt, &mut self.by_end, count)
    }
}

fn deal_items(
    items: &[Item],
    is_dealt: &mut [bool],
    order: impl Iterator<Item = usize>,
    count: usize,
) -> Vec<Item> {
    let left = order.filter(|&index| !std::mem::replace(&mut is_dealt[index], true));
    left.take(count).map(|index| items[index]).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Items that are all live at step 50.
    fn staircase() -> impl Strategy<Value = Vec<Item>> {
        prop::collection::vec((0_u32..=50, 51_u32..=100), 1..300).prop_map(|rows| {
            let item = |(number, (start, end))| Item { start, end, height: 1, number };
            rows.into_iter().enumerate().map(item).collect()
        })
    }

    fn is_live(item: &Item, step: u32) -> bool {
        item.start <= step && step < item.end
    }

    proptest! {
        #[test]
        fn boxes_hold_all_but_few_and_take_little_more_than_the_items(
            items in staircase(),
            capacity in 1_usize..5,
            epsilon in 0.2_f64..0.62,
        ) {
            let groups = lemma_1(items.clone(), capacity, epsilon);
            let most = 2 * strip_length(capacity, epsilon.powi(2));
            prop_assert!(groups.unresolved.len() <= most);
            prop_assert!(groups.boxes.iter().all(|group| (1..=capacity).contains(&group.len())));
            let all = groups.boxes.iter().flatten().chain(&groups.unresolved);
            let mut numbers: Vec<usize> = all.map(|item| item.number).collect();
            numbers.sort_unstable();
            prop_assert_eq!(numbers, (0..items.len()).collect::<Vec<_>>());
            for step in 0..100 {
                let load = items.iter().filter(|item| is_live(item, step)).count();
                let spans = |group: &&Vec<Item>| {
                    // All items are live at step 50, so a box is live whenever one of its items is.
                    group.iter().any(|item| is_live(item, step))
                };
                let taken = capacity * groups.boxes.iter().filter(spans).count();
                prop_assert!(taken as f64 <= (1.0 + 4.0 * epsilon) * load as f64, "step {}", step);
            }
        }
    }

    #[test]
    fn few_items_are_all_left_over() {
        let items: Vec<Item> = (0..8).map(|number| Item { start: 0, end: 1, height: 1, number }).collect();
        let groups = lemma_1(items.clone(), 1, 0.5);
        assert!(groups.boxes.is_empty());
        assert_eq!(groups.unresolved, items);
    }
}
