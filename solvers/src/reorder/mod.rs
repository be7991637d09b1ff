//! Orders of a graph's operations under which less is live at a time.
//!
//! The load of an order is that of [`planlab_graph::lower`]: at the step of an operation its inputs, its outputs and its
//! workspace count together with all that is needed later; inputs of the graph count from the start to their last use,
//! outputs to the end, and what the caller keeps not at all. [`HandOvers`] says whether an output that may take an
//! input's place counts beside it.
//!
//! | search | for |
//! |---|---|
//! | [`Greedy`] | a good order at once |
//! | [`LocalSearch`] | a better one, in as much work as it is given |
//! | [`ExactOrder`] | the best one, with a proof, where few sets of operations can be done first |
//! | [`BestOrder`] | all three |

mod best;
mod exact;
mod greedy;
mod local_search;
mod problem;

use planlab_dsa::Bytes;
use planlab_graph::{Dependencies, Graph, OpId};

pub use best::BestOrder;
pub use exact::ExactOrder;
pub use greedy::{Greedy, GreedyRule};
pub use local_search::LocalSearch;
use problem::Problem;

/// Whether an output counts at its first step if it may take the place of an input that nothing needs afterwards.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HandOvers {
    /// It counts: [`planlab_dsa::Instance::load`].
    #[default]
    Counted,
    /// It does not: [`planlab_dsa::Instance::relaxed_load`].
    Relaxed,
}

/// An order, and how good it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reordered {
    /// The operations in a legal order.
    pub order: Vec<OpId>,
    /// The load of the order.
    pub load: Bytes,
    /// What the load of every legal order is at least. The order is optimal if it equals the load.
    pub bound: Bytes,
}

impl Reordered {
    /// Whether no legal order has a lower load.
    #[must_use]
    pub fn is_optimal(&self) -> bool {
        self.load == self.bound
    }
}

/// The load of a legal order, in bytes.
///
/// # Panics
///
/// If the order lacks an operation of the graph.
#[must_use]
pub fn load_of_order(graph: &Graph, order: &[OpId], hand_overs: HandOvers) -> Bytes {
    let problem = Problem::new(graph, &Dependencies::of(graph), hand_overs);
    Bytes::new(problem.load(&numbers(order)))
}

/// What is live at some operation in every legal order, at most: a bound on the load of all of them.
///
/// # Complexity
///
/// O(operations * (uses + dependencies / 64)).
#[must_use]
pub fn bound_of_orders(graph: &Graph, dependencies: &Dependencies, hand_overs: HandOvers) -> Bytes {
    Bytes::new(Problem::new(graph, dependencies, hand_overs).bound())
}

fn numbers(order: &[OpId]) -> Vec<u32> {
    order.iter().map(|op| u32::try_from(op.index()).expect("ids have 32 bits")).collect()
}

fn ids(order: &[u32]) -> Vec<OpId> {
    order.iter().map(|&op| OpId::from_index(op as usize)).collect()
}

#[cfg(test)]
mod testing;
