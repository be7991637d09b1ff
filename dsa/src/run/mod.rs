//! Runs of planners: the contract, the limits, one run, and its outcome.

mod bounds;
mod budget;
mod descriptor;
mod execution;
mod incumbent;
mod outcome;
mod planner;
mod state;
#[cfg(test)]
mod tests;

pub use budget::{Budget, CancelToken};
pub use descriptor::{Descriptor, Feature, Guarantee, Honours};
pub use execution::{execute, execute_observed};
pub use outcome::{Event, Halt, Mark, Outcome, PlanError, Stop};
pub use planner::Planner;
pub use state::Run;
