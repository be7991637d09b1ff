//! A list of changing numbers, and a search for the first that is at most a limit, in O(log n).

/// A perfect binary tree of minima.
#[derive(Clone, Debug)]
pub(crate) struct FirstAtMost {
    leaves: usize,
    tree: Vec<u64>,
}

impl FirstAtMost {
    /// `count` empty places.
    pub(crate) fn new(count: usize) -> Self {
        let leaves = count.next_power_of_two();
        Self { leaves, tree: vec![u64::MAX; 2 * leaves] }
    }

    pub(crate) fn set_number(&mut self, place: usize, number: Option<u32>) {
        let mut node = place + self.leaves;
        self.tree[node] = number.map_or(u64::MAX, u64::from);
        while node > 1 {
            node /= 2;
            self.tree[node] = self.tree[2 * node].min(self.tree[2 * node + 1]);
        }
    }

    /// The first place from `from` on whose number is at most `limit`.
    pub(crate) fn find_at_most(&self, from: usize, limit: u32) -> Option<usize> {
        if from >= self.leaves {
            return None;
        }
        let is_over = |node: usize| self.tree[node] > u64::from(limit);
        let mut node = from + self.leaves;
        while is_over(node) {
            // All leaves to the right of it: the sibling of the first left child on the way up.
            node >>= node.trailing_ones();
            if node == 0 {
                return None;
            }
            node += 1;
        }
        while node < self.leaves {
            node *= 2;
            node += usize::from(is_over(node));
        }
        Some(node - self.leaves)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_query_gives_the_first_place() {
        let numbers = [Some(7), None, Some(3), Some(9), Some(3), None, Some(u32::MAX), Some(0), None];
        let mut tree = FirstAtMost::new(numbers.len());
        for (place, &number) in numbers.iter().enumerate() {
            tree.set_number(place, Some(5));
            tree.set_number(place, number);
        }
        for from in 0..20 {
            for limit in [0, 2, 3, 8, 9, u32::MAX] {
                let fits = |&place: &usize| numbers[place].is_some_and(|number| number <= limit);
                let expected = (from..numbers.len()).find(fits);
                assert_eq!(tree.find_at_most(from, limit), expected, "{from} {limit}");
            }
        }
    }
}
