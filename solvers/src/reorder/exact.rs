//! The best order, by a search over the sets of operations that can be done first.
//!
//! What is live after some operations does not depend on their order, so an order is a path through such sets, and
//! its load the highest step of the path. The set is taken next that can be reached with the lowest highest step; when
//! that is the set of all operations, its path is optimal, and until then the step is a bound.
//!
//! ```text
//!              {f}                highest step so far in brackets
//!   {} ---[4]-- | --[4]-- {f,g} --[7]-- {f,g,h}
//!       \-[6]- {g} ------[6]--/
//! ```
//!
//! - `forced`: an operation that is ready, does not grow memory and does not raise the highest step is done at once,
//!   and no other is tried beside it: wherever an order does it later, it can as well do it now.
//! - `bounded`: the search starts at what is live at some operation in every order, and leaves out what comes to
//!   the load of an order that is known.
//!
//! # References
//!
//! 1. B. H. Ahn et al., *Ordering chaos: memory-aware scheduling of irregularly wired neural networks for edge devices*,
//!    MLSys 2020, arXiv:2003.02369 (the sets, and a known load as a limit).
//!
//! # Complexity
//!
//! O(sets * (operations + uses)) time; the sets number 2^operations at worst, and operations + 1 in a chain.
//!
//! # Deviations from the paper
//!
//! Sets are taken by their highest step, not by their size, so that no limit has to be guessed and tried again, and a
//! search that is cut short has a bound. Forced operations are not in the paper.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use planlab_dsa::Bytes;
use planlab_graph::{Dependencies, Graph};
use rustc_hash::FxHashMap;

use super::problem::{Memory, Problem};
use super::{Greedy, HandOvers, Reordered, ids};

/// Best-first search with a proof.
///
/// ```
/// use planlab_dsa::Bytes;
/// use planlab_graph::{Dependencies, Graph, Operation, Tensor};
/// use planlab_solvers::reorder::ExactOrder;
///
/// let mut graph = Graph::builder();
/// let [a, b] = ["a", "b"].map(|name| graph.tensor(Tensor::new(name, Bytes::new(100))));
/// let [c, d] = ["c", "d"].map(|name| graph.tensor(Tensor::new(name, Bytes::new(1))));
/// graph.operation(Operation::new("f").writes([a]));
/// graph.operation(Operation::new("g").writes([b]));
/// graph.operation(Operation::new("h").reads([a]).writes([c]));
/// graph.operation(Operation::new("i").reads([b]).writes([d]));
/// graph.operation(Operation::new("j").reads([c, d]));
/// let graph = graph.build()?;
/// let found = ExactOrder::default().order(&graph, &Dependencies::of(&graph));
/// assert_eq!((found.load, found.is_optimal()), (Bytes::new(102), true));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExactOrder {
    sets: usize,
    forced: bool,
    bounded: bool,
    hand_overs: HandOvers,
}

impl Default for ExactOrder {
    fn default() -> Self {
        Self { sets: 1 << 20, forced: true, bounded: true, hand_overs: HandOvers::Counted }
    }
}

impl ExactOrder {
    /// After how many sets the search ends without a proof. Each takes about 100 bytes, and a bit for each
    /// operation. Default: 2^20.
    #[must_use]
    pub const fn with_sets(mut self, sets: usize) -> Self {
        self.sets = sets;
        self
    }

    /// Whether operations that cost nothing are done at once. Default: yes.
    #[must_use]
    pub const fn with_forced(mut self, yes: bool) -> Self {
        self.forced = yes;
        self
    }

    /// Whether known bounds and loads limit the search. Default: yes.
    #[must_use]
    pub const fn with_bounded(mut self, yes: bool) -> Self {
        self.bounded = yes;
        self
    }

    /// How hand-overs count. Default: outputs count beside their inputs.
    #[must_use]
    pub const fn with_hand_overs(mut self, hand_overs: HandOvers) -> Self {
        self.hand_overs = hand_overs;
        self
    }

    /// An order of the lowest load, if the search ends; else the best greedy one, with what is proved by then.
    ///
    /// # Panics
    ///
    /// If the dependencies are those of another graph.
    #[must_use]
    pub fn order(&self, graph: &Graph, dependencies: &Dependencies) -> Reordered {
        let problem = Problem::new(graph, dependencies, self.hand_overs);
        let orders = Greedy::all(self.hand_overs).into_iter().map(|greedy| greedy.run(&problem));
        let known = orders.min_by_key(|order| problem.load(order)).unwrap_or_default();
        self.run(&problem, known, problem.bound())
    }

