//! The contract of a placement planner.

use crate::{Descriptor, Halt, Run};

/// A planning algorithm: an immutable configuration, `&self`, and a [`Run`] that holds all changing state.
///
/// A planner [offers](Run::offer) plans as it finds them and [raises the bound](Run::raise_bound) as it proves it; the
/// run checks both before they count. The planner calls [`Run::tick`] often enough to keep a time limit, and returns
/// through `?` when the run ends.
pub trait Planner: Send + Sync {
    /// What the planner is and which features it honours.
    fn descriptor(&self) -> Descriptor;

    /// Plans. `Ok(())` means that the planner has finished.
    ///
    /// # Errors
    ///
    /// [`Halt::Stop`] when the run ends, [`Halt::Error`] when the planner fails.
    fn plan(&self, run: &mut Run<'_>) -> Result<(), Halt>;
}

impl<P: Planner + ?Sized> Planner for Box<P> {
    fn descriptor(&self) -> Descriptor {
        (**self).descriptor()
    }

    fn plan(&self, run: &mut Run<'_>) -> Result<(), Halt> {
        (**self).plan(run)
    }
}
