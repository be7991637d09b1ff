//! Local search: moves an operation to another place, together with the operations that must move with it, as long as
//! the load does not grow.
//!
//! A move starts at two places; in three moves of four, one of them has the highest load. Either the operation at the
//! first place moves behind the second, with everything in between that depends on it. Or the operation at the second
//! place moves before the first, with everything in between that it depends on. A move is kept if the load falls, or if
//! the load stays and the number of steps with that load does not grow.
//!
//! # Complexity
//!
//! O(operations + uses + dependencies) for each move; the work is counted in operations examined.

use planlab_dsa::{Budget, Stop};
use planlab_graph::OpId;
use rand::{Rng, RngExt};

use super::orders::{Orders, Reordered};
use super::problem::Problem;
use super::watch::Watch;

/// Local search over legal orders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LocalSearch {
    work: u64,
}

impl Default for LocalSearch {
    fn default() -> Self {
        Self { work: 1 << 22 }
    }
}

impl LocalSearch {
    /// The number of operations examined. Default: 2^22.
    #[must_use]
    pub const fn with_work(mut self, operations: u64) -> Self {
        self.work = operations;
        self
    }

    /// An order that is at least as good as the given legal one.
    ///
    /// # Panics
    ///
    /// If the order does not have every operation.
    pub fn improve_order(
        &self,
        orders: &Orders,
        order: &[OpId],
        budget: &Budget,
        rng: &mut impl Rng,
    ) -> Reordered {
        let mut watch = Watch::new(budget);
        let (bound, bounded) = orders.bound_within(&mut watch);
        let (order, end) = self.run_search(&orders.problem, order.to_vec(), bound, &mut watch, rng);
        orders.as_reordered(&order, bound, bounded.and(end))
    }

    /// Ends at `bound`, too.
    pub(super) fn run_search(
        &self,
        problem: &Problem,
        order: Vec<OpId>,
        bound: u64,
        watch: &mut Watch<'_>,
        rng: &mut impl Rng,
    ) -> (Vec<OpId>, Result<(), Stop>) {
        let mut walk = Walk::new(problem, order);
        let mut work = problem.operation_count() as u64;
        while walk.peak.0 > bound && work < self.work {
            let looked = walk.try_move(rng);
            work += 1 + looked;
            if let Err(stop) = watch.tick(1 + usize::try_from(looked).unwrap_or(usize::MAX)) {
                return (walk.order, Err(stop));
            }
        }
        (walk.order, Ok(()))
    }
}

struct Walk<'p> {
    problem: &'p Problem,
    order: Vec<OpId>,
    /// The load, and the number of steps that have it.
    peak: (u64, usize),
    /// Those steps.
    steps: Vec<usize>,
    /// Whether each operation moves.
    moves: Vec<bool>,
}

impl<'p> Walk<'p> {
    fn new(problem: &'p Problem, order: Vec<OpId>) -> Self {
        let moves = vec![false; order.len()];
        let mut walk = Self { problem, order, peak: (0, 0), steps: Vec::new(), moves };
        walk.measure_load();
        walk
    }

    fn measure_load(&mut self) {
        let curve = self.problem.load_curve(&self.order);
        let load = curve.iter().copied().max().unwrap_or(0);
        self.steps = (0..curve.len()).filter(|&step| curve[step] == load).collect();
        self.peak = (load, self.steps.len());
    }

    /// Tries a move; returns the number of operations examined.
    fn try_move(&mut self, rng: &mut impl Rng) -> u64 {
        let count = self.order.len();
        let at = if rng.random_bool(0.25) {
            rng.random_range(0..count)
        } else {
            self.steps[rng.random_range(0..self.steps.len())]
        };
        let other = rng.random_range(0..count);
        let (from, to) = (at.min(other), at.max(other));
        // Either the first moves behind the last, or the last moves before the first.
        let candidate =
            if rng.random_bool(0.5) { self.moved_back(from, to) } else { self.moved_forward(from, to) };
        let Some(candidate) = candidate else { return (to - from) as u64 };
        let peak = self.problem.peak_of(&candidate);
        if peak <= self.peak {
            self.order = candidate;
            self.measure_load();
        }
        count as u64 + (to - from) as u64
    }

