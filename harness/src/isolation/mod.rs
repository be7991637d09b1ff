//! One child process per cell or batch of quick cells: limits, and a verdict whatever the child does.
//!
//! The parent writes a [`Request`] to the child's stdin. The child answers with one JSON line per event
//! on a private copy of its stdout (what a planner prints goes to stderr), and keeps its best verified
//! plan and bound in a [`mailbox`], so that a hard kill does not lose them.

pub(crate) mod child;
pub(crate) mod limits;
pub(crate) mod mailbox;
pub(crate) mod protocol;
pub(crate) mod saboteur;
#[cfg(feature = "debug-checks")]
pub(crate) mod slowdown;
pub(crate) mod supervisor;

pub(crate) use protocol::{Answer, CellRequest, Request};
pub(crate) use supervisor::{CellEnd, Death, Watch, run};
