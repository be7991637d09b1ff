//! Finds items that can be set aside: there is room for them whatever the others do.
//!
//! A neighbour of size w rules out at most `w + z - 1` offsets for an item of size z. If all its neighbours together
//! rule out fewer offsets than a capacity offers, the item has a place in every plan of the others. The search leaves
//! it out, which may free others in turn. In a net, this removes most of the small buffers away from the peak.
//!
//! # Complexity
//!
//! O(n log n) for each of a few passes: a sum over neighbours is a difference of two prefix sums, one of the items that
//! begin before the item ends and one of those that end before it begins.

use super::item::Item;

/// The most passes over all items; each can free more.
const PASSES: usize = 8;

/// The indices of items that can be set aside at every capacity of at least `capacity` units, in the order of removal.
/// Put them back in reverse.
pub(super) fn peel_items(items: &[Item], sections: usize, capacity: u64) -> Vec<usize> {
    let mut sums = Sums::new(sections);
    for item in items {
        sums.add_item(item, 1);
    }
    let mut is_left = vec![true; items.len()];
    let mut peeled = Vec::new();
    for _ in 0..PASSES {
        let before = peeled.len();
        for (at, item) in items.iter().enumerate() {
            if is_left[at] && item.can_be_peeled() && sums.has_room(item, capacity) {
                is_left[at] = false;
                sums.add_item(item, -1);
                peeled.push(at);
            }
        }
        if peeled.len() == before {
            break;
        }
    }
    peeled
}

/// Units and counts of items by first section, and by the section after the last.
struct Sums {
    starts: Vec<(i128, i128)>,
    ends: Vec<(i128, i128)>,
}

impl Sums {
    fn new(sections: usize) -> Self {
        Self { starts: vec![(0, 0); sections + 2], ends: vec![(0, 0); sections + 2] }
    }

    fn add_item(&mut self, item: &Item, sign: i128) {
        let change = (sign * i128::from(item.size), sign);
        add_at(&mut self.starts, item.hull.start as usize, change);
        add_at(&mut self.ends, item.hull.end as usize, change);
    }

    /// Whether the neighbours of an item leave room for it.
    fn has_room(&self, item: &Item, capacity: u64) -> bool {
        let Some(highest) = capacity.checked_sub(item.size) else { return false };
        let begun = prefix_sum(&self.starts, item.hull.end as usize);
        let over = prefix_sum(&self.ends, item.hull.start as usize + 1);
        let (size, align) = (i128::from(item.size), i128::from(item.align));
        // Without the item itself.
        let (units, count) = (begun.0 - over.0 - size, begun.1 - over.1 - 1);
        let ruled_out = (units + count * (size - 1)) / align + count;
        let offered = i128::from(highest) / align + 1;
        if align == 1 { units + count * (size - 1) < offered } else { ruled_out < offered }
    }
}

fn add_at(tree: &mut [(i128, i128)], index: usize, change: (i128, i128)) {
    let mut at = index + 1;
    while at < tree.len() {
        tree[at].0 += change.0;
        tree[at].1 += change.1;
        at += at & at.wrapping_neg();
    }
}

/// The sum over all indices below `end`.
fn prefix_sum(tree: &[(i128, i128)], end: usize) -> (i128, i128) {
    let (mut at, mut sum) = (end, (0, 0));
    while at > 0 {
        sum = (sum.0 + tree[at].0, sum.1 + tree[at].1);
        at -= at & at.wrapping_neg();
    }
    sum
}

#[cfg(test)]
mod tests {
    use crate::feasibility::Problem;
    use crate::placement::testing::test_instance;

    /// The number of buffers `(size, start, end)` that remain at a capacity.
    fn left(rows: &[(u64, u32, u32)], capacity: u64) -> usize {
        let instance = test_instance(rows);
        let (problem, aside) = Problem::new(&instance).expect("plain").peel_for(&instance, capacity);
        assert_eq!(problem.movable_items() + aside.len(), rows.len());
        problem.movable_items()
    }

    #[test]
    fn a_buffer_goes_where_its_neighbours_cannot_rule_everything_out() {
        // At 10 bytes, one of 3 beside one of 4 loses 6 offsets of 8; beside two of 4, all of them.
        assert_eq!(left(&[(3, 0, 2), (4, 0, 2)], 10), 0);
        assert_eq!(left(&[(3, 0, 2), (4, 0, 2), (4, 1, 3)], 11), 3);
        // Once the last, which has room, is gone, the others have room, too.
        assert_eq!(left(&[(3, 0, 2), (4, 0, 2), (4, 2, 3)], 10), 0);
    }
}
