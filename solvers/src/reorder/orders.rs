//! The legal orders of a graph, and what a search finds among them.

use std::sync::OnceLock;

use planlab_dsa::{Budget, Bytes, Stop};
use planlab_graph::{Dependencies, Graph, OpId};

use super::problem::{HandOvers, Problem};
use super::watch::Watch;

/// The legal orders of a graph.
///
/// ```
/// use planlab_dsa::{Budget, Bytes};
/// use planlab_graph::{Dependencies, Graph, Operation, Tensor};
/// use planlab_solvers::reorder::{ExactOrder, Greedy, HandOvers, LocalSearch, Orders};
/// use rand::SeedableRng;
///
/// // Two branches, each with a large tensor in the middle; the given order runs them side by side.
/// let mut graph = Graph::builder();
/// let [a, b] = ["a", "b"].map(|name| graph.add_tensor(Tensor::new(name, Bytes::new(100))));
/// let [c, d] = ["c", "d"].map(|name| graph.add_tensor(Tensor::new(name, Bytes::new(1))));
/// graph.add_operation(Operation::new("f").with_outputs([a]));
/// graph.add_operation(Operation::new("g").with_outputs([b]));
/// graph.add_operation(Operation::new("h").with_inputs([a]).with_outputs([c]));
/// graph.add_operation(Operation::new("i").with_inputs([b]).with_outputs([d]));
/// graph.add_operation(Operation::new("j").with_inputs([c, d]));
/// let graph = graph.build()?;
/// let orders = Orders::new(&graph, &Dependencies::from_tensors(&graph), HandOvers::Counted);
/// assert_eq!(orders.load_of(&graph.operation_order()), Bytes::new(201));
/// let budget = Budget::default();
/// assert_eq!(orders.load_bound(&budget), Bytes::new(101));
/// assert_eq!(Greedy::default().greedy_order(&orders, &budget).load, Bytes::new(102));
/// let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(1);
/// let found = LocalSearch::default().with_work(1000).improve_order(&orders, &graph.operation_order(), &budget, &mut rng);
/// assert_eq!(found.load, Bytes::new(102));
/// let best = ExactOrder::default().exact_order(&orders, &budget);
/// assert_eq!((best.load, best.is_optimal()), (Bytes::new(102), true));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Orders {
    pub(super) problem: Problem,
    /// The bound, once a search had the time to find it.
    bound: OnceLock<u64>,
}

impl Orders {
    /// The orders that `dependencies` allow.
    ///
    /// # Panics
    ///
    /// If the dependencies are those of another graph.
    #[must_use]
    pub fn new(graph: &Graph, dependencies: &Dependencies, hand_overs: HandOvers) -> Self {
        Self { problem: Problem::new(graph, dependencies, hand_overs), bound: OnceLock::new() }
    }

    /// The load of an order in bytes.
    ///
    /// # Panics
    ///
    /// If the order does not have every operation exactly once.
    #[must_use]
    pub fn load_of(&self, order: &[OpId]) -> Bytes {
        let mut sorted = order.to_vec();
        sorted.sort_unstable();
        assert!(sorted.into_iter().eq(self.problem.ids()), "every operation once");
        Bytes::new(self.problem.load_of(order))
    }

    /// A lower bound on the load of every legal order: the most bytes that are live at one operation in all of them.
    ///
    /// # Complexity
    ///
    /// O(operations * (uses + dependencies / 64)), and the memory of the ancestor relation. If that would take more
    /// than [`planlab_graph::Ancestors::MEMORY`], or if the budget is used up, the bound is a weaker one.
    #[must_use]
    pub fn load_bound(&self, budget: &Budget) -> Bytes {
        Bytes::new(self.bound_within(&mut Watch::new(budget)).0)
    }

    pub(super) fn bound_within(&self, watch: &mut Watch<'_>) -> (u64, Result<(), Stop>) {
        if let Some(&bound) = self.bound.get() {
            return (bound, Ok(()));
        }
        let (bound, end) = self.problem.load_bound(watch);
        if end.is_ok() {
            let _ = self.bound.set(bound);
        }
        (bound, end)
    }

    pub(super) fn as_reordered(&self, order: &[OpId], bound: u64, end: Result<(), Stop>) -> Reordered {
        let load = self.problem.load_of(order);
        let bound = bound.min(load);
        let stop = match end {
            _ if bound == load => Stop::Proved,
            Ok(()) => Stop::Finished,
            Err(stop) => stop,
        };
        Reordered { order: order.to_vec(), load: Bytes::new(load), bound: Bytes::new(bound), stop }
    }
}

/// An order, and what is known about its load.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reordered {
    /// The operations in a legal order.
    pub order: Vec<OpId>,
    /// The load of the order.
    pub load: Bytes,
    /// A lower bound on the load of every legal order. The order is optimal if it equals the load.
    pub bound: Bytes,
    /// Why the search ended.
    pub stop: Stop,
}

impl Reordered {
    /// Whether no legal order has a lower load.
    #[must_use]
    pub fn is_optimal(&self) -> bool {
        self.load == self.bound
    }
}
