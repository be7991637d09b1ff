//! Runs cells of any kind: each in a child process under limits (quick ones share one), with an end whatever the child
//! does.
//!
//! ```text
//!   Order --Supervisor--> Request --> child: Kind::open, Kind::perform --Reply, mailbox--> CellEnd --a kind's judge--> row
//! ```
//!
//! The parent writes a request to the child's stdin. The child answers with one JSON line per event on a private copy
//! of its stdout; what a planner prints goes to stderr. It keeps its best so far in a mailbox, so that a hard kill does
//! not lose it. What is asked and answered is the business of a [`Kind`].

mod child;
mod ending;
mod kind;
mod mailbox;
pub(crate) mod sabotage;
mod supervisor;

pub(crate) use child::serve;
pub(crate) use ending::{Ending, ReportedFailure, RunEnd};
pub(crate) use kind::{CellContext, FOREVER, Kind};
pub(crate) use mailbox::{MailboxWriter, latest};
pub(crate) use supervisor::{CellEnd, Order, RowContext, Supervisor};
