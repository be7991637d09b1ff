//! Finds the best of the remaining live ranges that lie within a window.
//!
//! A k-d tree over the points (start, end), split at medians of start and end in turn. Each range has a rank: a lower
//! rank is better, and its range is never shorter than that of a higher rank.
//!
//! # Complexity
//!
//! O(n log n) to build; a query crosses O(sqrt n) nodes at worst (those that its two edges cut), and O(log n) if the
//! window is short.

use planlab_dsa::LiveRange;

const LEAF: usize = 8;

/// Replaces the rank of a point that was taken.
const TAKEN: u32 = u32::MAX;

#[derive(Clone, Copy, Debug)]
struct Point {
    start: u32,
    end: u32,
    rank: u32,
}

/// The bounding box of the remaining points below a node, and the best of them.
#[derive(Clone, Copy, Debug)]
struct Node {
    starts: (u32, u32),
    ends: (u32, u32),
    best: u32,
}

impl Node {
    const EMPTY: Self = Self { starts: (u32::MAX, 0), ends: (u32::MAX, 0), best: TAKEN };

    fn from_points(points: &[Point]) -> Self {
        points.iter().filter(|point| point.rank != TAKEN).fold(Self::EMPTY, |all, point| {
            let (starts, ends) = ((point.start, point.start), (point.end, point.end));
            all.join_with(&Self { starts, ends, best: point.rank })
        })
    }

    fn join_with(&self, other: &Self) -> Self {
        let both = |a: (u32, u32), b: (u32, u32)| (a.0.min(b.0), a.1.max(b.1));
        let (starts, ends) = (both(self.starts, other.starts), both(self.ends, other.ends));
        Self { starts, ends, best: self.best.min(other.best) }
    }
}

/// A query: the best point with `left <= start` and `end <= right`.
struct RangeQuery {
    left: u32,
    right: u32,
    best: u32,
    visited: u64,
}

impl RangeQuery {
    /// Whether some point below the node may lie in the window and be better than the best so far.
    fn may_gain(&self, node: &Node, widths: &[u32]) -> bool {
        let meets = node.best < self.best && self.left <= node.starts.1 && node.ends.0 <= self.right;
        meets && {
            let widest = node.ends.1.min(self.right).saturating_sub(node.starts.0.max(self.left));
            widths.get(self.best as usize).is_none_or(|&best| widest >= best)
        }
    }

    const fn encloses_node(&self, node: &Node) -> bool {
        self.left <= node.starts.0 && node.ends.1 <= self.right
    }
}

/// The remaining live ranges.
#[derive(Debug)]
pub(super) struct LongestWithin {
    points: Vec<Point>,
    /// The index in `points` of each rank.
    places: Vec<u32>,
    widths: Vec<u32>,
    /// A perfect binary tree, its root at 1. A node halves the points of its parent.
    nodes: Vec<Node>,
    /// The number of nodes that the last query visited.
    pub(super) visited: u64,
}

impl LongestWithin {
    /// The ranges by rank, the longest first.
    pub(super) fn new(ranges: impl Iterator<Item = LiveRange>) -> Self {
        let ranked = ranges.zip(0_u32..);
        let mut points: Vec<Point> =
            ranked.map(|(r, rank)| Point { start: r.start().get(), end: r.end().get(), rank }).collect();
        let widths: Vec<u32> = points.iter().map(|point| point.end - point.start).collect();
        debug_assert!(widths.is_sorted_by(|a, b| a >= b), "a better rank is never shorter");
        let leaves = points.len().div_ceil(LEAF).next_power_of_two();
        let mut nodes = vec![Node::EMPTY; 2 * leaves];
        build_tree(&mut nodes, 1, &mut points, true);
        let mut places = vec![0; points.len()];
        for (place, point) in (0_u32..).zip(&points) {
            places[point.rank as usize] = place;
        }
        Self { points, places, widths, nodes, visited: 0 }
    }

