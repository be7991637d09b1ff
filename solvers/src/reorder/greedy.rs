//! Greedy list scheduling: a rule chooses the next operation among those that are ready.
//!
//! | rule | prefers |
//! |---|---|
//! | growth | the least growth of memory (bytes that begin, less bytes that end); then the least need while it runs |
//! | need | the least need while it runs; then the least growth |
//! | drop | operations that do not grow memory, by least need; then the largest difference between need and growth |
//!
//! The last rule is optimal for operations that do not depend on each other: first those that free memory, the
//! cheapest first, then the others, beginning with those that need much more while they run than they leave behind.
//! Each rule also runs backwards, from the last operation to the first. Ties go to the lower id.
//!
//! # References
//!
//! 1. J. W. H. Liu, *An application of generalized tree pebbling to sparse matrix factorization*, SIAM Journal on
//!    Algebraic and Discrete Methods 8(3), 1987, doi:10.1137/0608031 (needs and residues of parts).
//!
//! # Complexity
//!
//! O((uses + dependencies) log operations): the users of a storage are ranked again twice, when it begins and when
//! one user is left.
//!
//! # Deviations from the paper
//!
//! The paper orders the subtrees of a tree; here the rule ranks single operations of a graph, and nothing is proved.

use std::collections::BTreeSet;

use planlab_dsa::{Budget, Stop};
use planlab_graph::OpId;

use super::orders::{Orders, Reordered};
use super::problem::{Memory, Problem};
use super::watch::Watch;

/// The rule that prefers one ready operation to another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum GreedyRule {
    /// Least growth of memory.
    #[default]
    Growth,
    /// Least need while it runs.
    Need,
    /// Operations that do not grow memory, by least need; then the largest difference between need and growth.
    Drop,
}

/// Greedy list scheduling.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Greedy {
    rule: GreedyRule,
    backwards: bool,
}

impl Greedy {
    /// All rules, forwards and backwards.
    #[must_use]
    pub fn all_rules() -> Vec<Self> {
        let rules = [GreedyRule::Growth, GreedyRule::Need, GreedyRule::Drop];
        let both = |rule| [false, true].map(|backwards| Self { rule, backwards });
        rules.into_iter().flat_map(both).collect()
    }

    /// A legal order; if the budget is used up before it is complete, one that ignores the rule.
    #[must_use]
    pub fn greedy_order(&self, orders: &Orders, budget: &Budget) -> Reordered {
        let mut watch = Watch::new(budget);
        let found = self.run_rule(&orders.problem, &mut watch);
        let end = found.as_ref().map(|_| ()).map_err(|&stop| stop);
        let order = found.unwrap_or_else(|_| orders.problem.topological_order());
        let (bound, bounded) = orders.bound_within(&mut watch);
        orders.as_reordered(&order, bound, end.and(bounded))
    }

    pub(super) fn run_rule(&self, problem: &Problem, watch: &mut Watch<'_>) -> Result<Vec<OpId>, Stop> {
        if self.backwards {
            let mut order = List::new(self.rule, &problem.reversed()).run_list(watch)?;
            order.reverse();
            Ok(order)
        } else {
            List::new(self.rule, problem).run_list(watch)
        }
    }
}

/// The rank of an operation; the lowest is next.
type Rank = (i128, i128, OpId);

struct List<'p> {
    rule: GreedyRule,
    problem: &'p Problem,
    memory: Memory,
    waiting: Vec<u32>,
    ready: BTreeSet<Rank>,
    ranks: Vec<Option<Rank>>,
}

impl<'p> List<'p> {
    fn new(rule: GreedyRule, problem: &'p Problem) -> Self {
        let count = problem.operation_count();
        Self {
            rule,
            problem,
            memory: Memory::new(problem),
            waiting: problem.dependencies.dependency_counts(),
            ready: BTreeSet::new(),
            ranks: vec![None; count],
        }
    }

    fn run_list(mut self, watch: &mut Watch<'_>) -> Result<Vec<OpId>, Stop> {
        for op in self.problem.ids().filter(|op| self.waiting[op.index()] == 0).collect::<Vec<_>>() {
            self.enter_operation(op);
        }
        let mut order = Vec::with_capacity(self.waiting.len());
        while let Some((.., op)) = self.ready.pop_first() {
            self.ranks[op.index()] = None;
            order.push(op);
            let after = self.problem.dependencies.after(op).len();
            watch.tick(1 + self.problem.uses[op.index()].len() + after)?;
            self.finish_operation(op);
        }
        Ok(order)
    }

