//! Best-first search over the sets of operations that can run first.
//!
//! The bytes that are live after a set of operations do not depend on the order of the set. So an order is a path
//! through such sets, and its load is the peak of the path: the most bytes live at one of its operations. The search
//! expands the set with the lowest peak. If that is the set of all operations, its path is optimal; until then its peak
//! is a lower bound.
//!
//! ```text
//!              {f}                peaks in brackets
//!   {} ---[4]-- | --[4]-- {f,g} --[7]-- {f,g,h}
//!       \-[6]- {g} ------[6]--/
//! ```
//!
//! - `forced`: an operation that is ready and neither grows memory nor raises the peak runs at once, and no
//!   alternative is tried: an order that runs it later is no worse with it moved here.
//! - `bounded`: the peak starts at the bound on all orders, and sets that reach the load of a known order are left
//!   out.
//!
//! # References
//!
//! 1. B. H. Ahn et al., *Ordering chaos: memory-aware scheduling of irregularly wired neural networks for edge
//!    devices*, MLSys 2020, arXiv:2003.02369 (the sets, and the load of a known order as a limit).
//!
//! # Complexity
//!
//! O(sets * (operations + uses)) time, more if operations are forced. There are up to 2^operations sets, but only one
//! more than operations in a chain.
//!
//! # Deviations from the paper
//!
//! Sets are expanded by their peak, not by their size: no limit has to be guessed, and a search that is cut short
//! has a bound. Forced operations are not in the paper.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use planlab_dsa::{Budget, Bytes, Stop};
use planlab_graph::OpId;
use rustc_hash::FxHashMap;

use super::greedy::Greedy;
use super::orders::{Orders, Reordered};
use super::problem::{Memory, Problem};
use super::watch::Watch;

/// Best-first search with a proof.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExactOrder {
    pub(super) sets: usize,
    /// The memory for sets after which the search ends without a proof.
    pub(super) memory: Bytes,
    /// Whether operations that cost nothing run at once.
    pub(super) forced: bool,
    /// Whether known bounds and loads limit the search.
    pub(super) bounded: bool,
}

impl Default for ExactOrder {
    fn default() -> Self {
        Self { sets: 1 << 20, memory: Bytes::new(1 << 30), forced: true, bounded: true }
    }
}

impl ExactOrder {
    /// The number of sets after which the search ends without a proof; 0: no search. Default: 2^20.
    #[must_use]
    pub const fn with_sets(mut self, sets: usize) -> Self {
        self.sets = sets;
        self
    }

    /// An order of the lowest load. If the search ends before that, the best greedy order; [`Stop::WorkLimit`] then
    /// also means its own limits.
    #[must_use]
    pub fn exact_order(&self, orders: &Orders, budget: &Budget) -> Reordered {
        let mut watch = Watch::new(budget);
        let problem = &orders.problem;
        let mut known = problem.topological_order();
        for greedy in Greedy::all_rules() {
            let Ok(order) = greedy.run_rule(problem, &mut watch) else { break };
            if problem.load_of(&order) < problem.load_of(&known) {
                known = order;
            }
        }
        let (bound, _) = orders.bound_within(&mut watch);
        self.run_search(orders, known, bound, &mut watch)
    }

    /// The search from a known order and a bound on all orders.
    pub(super) fn run_search(
        &self,
        orders: &Orders,
        known: Vec<OpId>,
        bound: u64,
        watch: &mut Watch<'_>,
    ) -> Reordered {
        let problem = &orders.problem;
        let load = problem.load_of(&known);
        if self.sets == 0 || (self.bounded && bound >= load) {
            return orders.as_reordered(&known, bound, watch.tick(0));
        }
        let limit = if self.bounded { load } else { u64::MAX };
        let start = if self.bounded { bound } else { 0 };
        let mut search = OrderStateSearch {
            rules: *self,
            problem,
            watch,
            limit,
            sets: Vec::new(),
            best: FxHashMap::default(),
            bytes: 0,
        };
        let mut proved = start;
        let found = search.run_search(start, &mut proved);
        let end = found.as_ref().map(|_| ()).map_err(|&stop| stop);
        let better = found.ok().flatten().filter(|order| problem.load_of(order) < load);
        orders.as_reordered(&better.unwrap_or(known), proved.max(bound), end)
    }
}

/// A set of operations, one bit each.
type Bits = Box<[u64]>;