    /// The search, with an order that is known and a bound on all.
    pub(super) fn run(&self, problem: &Problem, known: Vec<u32>, bound: u64) -> Reordered {
        let load = problem.load(&known);
        let limit = if self.bounded { load } else { u64::MAX };
        let start = if self.bounded { bound } else { 0 };
        let mut search =
            Search { rules: *self, problem, limit, sets: Vec::new(), best: FxHashMap::default() };
        let (order, proved) = search.run(start);
        let order = order.filter(|order| problem.load(order) < load).unwrap_or(known);
        let load = problem.load(&order);
        let bound = Bytes::new(proved.max(bound).min(load));
        Reordered { order: ids(&order), load: Bytes::new(load), bound }
    }
}

/// A set of operations, one bit each.
type Bits = Box<[u64]>;

/// How a set was reached.
struct Reached {
    /// The set before, if there was one.
    from: Option<usize>,
    /// The operations done since then.
    done: Box<[u32]>,
    bits: Bits,
}

struct Search<'p> {
    rules: ExactOrder,
    problem: &'p Problem,
    /// Steps as high as this are left out.
    limit: u64,
    sets: Vec<Reached>,
    /// The lowest highest step with which each set was reached.
    best: FxHashMap<Bits, u64>,
}

/// What is done, and what that leaves.
struct Place {
    bits: Bits,
    memory: Memory,
}

impl Search<'_> {
    /// The best order below the limit, and a bound on every order; no order: there is none, or the search was cut.
    fn run(&mut self, start: u64) -> (Option<Vec<u32>>, u64) {
        let count = self.problem.operations();
        let mut open = BinaryHeap::new();
        let root = Place { bits: vec![0; count.div_ceil(64)].into(), memory: Memory::new(self.problem) };
        open.extend(self.reach(None, root, Vec::new(), start));
        // The highest step first, then the set with most operations.
        while let Some((Reverse(peak), done, set)) = open.pop() {
            if done == count {
                return (Some(self.path(set)), peak);
            }
            if self.best[&self.sets[set].bits] < peak {
                continue;
            }
            if self.sets.len() >= self.rules.sets {
                return (None, peak);
            }
            for op in self.ready(&self.sets[set].bits) {
                let mut place = self.place(set);
                let step = peak.max(place.memory.during(self.problem, op));
                if step < self.limit {
                    place.run(self.problem, op);
                    open.extend(self.reach(Some(set), place, vec![op], step));
                }
            }
        }
        (None, self.limit)
    }

    /// Enters a set after what is forced there, if it was not reached as well before.
    fn reach(
        &mut self,
        from: Option<usize>,
        mut place: Place,
        mut done: Vec<u32>,
        peak: u64,
    ) -> Option<(Reverse<u64>, usize, usize)> {
        while let Some(op) = self.forced(&place, peak) {
            place.run(self.problem, op);
            done.push(op);
        }
        let known = self.best.get(&place.bits);
        if known.is_some_and(|&known| known <= peak) {
            return None;
        }
        let size = place.bits.iter().map(|word| word.count_ones() as usize).sum();
        self.best.insert(place.bits.clone(), peak);
        self.sets.push(Reached { from, done: done.into(), bits: place.bits });
        Some((Reverse(peak), size, self.sets.len() - 1))
    }

    /// An operation that costs nothing.
    fn forced(&self, place: &Place, peak: u64) -> Option<u32> {
        let (problem, memory) = (self.problem, &place.memory);
        let is_free = |&op: &u32| memory.growth(problem, op) <= 0 && memory.during(problem, op) <= peak;
        self.rules.forced.then(|| self.ready(&place.bits).into_iter().find(is_free))?
    }

    fn ready(&self, bits: &[u64]) -> Vec<u32> {
        let is_done = |op: u32| bits[op as usize / 64] >> (op % 64) & 1 == 1;
        let ops = (0..).take(self.problem.operations());
        let is_ready = |&op: &u32| {
            !is_done(op) && self.problem.before[op as usize].iter().all(|&before| is_done(before))
        };
        ops.filter(is_ready).collect()
    }

    fn place(&self, set: usize) -> Place {
        let mut place = Place {
            bits: vec![0; self.problem.operations().div_ceil(64)].into(),
            memory: Memory::new(self.problem),
        };
        self.path(set).into_iter().for_each(|op| place.run(self.problem, op));
        place
    }

    fn path(&self, set: usize) -> Vec<u32> {
        let sets = std::iter::successors(Some(set), |&set| self.sets[set].from);
        let mut path: Vec<u32> = sets.flat_map(|set| self.sets[set].done.iter().rev().copied()).collect();
        path.reverse();
        path
    }
}

