//! Runs cells: planners under limits, each in a child process (quick ones share one), with a verdict whatever the child
//! does.
//!
//! ```text
//!   Cell --Runner--> Request --supervisor--> child: planner --Answer, mailbox--> CellEnd --judge--> Judgement --> Record
//! ```
//!
//! The parent writes a [`Request`] to the child's stdin. The child answers with one JSON line per event on a private
//! copy of its stdout; what a planner prints goes to stderr. It keeps its best verified plan and bound in a
//! [`mailbox`], so that a hard kill does not lose them.

pub(crate) mod cache;
mod cell;
pub(crate) mod child;
mod judge;
mod mailbox;
pub(crate) mod planners;
mod protocol;
mod prover;
mod runner;
mod saboteurs;
#[cfg(feature = "debug-checks")]
mod slowdown;
mod supervisor;

pub(crate) use cell::Cell;
pub(crate) use judge::{Fate, Judgement, fate};
pub(crate) use prover::Prover;
pub(crate) use runner::{RowContext, Runner, Samples, Subject, in_process, record};
