//! Orders made one operation at a time: of those that are ready, the one that a rule prefers.
//!
//! | rule | prefers |
//! |---|---|
//! | growth | least growth of memory (what begins, less what ends); then the least need while it runs |
//! | need | least need while it runs; then the least growth |
//! | drop | what does not grow memory, by least need; then the largest difference of need and growth |
//!
//! The last one is optimal for operations that do not depend on each other: first what frees memory, the cheapest
//! first, then what takes it, those first that need much more while they run than they leave behind. Each rule also
//! runs backwards, from the last operation to the first: there, what ends begins. Ties end at the lower id.
//!
//! # References
//!
//! 1. J. W. H. Liu, *An application of generalized tree pebbling to sparse matrix factorization*, SIAM Journal on
//!    Algebraic and Discrete Methods 8(3), 1987, doi:10.1137/0608031 (needs and residues of parts).
//!
//! # Complexity
//!
//! O((uses + dependencies) log operations); uses of a storage are looked at again where one user of it is left.
//!
//! # Deviations from the paper
//!
//! It orders the subtrees of a tree; here the rule ranks single operations of a graph, and proves nothing.

use std::collections::BTreeSet;

use planlab_dsa::Bytes;
use planlab_graph::{Dependencies, Graph};

use super::problem::{Memory, Problem};
use super::{HandOvers, Reordered, ids};

/// What a ready operation is preferred for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum GreedyRule {
    /// Least growth of memory.
    #[default]
    Growth,
    /// Least need while it runs.
    Need,
    /// Least need of what frees; then the largest difference between need and growth.
    Drop,
}

/// Greedy list scheduling.
///
/// ```
/// use planlab_dsa::Bytes;
/// use planlab_graph::{Dependencies, Graph, Operation, Tensor};
/// use planlab_solvers::reorder::{Greedy, HandOvers, load_of_order};
///
/// // Two branches, each with a large tensor in the middle; the given order runs them side by side.
/// let mut graph = Graph::builder();
/// let [a, b] = ["a", "b"].map(|name| graph.tensor(Tensor::new(name, Bytes::new(100))));
/// let [c, d] = ["c", "d"].map(|name| graph.tensor(Tensor::new(name, Bytes::new(1))));
/// graph.operation(Operation::new("f").writes([a]));
/// graph.operation(Operation::new("g").writes([b]));
/// graph.operation(Operation::new("h").reads([a]).writes([c]));
/// graph.operation(Operation::new("i").reads([b]).writes([d]));
/// graph.operation(Operation::new("j").reads([c, d]));
/// let graph = graph.build()?;
/// let counted = HandOvers::Counted;
/// assert_eq!(load_of_order(&graph, &graph.order(), counted), Bytes::new(201));
/// let found = Greedy::default().order(&graph, &Dependencies::of(&graph));
/// assert_eq!(found.load, Bytes::new(102));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Greedy {
    rule: GreedyRule,
    backwards: bool,
    hand_overs: HandOvers,
}

impl Greedy {
    /// What a ready operation is preferred for. Default: least growth.
    #[must_use]
    pub const fn with_rule(mut self, rule: GreedyRule) -> Self {
        self.rule = rule;
        self
    }

    /// Whether the last operation is chosen first. Default: no.
    #[must_use]
    pub const fn with_backwards(mut self, yes: bool) -> Self {
        self.backwards = yes;
        self
    }

    /// How hand-overs count. Default: outputs count beside their inputs.
    #[must_use]
    pub const fn with_hand_overs(mut self, hand_overs: HandOvers) -> Self {
        self.hand_overs = hand_overs;
        self
    }

    /// All rules, forwards and backwards.
    #[must_use]
    pub fn all(hand_overs: HandOvers) -> Vec<Self> {
        let rules = [GreedyRule::Growth, GreedyRule::Need, GreedyRule::Drop];
        let both = |rule| [false, true].map(|backwards| Self { rule, backwards, hand_overs });
        rules.into_iter().flat_map(both).collect()
    }

    /// An order that the dependencies allow.
    ///
    /// # Panics
    ///
    /// If the dependencies are those of another graph.
    #[must_use]
    pub fn order(&self, graph: &Graph, dependencies: &Dependencies) -> Reordered {
        let problem = Problem::new(graph, dependencies, self.hand_overs);
        let order = self.run(&problem);
        let (load, bound) = (problem.load(&order), problem.bound());
        Reordered { order: ids(&order), load: Bytes::new(load), bound: Bytes::new(bound) }
    }

    pub(super) fn run(&self, problem: &Problem) -> Vec<u32> {
        if self.backwards {
            let mut order = List::new(self.rule, &problem.reversed()).run();
            order.reverse();
            order
        } else {
            List::new(self.rule, problem).run()
        }
    }
}

/// What an operation is ranked by; the lowest is next.
type Rank = (i128, i128, u32);

struct List<'p> {
    rule: GreedyRule,
    problem: &'p Problem,
    memory: Memory,
    waiting: Vec<usize>,
    ready: BTreeSet<Rank>,
    /// The rank of each ready operation.
    ranks: Vec<Option<Rank>>,
}

