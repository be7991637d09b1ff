//! Exact search.

mod certificate;
pub(crate) mod kernel;
mod memo;
pub(crate) mod minimise;
pub(crate) mod planner;
mod precedence;
mod problem;
mod pruning;
mod rank;
mod search;
#[cfg(test)]
mod tests;

pub use certificate::Step;
pub use planner::Exact;
pub use pruning::Pruning;
