//! Moves operations in an order, together with what must come along, as long as the load does not grow.
//!
//! At a step with the highest load: an operation before it (or at it) goes behind it with all that depends on it in
//! between, or one behind it comes before it with all that it depends on in between. One move in four is between
//! two places drawn at random. A move is kept if the load falls, or stays and no more steps have it.
//!
//! # Complexity
//!
//! O(operations + uses + dependencies) for each move; the work is counted in operations looked at.

use planlab_dsa::Bytes;
use planlab_graph::{Dependencies, Graph, OpId};
use rand::{Rng, RngExt};

use super::problem::Problem;
use super::{HandOvers, Reordered, ids, numbers};

/// Local search over legal orders.
///
/// ```
/// use planlab_dsa::Bytes;
/// use planlab_graph::{Dependencies, Graph, Operation, Tensor};
/// use planlab_solvers::reorder::LocalSearch;
/// use rand::SeedableRng;
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
/// let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(1);
/// let search = LocalSearch::default().with_work(1000);
/// let found = search.improve(&graph, &Dependencies::of(&graph), &graph.order(), &mut rng);
/// assert_eq!(found.load, Bytes::new(102));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LocalSearch {
    work: u64,
    hand_overs: HandOvers,
}

impl Default for LocalSearch {
    fn default() -> Self {
        Self { work: 1 << 22, hand_overs: HandOvers::Counted }
    }
}

impl LocalSearch {
    /// How many operations are looked at. Default: 2^22.
    #[must_use]
    pub const fn with_work(mut self, operations: u64) -> Self {
        self.work = operations;
        self
    }

    /// How hand-overs count. Default: outputs count beside their inputs.
    #[must_use]
    pub const fn with_hand_overs(mut self, hand_overs: HandOvers) -> Self {
        self.hand_overs = hand_overs;
        self
    }

    /// An order that is at least as good as a given legal one.
    ///
    /// # Panics
    ///
    /// If the dependencies are those of another graph, or the order lacks an operation.
    pub fn improve(
        &self,
        graph: &Graph,
        dependencies: &Dependencies,
        order: &[OpId],
        rng: &mut impl Rng,
    ) -> Reordered {
        let problem = Problem::new(graph, dependencies, self.hand_overs);
        let bound = problem.bound();
        let order = self.run(&problem, numbers(order), bound, rng);
        let load = Bytes::new(problem.load(&order));
        Reordered { order: ids(&order), load, bound: Bytes::new(bound) }
    }

    /// Stops at `bound`, too.
    pub(super) fn run(&self, problem: &Problem, order: Vec<u32>, bound: u64, rng: &mut impl Rng) -> Vec<u32> {
        let mut walk = Walk::new(problem, order);
        let count = problem.operations() as u64;
        let mut work = count;
        while walk.peak.0 > bound && work < self.work {
            work += 1 + walk.step(rng);
        }
        walk.order
    }
}

struct Walk<'p> {
    problem: &'p Problem,
    order: Vec<u32>,
    /// The load, and at how many steps it is.
    peak: (u64, u32),
    /// Those steps.
    steps: Vec<usize>,
    /// Which operations go along in a move.
    moves: Vec<bool>,
}

impl<'p> Walk<'p> {
    fn new(problem: &'p Problem, order: Vec<u32>) -> Self {
        let moves = vec![false; order.len()];
        let mut walk = Self { problem, order, peak: (0, 0), steps: Vec::new(), moves };
        walk.measure();
        walk
    }

    fn measure(&mut self) {
        let curve = self.problem.curve(&self.order);
        let load = curve.iter().copied().max().unwrap_or(0);
        self.steps = (0..curve.len()).filter(|&step| curve[step] == load).collect();
        self.peak = (load, u32::try_from(self.steps.len()).expect("fewer than operations"));
    }

    /// Tries a move, and says how many operations it looked at.
    fn step(&mut self, rng: &mut impl Rng) -> u64 {
        let count = self.order.len();
        let at = if rng.random_bool(0.25) {
            rng.random_range(0..count)
        } else {
            self.steps[rng.random_range(0..self.steps.len())]
        };
        let other = rng.random_range(0..count);
        let (from, to) = (at.min(other), at.max(other));
        // Either the first goes behind the last, or the last comes before the first.
        let candidate =
            if rng.random_bool(0.5) { self.moved_back(from, to) } else { self.moved_forward(from, to) };
        let Some(candidate) = candidate else { return (to - from) as u64 };
        let peak = self.problem.peak(&candidate);
        if peak <= self.peak {
            self.order = candidate;
            self.measure();
        }
        count as u64 + (to - from) as u64
    }

    /// The operation at `from` behind that at `to`, with all in between that wait for it; none if that one does.
    fn moved_back(&mut self, from: usize, to: usize) -> Option<Vec<u32>> {
        let problem = self.problem;
        self.select(from..=to, from, |op| &problem.before[op as usize]);
        self.rearranged(from, to, false)
    }

    /// The operation at `to` before that at `from`, with all in between that it waits for; none if it waits for that.
    fn moved_forward(&mut self, from: usize, to: usize) -> Option<Vec<u32>> {
        let problem = self.problem;
        self.select((from..=to).rev(), to, |op| &problem.after[op as usize]);
        self.rearranged(from, to, true)
    }

    /// Marks an operation, and all of the places that are next to a marked one.
    fn select(
        &mut self,
        places: impl Iterator<Item = usize>,
        first: usize,
        next_to: impl Fn(u32) -> &'p Vec<u32>,
    ) {
        for place in places {
            let op = self.order[place];
            self.moves[op as usize] =
                place == first || next_to(op).iter().any(|&other| self.moves[other as usize]);
        }
    }

    /// The order with the marked operations between two places first, or last, there; clears the marks.
    fn rearranged(&mut self, from: usize, to: usize, marked_first: bool) -> Option<Vec<u32>> {
        let part = &self.order[from..=to];
        let (marked, others): (Vec<u32>, Vec<u32>) = part.iter().partition(|&&op| self.moves[op as usize]);
        part.iter().for_each(|&op| self.moves[op as usize] = false);
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
    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;

    use super::super::testing::random_graph;
    use super::*;

    #[test]
    fn every_order_on_the_way_is_legal_and_none_is_worse() {
        let mut rng = ChaCha8Rng::seed_from_u64(2);
        let mut better = 0;
        for count in 1..40 {
            let graph = random_graph(&mut rng, count);
            let dependencies = Dependencies::of(&graph);
            let problem = Problem::new(&graph, &dependencies, HandOvers::Counted);
            let start = numbers(&dependencies.random_order(&mut rng));
            let before = problem.peak(&start);
            let mut walk = Walk::new(&problem, start);
            for _ in 0..200 {
                let last = walk.peak;
                walk.step(&mut rng);
                assert_eq!(dependencies.check(&ids(&walk.order)), Ok(()));
                assert_eq!(walk.peak, problem.peak(&walk.order));
                assert!(walk.peak <= last);
            }
            better += usize::from(walk.peak.0 < before.0);
        }
        assert!(better > 20, "{better}");
    }

    #[test]
    fn the_same_seed_and_work_give_the_same_order() {
        let graph = random_graph(&mut ChaCha8Rng::seed_from_u64(1), 50);
        let run = || {
            let mut rng = ChaCha8Rng::seed_from_u64(9);
            let search = LocalSearch::default().with_work(20_000);
            search.improve(&graph, &Dependencies::of(&graph), &graph.order(), &mut rng)
        };
        assert_eq!(run(), run());
    }
}