    /// The order in which the operation at `from` follows the one at `to`, and so does everything in between that
    /// depends on it; `None` if the one at `to` depends on it.
    fn moved_back(&mut self, from: usize, to: usize) -> Option<Vec<OpId>> {
        let problem = self.problem;
        self.select_marked(from..=to, from, |op| problem.dependencies.before(op));
        self.rearrange_marked(from, to, false)
    }

    /// The order in which the operation at `to` precedes the one at `from`, and so does everything in between that it
    /// depends on; `None` if it depends on the one at `from`.
    fn moved_forward(&mut self, from: usize, to: usize) -> Option<Vec<OpId>> {
        let problem = self.problem;
        self.select_marked((from..=to).rev(), to, |op| problem.dependencies.after(op));
        self.rearrange_marked(from, to, true)
    }

    /// Marks the operation at `first`, and those at `places` that are next to a marked one.
    fn select_marked(
        &mut self,
        places: impl Iterator<Item = usize>,
        first: usize,
        next_to: impl Fn(OpId) -> &'p [OpId],
    ) {
        for place in places {
            let op = self.order[place];
            self.moves[op.index()] =
                place == first || next_to(op).iter().any(|other| self.moves[other.index()]);
        }
    }

    /// The order with the marked operations moved to the first or to the last places of `from..=to`; clears the
    /// marks.
    fn rearrange_marked(&mut self, from: usize, to: usize, marked_first: bool) -> Option<Vec<OpId>> {
        let part = &self.order[from..=to];
        let (marked, others): (Vec<OpId>, Vec<OpId>) = part.iter().partition(|&&op| self.moves[op.index()]);
        part.iter().for_each(|&op| self.moves[op.index()] = false);
        if others.is_empty() {
            return None;
        }
        let parts = if marked_first { [marked, others] } else { [others, marked] };
        let mut order = self.order.clone();
        order[from..=to].copy_from_slice(&parts.concat());
        (order != self.order).then_some(order)
    }
}

#[cfg(test)]
mod tests {
    use planlab_graph::Dependencies;
    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;

    use super::*;
    use crate::reorder::HandOvers;
    use crate::reorder::testing::{load_of, random_graph};

    #[test]
    fn every_order_on_the_way_is_legal_and_none_is_worse() {
        let mut rng = ChaCha8Rng::seed_from_u64(2);
        let mut better = 0;
        for count in (1..40).chain(1..40) {
            let graph = random_graph(&mut rng, count);
            let dependencies = Dependencies::from_tensors(&graph);
            let hand_overs = if better % 2 == 0 { HandOvers::Counted } else { HandOvers::Relaxed };
            let problem = Problem::new(&graph, &dependencies, hand_overs);
            let start = dependencies.random_order(&mut rng);
            let before = problem.peak_of(&start);
            let mut walk = Walk::new(&problem, start);
            for _ in 0..200 {
                let last = walk.peak;
                walk.try_move(&mut rng);
                assert_eq!(dependencies.check_order(&walk.order), Ok(()));
                assert_eq!(walk.peak, problem.peak_of(&walk.order));
                assert!(walk.peak <= last);
            }
            assert_eq!(walk.peak.0, load_of(&graph, &walk.order, hand_overs).get());
            better += usize::from(walk.peak.0 < before.0);
        }
        assert!(better > 40, "{better}");
    }

    #[test]
    fn the_same_seed_and_work_give_the_same_order() {
        let graph = random_graph(&mut ChaCha8Rng::seed_from_u64(1), 50);
        let run = || {
            let mut rng = ChaCha8Rng::seed_from_u64(9);
            let search = LocalSearch::default().with_work(20_000);
            let orders = Orders::new(&graph, &Dependencies::from_tensors(&graph), HandOvers::Counted);
            search.improve_order(&orders, &graph.operation_order(), &Budget::default(), &mut rng)
        };
        assert_eq!(run(), run());
    }

    #[test]
    fn a_stop_leaves_the_best_order_so_far() {
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let graph = random_graph(&mut rng, 50);
        let orders = Orders::new(&graph, &Dependencies::from_tensors(&graph), HandOvers::Relaxed);
        let order = orders.problem.topological_order();
        let before = orders.problem.load_of(&order);
        let budget = Budget::default();
        budget.cancel.cancel();
        let found = LocalSearch::default().improve_order(&orders, &order, &budget, &mut rng);
        assert_eq!(found.stop, Stop::Cancelled);
        assert!(found.load.get() <= before && found.bound <= found.load);
    }
}
