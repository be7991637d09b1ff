//! Minimum cuts in whole numbers.
//!
//! # References
//!
//! 1. E. A. Dinic: Algorithm for solution of a problem of maximum flow in networks with power estimation. Soviet Math.
//!    Doklady 11, 1970. Shortest augmenting paths by levels.
//!
//! # Complexity
//!
//! O(v^2 e) at worst; about O(e) for each level here, where paths are short.

use std::collections::VecDeque;

/// A capacity that no cut pays.
pub(super) const UNCUT: u64 = 1 << 61;

#[derive(Clone, Copy, Debug)]
struct Edge {
    to: usize,
    room: u64,
}

/// A directed network; edges come in pairs, each beside its reverse.
#[derive(Clone, Debug, Default)]
pub(super) struct Network {
    edges: Vec<Edge>,
    /// For each node, its edges.
    out: Vec<Vec<usize>>,
}

impl Network {
    pub(super) fn new(nodes: usize) -> Self {
        Self { edges: Vec::new(), out: vec![Vec::new(); nodes] }
    }

    pub(super) fn add_edge(&mut self, from: usize, to: usize, capacity: u64) {
        for (from, to, room) in [(from, to, capacity), (to, from, 0)] {
            self.out[from].push(self.edges.len());
            self.edges.push(Edge { to, room });
        }
    }

    /// The least capacity between two nodes, and whether each node is on the side of the source. The sum of all
    /// capacities below [`UNCUT`] must be less than it.
    pub(super) fn minimum_cut(mut self, source: usize, sink: usize) -> (u64, Vec<bool>) {
        let mut flow = 0;
        loop {
            let levels = self.node_levels(source);
            if levels[sink] == usize::MAX {
                return (flow, levels.into_iter().map(|level| level != usize::MAX).collect());
            }
            let mut next = vec![0; self.out.len()];
            while let Some(path) = self.find_path(source, sink, &levels, &mut next) {
                flow += self.push_along(&path);
            }
        }
    }

    fn node_levels(&self, source: usize) -> Vec<usize> {
        let mut levels = vec![usize::MAX; self.out.len()];
        levels[source] = 0;
        let mut queue = VecDeque::from([source]);
        while let Some(node) = queue.pop_front() {
            for edge in self.out[node].iter().map(|&edge| self.edges[edge]).filter(|edge| edge.room > 0) {
                if levels[edge.to] == usize::MAX {
                    levels[edge.to] = levels[node] + 1;
                    queue.push_back(edge.to);
                }
            }
        }
        levels
    }

    /// A path along ascending levels. `next` counts the edges of each node that lead nowhere.
    fn find_path(
        &self,
        source: usize,
        sink: usize,
        levels: &[usize],
        next: &mut [usize],
    ) -> Option<Vec<usize>> {
        let mut path: Vec<usize> = Vec::new();
        let mut node = source;
        while node != sink {
            if let Some(&edge) = self.out[node].get(next[node]) {
                let Edge { to, room } = self.edges[edge];
                if room > 0 && levels[to] == levels[node] + 1 {
                    path.push(edge);
                    node = to;
                } else {
                    next[node] += 1;
                }
            } else {
                let back = path.pop()?;
                node = self.edges[back ^ 1].to;
                next[node] += 1;
            }
        }
        Some(path)
    }

    fn push_along(&mut self, path: &[usize]) -> u64 {
        let flow = path.iter().map(|&edge| self.edges[edge].room).min().unwrap_or(0);
        for &edge in path {
            self.edges[edge].room -= flow;
            self.edges[edge ^ 1].room += flow;
        }
        flow
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The least cut by trying every set of nodes.
    fn by_all_sets(nodes: usize, edges: &[(usize, usize, u64)], source: usize, sink: usize) -> u64 {
        let sets = (0_u32..1 << nodes).filter(|set| set >> source & 1 == 1 && set >> sink & 1 == 0);
        let cost = |set: u32| {
            let cut = edges.iter().filter(|&&(from, to, _)| set >> from & 1 == 1 && set >> to & 1 == 0);
            cut.map(|&(.., capacity)| capacity).sum()
        };
        sets.map(cost).min().expect("the source alone is a set")
    }

    #[test]
    fn cut_is_the_least_of_all_sets() {
        use rand::{RngExt, SeedableRng};
        let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(1);
        for _ in 0..300 {
            let nodes = rng.random_range(2..8);
            let edges: Vec<_> = (0..rng.random_range(0..20))
                .map(|_| (rng.random_range(0..nodes), rng.random_range(0..nodes), rng.random_range(0..9)))
                .collect();
            let mut network = Network::new(nodes);
            edges.iter().for_each(|&(from, to, capacity)| network.add_edge(from, to, capacity));
            let (cut, side) = network.minimum_cut(0, nodes - 1);
            assert_eq!(cut, by_all_sets(nodes, &edges, 0, nodes - 1));
            let across = edges.iter().filter(|&&(from, to, _)| side[from] && !side[to]);
            assert_eq!(across.map(|&(.., capacity)| capacity).sum::<u64>(), cut);
        }
    }
}
