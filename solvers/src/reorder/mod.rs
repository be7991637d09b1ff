//! Orders of a graph's operations with a lower load.
//!
//! The load of an order is that of [`planlab_graph::lower_graph`]: at the step of an operation its inputs, its outputs
//! and its workspace count, together with all that later operations need. Inputs of the graph count from the start
//! to their last use, outputs count to the end, and external tensors do not count. [`HandOvers`] says whether an
//! output counts beside an input whose place it may take.
//!
//! | search | finds |
//! |---|---|
//! | [`Greedy`] | a good order at once |
//! | [`LocalSearch`] | a better one, within the work that it is given |
//! | [`ExactOrder`] | the best one, with a proof, if few sets of operations can be done first |
//! | [`BestOrder`] | the best of all three, one after another |
//!
//! All of them search the [`Orders`] of a graph within a [`Budget`](planlab_dsa::Budget); they honour its `wall`, `work`
//! and `cancel`. When it is used up, they return the best order so far and the bound proved by then.

mod best;
mod exact;
mod greedy;
mod local_search;
mod orders;
mod problem;
#[cfg(test)]
mod reference;
#[cfg(test)]
pub(crate) mod testing;
mod watch;

pub use best::{BestOrder, Stage};
pub use exact::ExactOrder;
pub use greedy::Greedy;
pub use local_search::LocalSearch;
pub use orders::{Orders, Reordered};
pub use problem::HandOvers;
