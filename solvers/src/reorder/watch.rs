//! Ends a search when its budget is used up.

use std::time::Duration;

use planlab_dsa::{Budget, Stop};

/// Units of work between two looks at the clock and the cancel token.
const WORK_PER_LOOK: u64 = 1 << 14;

/// What a search has used of its budget: wall time, work and the cancel token count, the rest is ignored.
pub(super) struct Watch<'b> {
    budget: &'b Budget,
    start: Duration,
    work: u64,
    look_at: u64,
}

impl<'b> Watch<'b> {
    pub(super) fn new(budget: &'b Budget) -> Self {
        Self { budget, start: budget.clock.now(), work: 0, look_at: 0 }
    }

    /// Counts work, or returns the reason to end the search. The unit is an operation, a storage or a dependency that the
    /// search examines.
    pub(super) fn tick(&mut self, work: usize) -> Result<(), Stop> {
        self.work += work as u64;
        if self.budget.work.is_some_and(|limit| self.work > limit) {
            return Err(Stop::WorkLimit);
        }
        if self.work < self.look_at {
            return Ok(());
        }
        self.look_at = self.work + WORK_PER_LOOK;
        if self.budget.cancel.is_cancelled() {
            return Err(Stop::Cancelled);
        }
        let is_late = |wall| self.budget.clock.now().saturating_sub(self.start) >= wall;
        if self.budget.wall.is_some_and(is_late) { Err(Stop::Deadline) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_limit_ends_a_search() {
        let ends = |budget: &Budget| Watch::new(budget).tick(10);
        assert_eq!(ends(&Budget::default()), Ok(()));
        assert_eq!(ends(&Budget { work: Some(10), ..Budget::default() }), Ok(()));
        assert_eq!(ends(&Budget { work: Some(9), ..Budget::default() }), Err(Stop::WorkLimit));
        assert_eq!(ends(&Budget { wall: Some(Duration::ZERO), ..Budget::default() }), Err(Stop::Deadline));
        let cancelled = Budget::default();
        cancelled.cancel.cancel();
        assert_eq!(ends(&cancelled), Err(Stop::Cancelled));
    }
}
