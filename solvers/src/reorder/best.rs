//! All searches for a good order, one after the other: the given order, each greedy rule both ways, local search from
//! the best of them, and the exact search from there, which ends with a proof or at its limit.

use planlab_graph::{Dependencies, Graph};
use rand::Rng;

use super::problem::Problem;
use super::{ExactOrder, Greedy, HandOvers, LocalSearch, Reordered, numbers};

/// The best order that the searches find together; never worse than the graph's own.
///
/// ```
/// use planlab_dsa::Bytes;
/// use planlab_graph::{Dependencies, Graph, Operation, Tensor};
/// use planlab_solvers::reorder::BestOrder;
/// use rand::SeedableRng;
///
/// let mut graph = Graph::builder();
/// let [a, b] = ["a", "b"].map(|name| graph.tensor(Tensor::new(name, Bytes::new(100))));
/// graph.operation(Operation::new("f").writes([a]));
/// graph.operation(Operation::new("g").writes([b]));
/// graph.operation(Operation::new("h").reads([a]));
/// graph.operation(Operation::new("i").reads([b]));
/// let graph = graph.build()?;
/// let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(1);
/// let found = BestOrder::default().order(&graph, &Dependencies::of(&graph), &mut rng);
/// assert_eq!((found.load, found.is_optimal()), (Bytes::new(100), true));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BestOrder {
    local: LocalSearch,
    exact: ExactOrder,
    hand_overs: HandOvers,
}

impl BestOrder {
    /// The work of the local search, in operations looked at. Default: 2^22.
    #[must_use]
    pub const fn with_work(mut self, operations: u64) -> Self {
        self.local = self.local.with_work(operations);
        self
    }

    /// The sets of the exact search; 0: there is none. Default: 2^20.
    #[must_use]
    pub const fn with_sets(mut self, sets: usize) -> Self {
        self.exact = self.exact.with_sets(sets);
        self
    }

    /// How hand-overs count. Default: outputs count beside their inputs.
    #[must_use]
    pub const fn with_hand_overs(mut self, hand_overs: HandOvers) -> Self {
        self.hand_overs = hand_overs;
        self
    }

    /// The best order found, and what is proved.
    ///
    /// # Panics
    ///
    /// If the dependencies are those of another graph, or forbid the graph's own order.
    pub fn order(&self, graph: &Graph, dependencies: &Dependencies, rng: &mut impl Rng) -> Reordered {
        dependencies.check(&graph.order()).expect("the graph's own order");
        let problem = Problem::new(graph, dependencies, self.hand_overs);
        let bound = problem.bound();
        let greedy = Greedy::all(self.hand_overs).into_iter().map(|greedy| greedy.run(&problem));
        let orders = std::iter::once(numbers(&graph.order())).chain(greedy);
        let known = orders.min_by_key(|order| problem.load(order)).unwrap_or_default();
        let searched = self.local.run(&problem, known.clone(), bound, rng);
        // Of orders that are as good, the earlier one: a search that gains nothing changes nothing.
        let known = if problem.load(&searched) < problem.load(&known) { searched } else { known };
        self.exact.run(&problem, known, bound)
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;

    use super::super::load_of_order;
    use super::super::testing::random_graph;
    use super::*;

    #[test]
    fn it_is_as_good_as_each_of_its_parts() {
        let mut rng = ChaCha8Rng::seed_from_u64(8);
        for count in 0..30 {
            let graph = random_graph(&mut rng, count);
            let dependencies = Dependencies::of(&graph);
            let best = |sets| BestOrder::default().with_work(2_000).with_sets(sets);
            let quick = best(0).order(&graph, &dependencies, &mut rng);
            let found = best(1 << 16).order(&graph, &dependencies, &mut rng);
            let counted = HandOvers::Counted;
            assert_eq!(load_of_order(&graph, &found.order, counted), found.load);
            assert!(found.bound <= found.load && quick.bound <= found.load && found.load <= quick.load);
            for greedy in Greedy::all(counted) {
                assert!(quick.load <= greedy.order(&graph, &dependencies).load);
            }
            assert!(quick.load <= load_of_order(&graph, &graph.order(), counted));
        }
    }
}
