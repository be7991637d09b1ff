//! Work that a scheduler does in loops of its own, counted as simulated iterations.

use planlab_graph::{ScheduleHalt, ScheduleRun, SchedulingProblem};

/// Why there is no schedule if a limit ends the run first.
pub(super) const CUT_OFF: &str = "too large: the limit came before a schedule was found";

/// The steps that take about as long as the simulation of an event. A step is a look at one candidate.
const STEPS_PER_EVENT: u64 = 64;
/// The events that take as long as what a simulation does once.
const EVENTS_AT_LEAST: u64 = 32;

/// Counts the steps of a scheduler's own loops, so that a limit on work ends them, too.
#[derive(Clone, Copy, Debug)]
pub(super) struct WorkMeter {
    /// The steps that count as one simulated iteration.
    steps_per_work: u64,
    /// The steps that do not fill an iteration yet.
    steps: u64,
}

impl WorkMeter {
    /// A meter for a problem, whose iterations have about two events for each function.
    pub(super) fn new(problem: &SchedulingProblem) -> Self {
        let events = EVENTS_AT_LEAST + 2 * problem.net.functions().len() as u64;
        Self { steps_per_work: STEPS_PER_EVENT * events, steps: 0 }
    }

    /// Counts steps. Errors are as of [`ScheduleRun::tick`].
    pub(super) fn count_steps(&mut self, run: &mut ScheduleRun<'_>, steps: u64) -> Result<(), ScheduleHalt> {
        run.tick(self.take_work(steps))
    }

    /// The iterations that are full with these steps.
    const fn take_work(&mut self, steps: u64) -> u64 {
        let steps = self.steps.saturating_add(steps);
        self.steps = steps % self.steps_per_work;
        steps / self.steps_per_work
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::testing::chain_problem;

    #[test]
    fn steps_that_fill_no_iteration_are_kept() {
        // 42 events of 64 steps.
        let mut meter = WorkMeter::new(&chain_problem(&[1; 6]));
        let work = [2_687, 1, 2_687, 1, 3 * 2_688 + 7, 2_681].map(|steps| meter.take_work(steps));
        assert_eq!(work, [0, 1, 0, 1, 3, 1]);
    }
}
