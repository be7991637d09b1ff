//! The largest of a run of numbers, and its first place, in O(log n).

use std::ops::Range;

use super::parts;

/// A segment tree over fixed numbers.
#[derive(Clone, Debug)]
pub(crate) struct RangeMax {
    /// Leaves from `count` on; each inner node holds the index of the better of its two children.
    tree: Vec<u32>,
    values: Vec<u64>,
}

impl RangeMax {
    /// A tree over `values`; O(n).
    pub(crate) fn new(values: Vec<u64>) -> Self {
        let count = values.len();
        let mut tree = vec![0_u32; count];
        tree.extend((0_u32..).take(count));
        let mut this = Self { tree, values };
        for node in (1..count).rev() {
            this.tree[node] = this.better_of(this.tree[2 * node], this.tree[2 * node + 1]);
        }
        this
    }

    fn better_of(&self, a: u32, b: u32) -> u32 {
        let key = |index: u32| (self.values[index as usize], std::cmp::Reverse(index));
        if key(a) >= key(b) { a } else { b }
    }

    /// The largest value at the indices of `range`, and its first index; `None` for an empty range.
    pub(crate) fn range_maximum(&self, range: Range<usize>) -> Option<(u64, usize)> {
        let candidates = parts(self.values.len(), &range).map(|node| self.tree[node]);
        let best = candidates.reduce(|best, index| self.better_of(best, index));
        best.map(|index| (self.values[index as usize], index as usize))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_range_gives_its_first_largest() {
        let values = vec![3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 9, 9];
        let tree = RangeMax::new(values.clone());
        for low in 0..=values.len() {
            for high in low..=values.len() {
                let best = (low..high).rev().max_by_key(|&index| values[index]);
                assert_eq!(
                    tree.range_maximum(low..high),
                    best.map(|index| (values[index], index)),
                    "{low}..{high}"
                );
            }
        }
    }
}
