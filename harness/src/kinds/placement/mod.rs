//! Placement: planners under limits, each in a child process (quick ones share one), with a verdict whatever the child
//! does.
//!
//! ```text
//!   Cell --Runner--> CellRequest --cells--> child: planner --Answer, mailbox--> CellEnd --judge--> Judgement --> Record
//! ```

pub(crate) mod cache;
mod cell;
mod judge;
mod kind;
mod mailbox;
mod messages;
pub(crate) mod planners;
mod prover;
mod row;
mod runner;
mod saboteurs;
#[cfg(feature = "debug-checks")]
mod slowdown;

pub(crate) use cell::{Cell, Subject};
pub(crate) use judge::Judgement;
pub(crate) use kind::Placement;
pub(crate) use prover::Prover;
pub(crate) use row::record;
pub(crate) use runner::{Runner, Samples, in_process};
