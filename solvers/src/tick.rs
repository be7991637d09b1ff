//! Counts work.

use planlab_dsa::Halt;

/// Counts work; returns an error when it is time to stop.
pub(crate) type Tick<'t> = dyn FnMut(u64) -> Result<(), Halt> + 't;