/// The memory that a set takes, in bytes: its bits twice, its operations, and its entries in a list, a map and a
/// heap, which may have twice the room that they need.
fn bytes_of(bits: &[u64], done: &[OpId]) -> u64 {
    let entries = size_of::<Reached>() + size_of::<(Bits, u64)>() + size_of::<Open>();
    (2 * size_of_val(bits) + size_of_val(done) + 2 * entries) as u64
}

/// A set, and how it was reached.
struct Reached {
    /// The set before it.
    from: Option<usize>,
    /// The operations that were added to that set, in order.
    done: Box<[OpId]>,
    bits: Bits,
}

struct OrderStateSearch<'p, 'w, 'b> {
    rules: ExactOrder,
    problem: &'p Problem,
    watch: &'w mut Watch<'b>,
    /// Sets with a peak as high as this are left out.
    limit: u64,
    sets: Vec<Reached>,
    /// The lowest peak with which each set was reached.
    best: FxHashMap<Bits, u64>,
    /// The memory that the sets take.
    bytes: u64,
}

/// The operations that have run, and what is live after them.
#[derive(Clone)]
struct SearchState {
    bits: Bits,
    memory: Memory,
}

/// A set to expand: the lowest peak comes first, then the set with the most operations.
type Open = (Reverse<u64>, usize, usize);

impl OrderStateSearch<'_, '_, '_> {
    /// The best order below the limit, or `None`. `proved` rises to a bound on every order.
    fn run_search(&mut self, start: u64, proved: &mut u64) -> Result<Option<Vec<OpId>>, Stop> {
        let count = self.problem.operation_count();
        let mut open = BinaryHeap::new();
        open.extend(self.reach_set(None, self.place_of(None), Vec::new(), start)?);
        while let Some((Reverse(peak), done, set)) = open.pop() {
            *proved = peak;
            if done == count {
                return Ok(Some(self.path_to(Some(set))));
            }
            if self.best[&self.sets[set].bits] == peak {
                self.expand_set(set, peak, &mut open)?;
            }
        }
        *proved = self.limit;
        Ok(None)
    }

    fn expand_set(&mut self, set: usize, peak: u64, open: &mut BinaryHeap<Open>) -> Result<(), Stop> {
        let place = self.place_of(Some(set));
        self.watch.tick(1 + self.problem.operation_count())?;
        for op in self.ready_operations(&place.bits) {
            if self.sets.len() >= self.rules.sets || self.bytes > self.rules.memory.get() {
                return Err(Stop::WorkLimit);
            }
            let step = peak.max(place.memory.live_during(self.problem, op));
            if step < self.limit {
                let mut next = place.clone();
                next.run_operation(self.problem, op);
                open.extend(self.reach_set(Some(set), next, vec![op], step)?);
            }
        }
        Ok(())
    }

    /// Enters a set after the operations that are forced there, unless it was reached with as low a peak before.
    fn reach_set(
        &mut self,
        from: Option<usize>,
        mut place: SearchState,
        mut done: Vec<OpId>,
        peak: u64,
    ) -> Result<Option<Open>, Stop> {
        while let Some(op) = self.forced_operation(&place, peak) {
            self.watch.tick(1 + self.problem.operation_count())?;
            place.run_operation(self.problem, op);
            done.push(op);
        }
        let known = self.best.get(&place.bits);
        if known.is_some_and(|&known| known <= peak) {
            return Ok(None);
        }
        let size = place.bits.iter().map(|word| word.count_ones() as usize).sum();
        self.bytes += bytes_of(&place.bits, &done);
        self.best.insert(place.bits.clone(), peak);
        self.sets.push(Reached { from, done: done.into(), bits: place.bits });
        Ok(Some((Reverse(peak), size, self.sets.len() - 1)))
    }

    /// A ready operation that costs nothing.
    fn forced_operation(&self, place: &SearchState, peak: u64) -> Option<OpId> {
        let (problem, memory) = (self.problem, &place.memory);
        let is_free =
            |&op: &OpId| memory.growth_after(problem, op) <= 0 && memory.live_during(problem, op) <= peak;
        self.rules.forced.then(|| self.ready_operations(&place.bits).into_iter().find(is_free))?
    }

    fn ready_operations(&self, bits: &[u64]) -> Vec<OpId> {
        let is_done = |op: &OpId| bits[op.index() / 64] >> (op.index() % 64) & 1 == 1;
        let is_ready = |op: &OpId| !is_done(op) && self.problem.dependencies.before(*op).iter().all(is_done);
        self.problem.ids().filter(is_ready).collect()
    }

    /// The operations of a set, or none, and what is live after them.
    fn place_of(&self, set: Option<usize>) -> SearchState {
        let bits = vec![0; self.problem.operation_count().div_ceil(64)].into();
        let mut place = SearchState { bits, memory: Memory::new(self.problem) };
        self.path_to(set).into_iter().for_each(|op| place.run_operation(self.problem, op));
        place
    }

    fn path_to(&self, set: Option<usize>) -> Vec<OpId> {
        let sets = std::iter::successors(set, |&set| self.sets[set].from);
        let mut path: Vec<OpId> = sets.flat_map(|set| self.sets[set].done.iter().rev().copied()).collect();
        path.reverse();
        path
    }
}

