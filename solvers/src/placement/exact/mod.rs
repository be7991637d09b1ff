//! Exact search.

mod certificate;
#[cfg(test)]
mod certificate_tests;
mod checker;
pub(crate) mod kernel;
mod memo;
pub(crate) mod minimise;
mod peel;
pub(crate) mod planner;
mod precedence;
mod problem;
mod pruning;
mod rank;
mod search;
#[cfg(test)]
mod tests;

pub use certificate::{BadStep, Certificate, Refutation, Step, certify};
pub use checker::{CertificateError, StepFault};
pub use planner::Exact;
pub use pruning::Pruning;
