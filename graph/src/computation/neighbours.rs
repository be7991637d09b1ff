//! Pairs of operations as lists of neighbours, and an order that respects them.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::parts::OpId;

/// The direct successors (or predecessors) of each operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Neighbours {
    first: Vec<usize>,
    all: Vec<OpId>,
}

impl Neighbours {
    /// Builds it from pairs of `count` operations; repeated pairs count once, and neighbours ascend.
    pub(crate) fn new(count: usize, mut pairs: Vec<(OpId, OpId)>) -> Self {
        pairs.sort_unstable();
        pairs.dedup();
        let mut first = vec![0; count + 1];
        for (from, _) in &pairs {
            first[from.index() + 1] += 1;
        }
        for index in 0..count {
            first[index + 1] += first[index];
        }
        Self { first, all: pairs.into_iter().map(|(_, to)| to).collect() }
    }

    pub(crate) fn neighbours_of(&self, op: OpId) -> &[OpId] {
        &self.all[self.first[op.index()]..self.first[op.index() + 1]]
    }

    pub(crate) fn pair_count(&self) -> usize {
        self.first.len() - 1
    }

    /// The number of pairs that lead to each operation.
    pub(crate) fn in_degrees(&self) -> Vec<u32> {
        let mut degrees = vec![0; self.pair_count()];
        self.all.iter().for_each(|to| degrees[to.index()] += 1);
        degrees
    }

    pub(crate) fn reversed(&self) -> Self {
        let ids = (0..self.pair_count()).map(OpId::from_index);
        let pairs = ids.flat_map(|from| self.neighbours_of(from).iter().map(move |&to| (to, from)));
        Self::new(self.pair_count(), pairs.collect())
    }
}

/// The operations in an order in which each precedes its neighbours; among several candidates the lowest comes first.
/// `Err`: a cycle, if there is no such order; each operation in it is a neighbour of the one before.
pub(crate) fn topological_order(after: &Neighbours) -> Result<Vec<OpId>, Vec<OpId>> {
    let mut waiting = after.in_degrees();
    let ids = || (0..after.pair_count()).map(OpId::from_index);
    let mut ready: BinaryHeap<Reverse<OpId>> =
        ids().filter(|op| waiting[op.index()] == 0).map(Reverse).collect();
    let mut order = Vec::with_capacity(after.pair_count());
    while let Some(Reverse(op)) = ready.pop() {
        order.push(op);
        for &next in after.neighbours_of(op) {
            waiting[next.index()] -= 1;
            if waiting[next.index()] == 0 {
                ready.push(Reverse(next));
            }
        }
    }
    if order.len() == after.pair_count() { Ok(order) } else { Err(cycle(&after.reversed(), &waiting)) }
}

/// A cycle among the waiting operations, starting at its lowest operation.
fn cycle(before: &Neighbours, waiting: &[u32]) -> Vec<OpId> {
    let is_waiting = |op: OpId| waiting[op.index()] > 0;
    let mut turn = vec![None; waiting.len()];
    let mut path = Vec::new();
    let mut at = (0..waiting.len()).map(OpId::from_index).find(|&op| is_waiting(op)).unwrap_or_default();
    while turn[at.index()].is_none() {
        turn[at.index()] = Some(path.len());
        path.push(at);
        let next = before.neighbours_of(at).iter().copied().find(|&op| is_waiting(op));
        at = next.expect("it waits for another that waits");
    }
    let mut cycle = path.split_off(turn[at.index()].unwrap_or_default());
    cycle.reverse();
    let lowest = (0..cycle.len()).min_by_key(|&index| cycle[index]).unwrap_or_default();
    cycle.rotate_left(lowest);
    cycle
}
