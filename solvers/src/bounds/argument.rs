//! What every argument for a bound has in common.

use planlab_dsa::{Evidence, Halt, Instance};

use crate::tick::Tick;

/// A bound above the previous one.
pub(super) struct Found {
    /// In bytes.
    pub(super) value: u64,
    pub(super) how: String,
}

/// A method to prove a bound on the height of a plan in one arena without hand-overs.
pub(super) trait Argument: Sync {
    fn evidence(&self) -> Evidence;

    /// The message if nothing was found.
    fn failure_message(&self) -> &'static str;

    /// A bound above the known bound `known`, in bytes, if the argument has one.
    fn prove_bound(&self, arena: &Instance, known: u64, tick: &mut Tick<'_>) -> Result<Option<Found>, Halt>;
}