impl Place {
    fn run(&mut self, problem: &Problem, op: u32) {
        self.bits[op as usize / 64] |= 1 << (op % 64);
        self.memory.run(problem, op);
    }
}

#[cfg(test)]
mod tests {
    use planlab_graph::{OpId, lower};
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    use super::super::testing::random_graph;
    use super::*;

    /// The lowest load of all legal orders, each lowered.
    fn exhaustive(graph: &Graph, dependencies: &Dependencies, hand_overs: HandOvers) -> Bytes {
        fn extend(
            graph: &Graph,
            dependencies: &Dependencies,
            order: &mut Vec<OpId>,
            measure: &mut impl FnMut(&[OpId]),
        ) {
            if order.len() == graph.operations().len() {
                return measure(order);
            }
            for op in graph.order() {
                let is_ready = dependencies.before(op).iter().all(|before| order.contains(before));
                if is_ready && !order.contains(&op) {
                    order.push(op);
                    extend(graph, dependencies, order, measure);
                    order.pop();
                }
            }
        }
        let mut best = Bytes::new(u64::MAX);
        extend(graph, dependencies, &mut Vec::new(), &mut |order| {
            let instance = lower(graph, order).expect("legal").instance;
            let load = match hand_overs {
                HandOvers::Counted => instance.load(),
                HandOvers::Relaxed => instance.relaxed_load(),
            };
            best = best.min(load.bytes);
        });
        best
    }

    /// Every combination of the switches finds what exhaustive search finds.
    #[test]
    fn the_search_is_exact_on_500_graphs() {
        let mut rng = ChaCha8Rng::seed_from_u64(2026);
        let (mut tried, mut orders, mut greedy_missed) = (0, 0, 0);
        while tried < 500 {
            let count = rng.random_range(1..9);
            let graph = random_graph(&mut rng, count);
            let dependencies = Dependencies::of(&graph);
            let Some(legal) = dependencies.count_orders(10_000).filter(|&legal| legal <= 400) else {
                continue;
            };
            let hand_overs = [HandOvers::Counted, HandOvers::Relaxed][tried % 2];
            let expected = exhaustive(&graph, &dependencies, hand_overs);
            for (forced, bounded) in [(true, true), (true, false), (false, true), (false, false)] {
                let rules = ExactOrder::default().with_hand_overs(hand_overs);
                let rules = rules.with_forced(forced).with_bounded(bounded);
                let found = rules.order(&graph, &dependencies);
                assert_eq!((found.load, found.bound), (expected, expected), "{rules:?}");
                assert_eq!(dependencies.check(&found.order), Ok(()));
            }
            let greedy = Greedy::default().with_hand_overs(hand_overs).order(&graph, &dependencies);
            greedy_missed += usize::from(greedy.load > expected);
            assert!(greedy.load >= expected && greedy.bound <= expected);
            (tried, orders) = (tried + 1, orders + legal);
        }
        assert!(orders > 5_000 && greedy_missed > 10, "{orders} orders, {greedy_missed} missed");
    }

    #[test]
    fn graphs_of_30_operations_are_searched_to_the_end() {
        let mut rng = ChaCha8Rng::seed_from_u64(30);
        for _ in 0..20 {
            let graph = random_graph(&mut rng, 26);
            let found = ExactOrder::default().order(&graph, &Dependencies::of(&graph));
            assert!(found.is_optimal(), "{} operations", graph.operations().len());
        }
    }

    #[test]
    fn a_search_that_is_cut_short_has_a_bound() {
        let mut rng = ChaCha8Rng::seed_from_u64(4);
        for _ in 0..30 {
            let graph = random_graph(&mut rng, 20);
            let dependencies = Dependencies::of(&graph);
            let best = ExactOrder::default().order(&graph, &dependencies);
            for sets in [0, 1, 5, 20] {
                let found = ExactOrder::default().with_sets(sets).order(&graph, &dependencies);
                assert!(found.bound <= best.load && best.load <= found.load);
            }
        }
    }
}