impl SearchState {
    fn run_operation(&mut self, problem: &Problem, op: OpId) {
        self.bits[op.index() / 64] |= 1 << (op.index() % 64);
        self.memory.run_operation(problem, op);
    }
}

#[cfg(test)]
mod tests {
    use planlab_graph::Dependencies;
    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;

    use super::*;
    use crate::reorder::HandOvers;
    use crate::reorder::testing::random_graph;

    #[test]
    fn graphs_of_30_operations_are_searched_to_the_end() {
        let mut rng = ChaCha8Rng::seed_from_u64(30);
        for turn in 0..20 {
            let graph = random_graph(&mut rng, 26);
            let hand_overs = [HandOvers::Counted, HandOvers::Relaxed][turn % 2];
            let orders = Orders::new(&graph, &Dependencies::from_tensors(&graph), hand_overs);
            let found = ExactOrder::default().exact_order(&orders, &Budget::default());
            assert!(found.is_optimal(), "{} operations", graph.operations().len());
        }
    }

    /// A search that ends for any reason leaves a legal order and a bound.
    #[test]
    fn a_search_that_is_cut_short_has_a_bound() {
        let mut rng = ChaCha8Rng::seed_from_u64(4);
        let (mut limited, mut stopped) = (0, 0);
        for turn in 0..30 {
            let graph = random_graph(&mut rng, 20);
            let dependencies = Dependencies::from_tensors(&graph);
            let hand_overs = [HandOvers::Counted, HandOvers::Relaxed][turn % 2];
            let orders = Orders::new(&graph, &dependencies, hand_overs);
            let plenty = Budget::default();
            let best = ExactOrder::default().exact_order(&orders, &plenty);
            let check = |found: &Reordered| {
                assert!(found.bound <= best.load && best.load <= found.load, "{found:?}");
                assert_eq!(dependencies.check_order(&found.order), Ok(()));
                found.stop == Stop::WorkLimit
            };
            for amount in [0, 1, 5, 20] {
                let few = ExactOrder::default().with_sets(amount);
                let memory = Bytes::new(300 * amount as u64);
                let small = ExactOrder { memory, ..ExactOrder::default() };
                for search in [few, small, ExactOrder { forced: false, bounded: false, ..few }] {
                    limited += usize::from(check(&search.exact_order(&orders, &plenty)));
                }
                let budget = Budget { work: Some(50 * amount as u64), ..Budget::default() };
                // A fresh bound, for which the budget may be too small.
                let orders = Orders::new(&graph, &dependencies, hand_overs);
                stopped += usize::from(check(&ExactOrder::default().exact_order(&orders, &budget)));
            }
        }
        assert!(limited > 50 && stopped > 50, "{limited} {stopped}");
    }

    #[test]
    fn a_search_that_is_cancelled_ends_at_once() {
        let mut graph = planlab_graph::Graph::builder();
        // A chain whose operations are all forced, and 2^60 sets beside it.
        for _ in 0..60 {
            let tensor = graph.add_tensor(planlab_graph::Tensor::new("", Bytes::new(1)).as_output());
            graph.add_operation(planlab_graph::Operation::new("f").with_outputs([tensor]));
        }
        (0..20_000).for_each(|_| _ = graph.add_operation(planlab_graph::Operation::new("free")));
        let graph = graph.build().expect("valid");
        let orders = Orders::new(&graph, &Dependencies::from_tensors(&graph), HandOvers::Counted);
        let budget = Budget::default();
        budget.cancel.cancel();
        let search = ExactOrder { bounded: false, ..ExactOrder::default() };
        let found = search.exact_order(&orders, &budget);
        assert_eq!((found.order.len(), found.load), (20_060, Bytes::new(60)));
        let watched =
            search.run_search(&orders, orders.problem.topological_order(), 0, &mut Watch::new(&budget));
        assert_eq!((watched.stop, watched.load), (Stop::Cancelled, Bytes::new(60)));
    }
}
