//! Exact search: the lowest plan, and the proof that no plan is lower; key `exact`.
//!
//! | file | what it does |
//! |---|---|
//! | `minimise.rs` | restarts of the search at one capacity (`feasibility/`) between bound and incumbent, on every thread |
//! | `hand_overs.rs`, `merge.rs` | larger instances with in-place permissions: some are decided, the rest is searched, again and again |
//! | `precedence.rs` | small instances with hand-overs or windows: branches on which of two lies below |
//!
//! While minimising, a plan lowers the incumbent and a refuted capacity raises the bound; both remain when the run
//! ends. With one thread, equal seeds and work limits give equal plans.
//!
//! # References
//!
//! 1. M. D. Moffitt, *MiniMalloc: A lightweight memory allocator for hardware-accelerated machine
//!    learning*, ASPLOS 2023, doi:10.1145/3623278.3624752 (placement at the lowest offset in a canonical
//!    order, section bounds, decomposition, three static orders in rounds).
//! 2. J. R. Jackson, *Scheduling a production line to minimize maximum tardiness*, UCLA 1955 (the bound
//!    from release dates, here offsets).
//! 3. M. Luby, A. Sinclair and D. Zuckerman, *Optimal speedup of Las Vegas algorithms*, Information
//!    Processing Letters 47, 1993, doi:10.1016/0020-0190(93)90029-9 (the lengths of restarts).
//!
//! # Complexity
//!
//! Exponential. A node takes O(k log k + s) for k unplaced buffers that touch s sections in all.
//!
//! # Deviations from the paper
//!
//! From MiniMalloc: a refuted sibling leaves a *raised* lowest offset behind, not only a place in an order, and
//! everything that has to rest on it rises too. A section is checked against every offset, not its floor alone. Refuted
//! states are kept. Restarts blur the orders, and ranks are computed again when the problem splits. A capacity is only
//! one of many that a minimisation tries.

mod hand_overs;
mod merge;
pub(crate) mod minimise;
pub(crate) mod planner;
mod precedence;

#[cfg(test)]
mod certificate_tests;
#[cfg(test)]
mod tests;

pub use crate::certificate::{BadStep, Certificate, CertificateError, Step, StepFault};
pub use crate::feasibility::{Refutation, certify};
pub use planner::Exact;
