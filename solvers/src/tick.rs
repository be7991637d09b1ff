//! Counts work.

use planlab_dsa::{Halt, Run};

/// Counts work; returns an error when it is time to stop.
pub(crate) type Tick<'t> = dyn FnMut(u64) -> Result<(), Halt> + 't;

/// Counts work for a run and for a part of it that has spent `work` so far.
pub(crate) fn count_for_both(work: &mut u64, run: &mut Run<'_>) -> impl FnMut(u64) -> Result<(), Halt> {
    move |units| {
        *work += units;
        run.tick(units)
    }
}