    fn finish_operation(&mut self, op: OpId) {
        let problem = self.problem;
        self.memory.run_operation(problem, op);
        for &index in &problem.uses[op.index()] {
            let users = &problem.stores[index as usize].users;
            let left = self.memory.left[index as usize];
            // It has begun, or one user is left: the growth and the need of its users are others now.
            if left as usize + 1 == users.len() || left == 1 {
                users.iter().for_each(|&user| self.rank_again(user));
            }
        }
        for &next in problem.dependencies.after(op) {
            self.waiting[next.index()] -= 1;
            if self.waiting[next.index()] == 0 {
                self.enter_operation(next);
            }
        }
    }

    fn enter_operation(&mut self, op: OpId) {
        let rank = self.rank_of(op);
        self.ranks[op.index()] = Some(rank);
        self.ready.insert(rank);
    }

    fn rank_again(&mut self, op: OpId) {
        if let Some(old) = self.ranks[op.index()] {
            self.ready.remove(&old);
            self.enter_operation(op);
        }
    }

    fn rank_of(&self, op: OpId) -> Rank {
        let growth = self.memory.growth_after(self.problem, op);
        let needs = i128::from(self.memory.needed_during(self.problem, op));
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
    use planlab_dsa::Bytes;
    use planlab_graph::{Dependencies, Graph, Operation, Tensor};
    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;

    use super::*;
    use crate::reorder::HandOvers;
    use crate::reorder::testing::{load_of, random_graph};

    /// The rule, with every ready operation ranked again each time.
    fn literal(rule: GreedyRule, problem: &Problem) -> Vec<OpId> {
        let mut memory = Memory::new(problem);
        let mut order: Vec<OpId> = Vec::new();
        while order.len() < problem.operation_count() {
            let is_ready = |op: &OpId| {
                !order.contains(op)
                    && problem.dependencies.before(*op).iter().all(|before| order.contains(before))
            };
            let rank = |op: &OpId| {
                let (growth, needs) =
                    (memory.growth_after(problem, *op), i128::from(memory.needed_during(problem, *op)));
                match rule {
                    GreedyRule::Growth => (0, growth, needs, *op),
                    GreedyRule::Need => (0, needs, growth, *op),
                    GreedyRule::Drop if growth <= 0 => (0, needs, 0, *op),
                    GreedyRule::Drop => (1, growth - needs, growth, *op),
                }
            };
            let op = problem.ids().filter(is_ready).min_by_key(rank).expect("a legal order goes on");
            memory.run_operation(problem, op);
            order.push(op);
        }
        order
    }

    #[test]
    fn ranks_are_kept_up_to_date() {
        let mut rng = ChaCha8Rng::seed_from_u64(5);
        for count in 0..60 {
            let graph = random_graph(&mut rng, count);
            let dependencies = Dependencies::from_tensors(&graph);
            let budget = Budget::default();
            for hand_overs in [HandOvers::Counted, HandOvers::Relaxed] {
                let orders = Orders::new(&graph, &dependencies, hand_overs);
                let problem = &orders.problem;
                for greedy in Greedy::all_rules() {
                    let expected = if greedy.backwards {
                        literal(greedy.rule, &problem.reversed()).into_iter().rev().collect()
                    } else {
                        literal(greedy.rule, problem)
                    };
                    let found = greedy.greedy_order(&orders, &budget);
                    assert_eq!(found.order, expected);
                    assert_eq!(dependencies.check_order(&found.order), Ok(()));
                    assert_eq!(found.load, load_of(&graph, &found.order, hand_overs));
                }
            }
        }
    }

    #[test]
    fn by_drop_what_needs_most_for_a_while_comes_first() {
        let mut graph = Graph::builder();
        for (bytes, workspace) in [(5, 1), (1, 30), (2, 20)] {
            let kept = graph.add_tensor(Tensor::new("", Bytes::new(bytes)).as_output());
            graph.add_operation(
                Operation::new("f").with_outputs([kept]).with_workspace(Bytes::new(workspace)),
            );
        }
        let graph = graph.build().expect("valid");
        let orders = Orders::new(&graph, &Dependencies::from_tensors(&graph), HandOvers::Counted);
        let found =
            Greedy { rule: GreedyRule::Drop, backwards: false }.greedy_order(&orders, &Budget::default());
        assert_eq!((found.order, found.load), ([1, 2, 0].map(OpId::from_index).to_vec(), Bytes::new(31)));
    }

    #[test]
    fn a_stop_leaves_a_legal_order() {
        let graph = random_graph(&mut ChaCha8Rng::seed_from_u64(6), 40);
        let dependencies = Dependencies::from_tensors(&graph);
        let orders = Orders::new(&graph, &dependencies, HandOvers::Relaxed);
        let budget = Budget { work: Some(20), ..Budget::default() };
        for greedy in Greedy::all_rules() {
            let found = greedy.greedy_order(&orders, &budget);
            assert_eq!((dependencies.check_order(&found.order), found.stop), (Ok(()), Stop::WorkLimit));
            assert!(found.bound <= found.load && found.bound > Bytes::ZERO);
        }
    }
}
