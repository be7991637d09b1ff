//! The highest end over a run of columns, for planners that never place anything below what is placed.
//!
//! # Complexity
//!
//! O(log n) for a query or a change with n columns; O(n) memory.

use std::ops::Range;

use super::parts;

/// A number for each column, 0 at first; numbers only grow.
#[derive(Clone, Debug)]
pub(crate) struct Tops {
    /// A perfect binary tree: the root at 1, the leaves in the last half.
    nodes: Vec<Node>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Node {
    /// The level to which all of the node's columns were raised at once.
    all: u64,
    /// The highest of the node's columns, ignoring levels stored at nodes above it.
    highest: u64,
}

impl Tops {
    pub(crate) fn new(columns: usize) -> Self {
        Self { nodes: vec![Node::default(); 2 * columns.next_power_of_two()] }
    }

    /// The highest of a non-empty run of columns.
    pub(crate) fn highest_of(&self, columns: &Range<usize>) -> u64 {
        let inside = parts(self.nodes.len() / 2, columns).map(|node| self.nodes[node].highest);
        let above = self.nodes_above(columns).map(|node| self.nodes[node].all);
        inside.chain(above).max().unwrap_or(0)
    }

    /// Raises each of a non-empty run of columns to at least `to`.
    pub(crate) fn raise_to(&mut self, columns: &Range<usize>, to: u64) {
        for index in parts(self.nodes.len() / 2, columns) {
            let node = &mut self.nodes[index];
            *node = Node { all: node.all.max(to), highest: node.highest.max(to) };
        }
        for index in self.nodes_above(columns) {
            let node = &mut self.nodes[index];
            node.highest = node.highest.max(to);
        }
    }

    /// The nodes above the first and above the last column; these include all nodes above the parts.
    fn nodes_above(&self, columns: &Range<usize>) -> impl Iterator<Item = usize> + use<> {
        let leaves = self.nodes.len() / 2;
        let up = |leaf: usize| std::iter::successors(Some(leaf / 2), |&node| (node > 1).then_some(node / 2));
        up(columns.start + leaves).chain(up(columns.end + leaves - 1))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn every_run_gives_its_highest_column(
            count in 1_usize..70,
            steps in prop::collection::vec((0_usize..70, 0_usize..70, 0_u64..50, 0_usize..70, 0_usize..70), 0..40),
        ) {
            let run = |a: usize, b: usize| (a % count).min(b % count)..(a % count).max(b % count) + 1;
            let (mut tops, mut plain) = (Tops::new(count), vec![0_u64; count]);
            for (a, b, to, c, d) in steps {
                tops.raise_to(&run(a, b), to);
                plain[run(a, b)].iter_mut().for_each(|top| *top = to.max(*top));
                let expected = plain[run(c, d)].iter().copied().max();
                prop_assert_eq!(Some(tops.highest_of(&run(c, d))), expected);
            }
        }
    }
}