    /// Takes out the range of the lowest rank that begins at `left` or later and ends at `right` or before; returns its
    /// rank.
    pub(super) fn take_longest(&mut self, left: u32, right: u32) -> Option<u32> {
        let mut search = RangeQuery { left, right, best: TAKEN, visited: 0 };
        self.search_node(1, 0, self.points.len(), &mut search);
        self.visited = search.visited;
        if search.best == TAKEN {
            return None;
        }
        let place = self.places[search.best as usize] as usize;
        self.remove_place(1, 0, self.points.len(), place);
        Some(search.best)
    }

    fn is_leaf(&self, node: usize) -> bool {
        2 * node >= self.nodes.len()
    }

    fn search_node(&self, node: usize, from: usize, to: usize, search: &mut RangeQuery) {
        search.visited += 1;
        let here = &self.nodes[node];
        if !search.may_gain(here, &self.widths) {
            return;
        }
        if search.encloses_node(here) {
            search.best = here.best;
        } else if self.is_leaf(node) {
            let inside = |point: &&Point| search.left <= point.start && point.end <= search.right;
            let best = self.points[from..to].iter().filter(inside).map(|point| point.rank).min();
            search.best = search.best.min(best.unwrap_or(TAKEN));
        } else {
            let middle = from.midpoint(to);
            let halves = [(2 * node, from, middle), (2 * node + 1, middle, to)];
            let swap = usize::from(self.nodes[2 * node].best > self.nodes[2 * node + 1].best);
            for (node, from, to) in [halves[swap], halves[1 - swap]] {
                self.search_node(node, from, to, search);
            }
        }
    }

    fn remove_place(&mut self, node: usize, from: usize, to: usize, place: usize) {
        self.nodes[node] = if self.is_leaf(node) {
            self.points[place].rank = TAKEN;
            Node::from_points(&self.points[from..to])
        } else {
            let middle = from.midpoint(to);
            if place < middle {
                self.remove_place(2 * node, from, middle, place);
            } else {
                self.remove_place(2 * node + 1, middle, to, place);
            }
            self.nodes[2 * node].join_with(&self.nodes[2 * node + 1])
        };
    }
}

fn build_tree(nodes: &mut [Node], node: usize, points: &mut [Point], by_start: bool) {
    if 2 * node >= nodes.len() {
        nodes[node] = Node::from_points(points);
        return;
    }
    let middle = points.len() / 2;
    if middle < points.len() {
        let key = |point: &Point| if by_start { (point.start, point.rank) } else { (point.end, point.rank) };
        points.select_nth_unstable_by_key(middle, key);
    }
    let (low, high) = points.split_at_mut(middle);
    build_tree(nodes, 2 * node, low, !by_start);
    build_tree(nodes, 2 * node + 1, high, !by_start);
    nodes[node] = nodes[2 * node].join_with(&nodes[2 * node + 1]);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn it_takes_the_best_range_of_a_window(
            mut ranges in prop::collection::vec((0_u32..40, 1_u32..20), 0..120),
            windows in prop::collection::vec((0_u32..40, 1_u32..60), 0..150),
        ) {
            ranges.sort_by_key(|&(_, width)| std::cmp::Reverse(width));
            let live = |(start, width)| LiveRange::new(start, start + width).expect("not empty");
            let mut fast = LongestWithin::new(ranges.iter().copied().map(live));
            let mut plain: Vec<Option<LiveRange>> = ranges.iter().copied().map(live).map(Some).collect();
            for window in windows.into_iter().map(live) {
                let expected = plain.iter().position(|r| r.is_some_and(|range| window.encloses(range)));
                if let Some(index) = expected {
                    plain[index] = None;
                }
                let found = fast.take_longest(window.start().get(), window.end().get());
                prop_assert_eq!(found.map(|rank| rank as usize), expected);
            }
        }
    }
}
