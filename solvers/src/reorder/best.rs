//! All searches one after another: first the order of the graph and each greedy rule, forwards and backwards. Then
//! local search from the best of them, and exact search from there, which ends with a proof or at its limits.

use planlab_dsa::Budget;
use planlab_graph::OpId;
use rand::Rng;

use super::watch::Watch;
use super::{ExactOrder, Greedy, LocalSearch, Orders, Reordered};

/// A stage of [`BestOrder`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// The order of the graph, and the greedy ones.
    Greedy,
    /// Local search from the best of them.
    LocalSearch,
    /// Exact search from there.
    Exact,
}

/// The best order that all searches find; never worse than the order of the graph.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BestOrder {
    local: LocalSearch,
    exact: ExactOrder,
}

impl BestOrder {
    /// The work of the local search, in operations examined. Default: 2^22.
    #[must_use]
    pub const fn with_work(mut self, operations: u64) -> Self {
        self.local = self.local.with_work(operations);
        self
    }

    /// The number of sets of the exact search; 0: no exact search. Default: 2^20.
    #[must_use]
    pub const fn with_sets(mut self, sets: usize) -> Self {
        self.exact = self.exact.with_sets(sets);
        self
    }

    /// Runs each stage once, and calls `ended` with the best order so far after each stage; returns the last. When the
    /// budget is used up, the remaining stages end at once. The dependencies must allow the order of the graph.
    ///
    /// ```
    /// use planlab_dsa::{Budget, Bytes};
    /// use planlab_graph::{Dependencies, Graph, Operation, Tensor};
    /// use planlab_solvers::reorder::{BestOrder, HandOvers, Orders, Stage};
    /// use rand::SeedableRng;
    ///
    /// let mut graph = Graph::builder();
    /// let x = graph.add_tensor(Tensor::new("x", Bytes::new(100)));
    /// graph.add_operation(Operation::new("f").with_outputs([x]));
    /// let graph = graph.build()?;
    /// let orders = Orders::new(&graph, &Dependencies::from_tensors(&graph), HandOvers::Relaxed);
    /// let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(1);
    /// let mut loads = Vec::new();
    /// BestOrder::default().run_stages(&orders, &Budget::default(), &mut rng, |stage, best| {
    ///     loads.push((stage, best.load.get()));
    /// });
    /// assert_eq!(loads, [(Stage::Greedy, 100), (Stage::LocalSearch, 100), (Stage::Exact, 100)]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn run_stages(
        &self,
        orders: &Orders,
        budget: &Budget,
        rng: &mut impl Rng,
        mut ended: impl FnMut(Stage, &Reordered),
    ) -> Reordered {
        let (mut watch, problem) = (Watch::new(budget), &orders.problem);
        let mut known: Vec<OpId> = problem.ids().collect();
        let mut end = Ok(());
        for greedy in Greedy::all_rules() {
            match greedy.run_rule(problem, &mut watch) {
                // Of equally good orders, the earlier one: a search that gains nothing changes nothing.
                Ok(order) if problem.load_of(&order) < problem.load_of(&known) => known = order,
                Ok(_) => {}
                Err(stop) => end = Err(stop),
            }
        }
        let (bound, bounded) = orders.bound_within(&mut watch);
        ended(Stage::Greedy, &orders.as_reordered(&known, bound, end.and(bounded)));
        let (searched, end) = self.local.run_search(problem, known.clone(), bound, &mut watch, rng);
        if problem.load_of(&searched) < problem.load_of(&known) {
            known = searched;
        }
        ended(Stage::LocalSearch, &orders.as_reordered(&known, bound, end));
        let best = self.exact.run_search(orders, known, bound, &mut watch);
        ended(Stage::Exact, &best);
        best
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use planlab_dsa::{Clock, Stop};
    use planlab_graph::Dependencies;
    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;

    use super::*;
    use crate::reorder::HandOvers;
    use crate::reorder::testing::{load_of, random_graph};

    #[test]
    fn it_is_as_good_as_each_of_its_parts() {
        let mut rng = ChaCha8Rng::seed_from_u64(8);
        for count in (0..30).flat_map(|count| [count, count]) {
            let graph = random_graph(&mut rng, count);
            let dependencies = Dependencies::from_tensors(&graph);
            for hand_overs in [HandOvers::Counted, HandOvers::Relaxed] {
                let orders = Orders::new(&graph, &dependencies, hand_overs);
                let budget = Budget::default();
                let search = BestOrder::default().with_work(2_000).with_sets(1 << 16);
                let mut stages: Vec<(Stage, Reordered)> = Vec::new();
                let found = search
                    .run_stages(&orders, &budget, &mut rng, |stage, best| stages.push((stage, best.clone())));
                assert_eq!(stages[2], (Stage::Exact, found.clone()));
                for pair in stages.windows(2) {
                    assert!(pair[0].0 < pair[1].0 && pair[1].1.load <= pair[0].1.load);
                }
                for (_, best) in &stages {
                    assert_eq!(load_of(&graph, &best.order, hand_overs), best.load);
                    assert!(best.bound <= found.load);
                }
                for greedy in Greedy::all_rules() {
                    assert!(stages[0].1.load <= greedy.greedy_order(&orders, &budget).load);
                }
                assert!(stages[0].1.load <= orders.load_of(&graph.operation_order()));
            }
        }
    }

    /// A clock that advances by a second at each look: the budget ends in each stage once.
    #[test]
    fn a_deadline_leaves_the_best_order_so_far() {
        use std::sync::atomic::{AtomicU64, Ordering};
        let graph = random_graph(&mut ChaCha8Rng::seed_from_u64(12), 120);
        let dependencies = Dependencies::from_tensors(&graph);
        for hand_overs in [HandOvers::Counted, HandOvers::Relaxed] {
            let run = |budget: &Budget| {
                let orders = Orders::new(&graph, &dependencies, hand_overs);
                let (mut rng, mut count) = (ChaCha8Rng::seed_from_u64(1), 0);
                let search = BestOrder::default().with_sets(1 << 12);
                let found = search.run_stages(&orders, budget, &mut rng, |_, _| count += 1);
                assert!(found.load <= orders.load_of(&graph.operation_order()));
                (found, count)
            };
            let (best, _) = run(&Budget::default());
            let mut loads = Vec::new();
            for seconds in [0, 1, 2, 5, 20, 100] {
                let now = AtomicU64::new(0);
                let clock = Clock::new(move || Duration::from_secs(now.fetch_add(1, Ordering::Relaxed)));
                let budget = Budget { wall: Some(Duration::from_secs(seconds)), clock, ..Budget::default() };
                let (found, count) = run(&budget);
                assert_eq!((count, dependencies.check_order(&found.order)), (3, Ok(())));
                assert!(found.bound <= best.load);
                assert!(found.is_optimal() || found.stop == Stop::Deadline || seconds == 100, "{found:?}");
                loads.push(found.load);
            }
            assert!(loads.is_sorted_by(|one, next| one >= next), "{loads:?}");
        }
    }
}