impl<'p> List<'p> {
    fn new(rule: GreedyRule, problem: &'p Problem) -> Self {
        let count = problem.operations();
        Self {
            rule,
            problem,
            memory: Memory::new(problem),
            waiting: problem.waiting(),
            ready: BTreeSet::new(),
            ranks: vec![None; count],
        }
    }

    fn run(mut self) -> Vec<u32> {
        for op in (0..).take(self.waiting.len()) {
            if self.waiting[op as usize] == 0 {
                self.enter(op);
            }
        }
        let mut order = Vec::with_capacity(self.waiting.len());
        while let Some((.., op)) = self.ready.pop_first() {
            self.ranks[op as usize] = None;
            order.push(op);
            self.finish(op);
        }
        order
    }

    fn finish(&mut self, op: u32) {
        let problem = self.problem;
        self.memory.run(problem, op);
        for &index in &problem.uses[op as usize] {
            let users = &problem.stores[index as usize].users;
            let left = self.memory.left[index as usize];
            // It has just begun, or one user is left: now that one counts it otherwise.
            if left as usize + 1 == users.len() || left == 1 {
                users.iter().for_each(|&user| self.rank_again(user));
            }
        }
        for &next in &problem.after[op as usize] {
            self.waiting[next as usize] -= 1;
            if self.waiting[next as usize] == 0 {
                self.enter(next);
            }
        }
    }

    fn enter(&mut self, op: u32) {
        let rank = self.rank(op);
        self.ranks[op as usize] = Some(rank);
        self.ready.insert(rank);
    }

    fn rank_again(&mut self, op: u32) {
        if let Some(old) = self.ranks[op as usize] {
            self.ready.remove(&old);
            self.enter(op);
        }
    }

    fn rank(&self, op: u32) -> Rank {
        let growth = self.memory.growth(self.problem, op);
        let needs = i128::from(self.memory.needs(self.problem, op));
        match self.rule {
            GreedyRule::Growth => (growth, needs, op),
            GreedyRule::Need => (needs, growth, op),
            GreedyRule::Drop if growth <= 0 => (i128::MIN, needs, op),
            GreedyRule::Drop => (growth - needs, growth, op),
        }
    }
}

#[cfg(test)]
mod tests {
    use planlab_graph::{Operation, Tensor};
    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;

    use super::super::testing::random_graph;
    use super::*;

    /// The rule, with every ready operation ranked again each time.
    fn literal(rule: GreedyRule, problem: &Problem) -> Vec<u32> {
        let mut memory = Memory::new(problem);
        let mut order: Vec<u32> = Vec::new();
        while order.len() < problem.operations() {
            let is_ready = |op: &u32| {
                !order.contains(op)
                    && problem.before[*op as usize].iter().all(|before| order.contains(before))
            };
            let rank = |op: &u32| {
                let (growth, needs) = (memory.growth(problem, *op), i128::from(memory.needs(problem, *op)));
                match rule {
                    GreedyRule::Growth => (0, growth, needs, *op),
                    GreedyRule::Need => (0, needs, growth, *op),
                    GreedyRule::Drop if growth <= 0 => (0, needs, 0, *op),
                    GreedyRule::Drop => (1, growth - needs, growth, *op),
                }
            };
            let ops = 0..u32::try_from(problem.operations()).expect("few");
            let op = ops.filter(is_ready).min_by_key(rank).expect("a legal order goes on");
            memory.run(problem, op);
            order.push(op);
        }
        order
    }

    #[test]
    fn ranks_are_kept_up_to_date() {
        let mut rng = ChaCha8Rng::seed_from_u64(5);
        for count in 0..60 {
            let graph = random_graph(&mut rng, count);
            let dependencies = Dependencies::of(&graph);
            for greedy in Greedy::all(HandOvers::Relaxed) {
                let problem = Problem::new(&graph, &dependencies, HandOvers::Relaxed);
                let expected = if greedy.backwards {
                    literal(greedy.rule, &problem.reversed()).into_iter().rev().collect()
                } else {
                    literal(greedy.rule, &problem)
                };
                assert_eq!(greedy.run(&problem), expected);
                let found = greedy.order(&graph, &dependencies);
                assert_eq!(dependencies.check(&found.order), Ok(()));
            }
        }
    }

    #[test]
    fn by_drop_what_needs_most_for_a_while_comes_first() {
        let mut graph = Graph::builder();
        for (bytes, workspace) in [(5, 1), (1, 30), (2, 20)] {
            let kept = graph.tensor(Tensor::new("", Bytes::new(bytes)).as_output());
            graph.operation(Operation::new("f").writes([kept]).with_workspace(Bytes::new(workspace)));
        }
        let graph = graph.build().expect("valid");
        let found = Greedy::default().with_rule(GreedyRule::Drop).order(&graph, &Dependencies::of(&graph));
        assert_eq!((found.order, found.load), (ids(&[1, 2, 0]), Bytes::new(31)));
    }
}
