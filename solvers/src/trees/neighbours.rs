//! Finds the live ranges that overlap a given one.
//!
//! Small instances get lists that are made once. Above [`MOST_LISTED`] entries there are no lists: the live ranges are
//! sorted by start under a tree of the latest end, and each query walks the tree. So 100,000 buffers with hundreds of
//! millions of overlapping pairs need a few megabytes.
//!
//! # Complexity
//!
//! For n buffers and k answers: O(n log n) to build the tree, O(k) from the lists, O(log n + k log (n / k))
//! from the tree.

use planlab_dsa::{Halt, Instance};

use super::adjacency::Adjacency;
use crate::tick::Tick;

/// The most entries of all lists together: 4 bytes each.
const MOST_LISTED: usize = 1 << 24;

/// The buffers whose live ranges overlap a given one's, and those that must be kept apart from it.
#[derive(Clone, Debug)]
pub(crate) struct Neighbours {
    lives: Vec<(u32, u32)>,
    apart: Adjacency,
    tree: Tree,
    lists: Option<Adjacency>,
}

impl Neighbours {
    pub(crate) fn new(instance: &Instance, tick: &mut Tick<'_>) -> Result<Self, Halt> {
        Self::with_room(instance, MOST_LISTED, tick)
    }

    pub(crate) fn with_room(instance: &Instance, most: usize, tick: &mut Tick<'_>) -> Result<Self, Halt> {
        let lives: Vec<(u32, u32)> = instance.buffers().iter().map(|buffer| buffer.live.into()).collect();
        let (tree, apart) = (Tree::new(&lives), Adjacency::kept_apart(instance));
        let mut this = Self { lives, apart, tree, lists: None };
        this.lists = this.list_neighbours(most, tick)?;
        Ok(this)
    }

    fn list_neighbours(&self, most: usize, tick: &mut Tick<'_>) -> Result<Option<Adjacency>, Halt> {
        let (mut starts, mut partners, mut found) = (vec![0], Vec::new(), Vec::new());
        for id in 0..as_number(self.lives.len()) {
            self.search_tree(id, &mut found);
            tick(1 + found.len() as u64)?;
            if partners.len() + found.len() > most {
                return Ok(None);
            }
            partners.extend_from_slice(&found);
            starts.push(as_number(partners.len()));
        }
        Ok(Some(Adjacency { starts, partners }))
    }

    /// The neighbours of a buffer, without itself, each once; always in the same order.
    pub(crate) fn neighbours_of<'n>(&'n self, id: u32, scratch: &'n mut Vec<u32>) -> &'n [u32] {
        match &self.lists {
            Some(lists) => lists.of(id),
            None => {
                self.search_tree(id, scratch);
                scratch
            }
        }
    }

    fn search_tree(&self, id: u32, found: &mut Vec<u32>) {
        found.clear();
        let (start, end) = self.lives[id as usize];
        self.tree.collect_overlapping(start, end, found);
        found.retain(|&other| other != id);
        for &other in self.apart.of(id) {
            let (s, e) = self.lives[other as usize];
            if e <= start || end <= s {
                found.push(other);
            }
        }
    }

    /// Whether two buffers must not share an address at any step.
    pub(crate) fn are_apart(&self, id: u32, other: u32) -> bool {
        self.apart.of(id).binary_search(&other).is_ok()
    }

    pub(crate) fn overlap(&self, id: u32, other: u32) -> bool {
        let ((s, e), (start, end)) = (self.lives[id as usize], self.lives[other as usize]);
        s < end && start < e
    }
}

fn as_number(index: usize) -> u32 {
    u32::try_from(index).expect("lists are shorter than 2^32")
}

/// Live ranges sorted by start, and over them a perfect tree of the latest end.
#[derive(Clone, Debug)]
struct Tree {
    sorted: Vec<(u32, u32)>,
    latest: Vec<u32>,
    leaves: usize,
}

impl Tree {
    fn new(lives: &[(u32, u32)]) -> Self {
        let mut sorted: Vec<(u32, u32)> = lives.iter().zip(0..).map(|(live, id)| (live.0, id)).collect();
        sorted.sort_unstable();
        let leaves = lives.len().next_power_of_two();
        let mut latest = vec![0; 2 * leaves];
        for (at, &(_, id)) in sorted.iter().enumerate() {
            latest[leaves + at] = lives[id as usize].1;
        }
        for node in (1..leaves).rev() {
            latest[node] = latest[2 * node].max(latest[2 * node + 1]);
        }
        Self { sorted, latest, leaves }
    }

    fn collect_overlapping(&self, start: u32, end: u32, found: &mut Vec<u32>) {
        let begun = self.sorted.partition_point(|&(first, _)| first < end);
        self.descend_node(1, 0, self.leaves, begun, start, found);
    }

    fn descend_node(
        &self,
        node: usize,
        low: usize,
        width: usize,
        begun: usize,
        start: u32,
        found: &mut Vec<u32>,
    ) {
        if low >= begun || self.latest[node] <= start {
            return;
        }
        if width == 1 {
            found.push(self.sorted[low].1);
            return;
        }
        let half = width / 2;
        self.descend_node(2 * node, low, half, begun, start, found);
        self.descend_node(2 * node + 1, low + half, half, begun, start, found);
    }
}

#[cfg(test)]
mod tests {
    use planlab_dsa::testing::{Shape, instances};
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn lists_and_tree_give_what_overlaps(
            instance in instances(Shape::plain_buffers().with_max_buffers(30).with_max_steps(20).with_apart(true)),
        ) {
            let listed = Neighbours::new(&instance, &mut |_| Ok(())).expect("no limit");
            let searched = Neighbours::with_room(&instance, 0, &mut |_| Ok(())).expect("no limit");
            for id in 0..as_number(instance.len()) {
                let is_near = |&other: &u32| {
                    other != id && (listed.overlap(id, other) || listed.are_apart(id, other))
                };
                let expected: Vec<u32> = (0..as_number(instance.len())).filter(is_near).collect();
                for neighbours in [&listed, &searched] {
                    let mut scratch = Vec::new();
                    let mut found = neighbours.neighbours_of(id, &mut scratch).to_vec();
                    found.sort_unstable();
                    prop_assert_eq!(&found, &expected);
                }
            }
        }
    }
}
