//! A run of a scheduler from outside: the scheduler, the limits and the result.

use std::borrow::Cow;
use std::num::NonZeroUsize;
use std::time::Duration;

use planlab_dsa::{Budget, CancelToken, Clock, Stop};
use serde::Serialize;

use super::bounds::ScheduleBound;
use super::error::ScheduleError;
use super::least_memory::MemoryBound;
use super::verified::Verified;

/// What is known of a scheduler before it runs.
#[derive(Clone, Debug, Default, Serialize)]
pub struct SchedulerDescriptor {
    /// The stable name: `pooch/retain`.
    pub key: Cow<'static, str>,
    /// What it does, in one line.
    pub summary: Cow<'static, str>,
    /// Whether the seed changes its schedules.
    pub randomized: bool,
    /// Where it was published.
    pub reference: &'static str,
    /// Running time in the number n of feature maps; one simulation is O(n).
    pub complexity: &'static str,
}

/// The limits of a run.
#[derive(Clone, Debug, Default)]
pub struct ScheduleBudget {
    /// Wall time from the start of the run. Default: no limit.
    pub wall: Option<Duration>,
    /// Units of work: simulated iterations. Default: no limit.
    pub work: Option<u64>,
    /// Stop as soon as an iteration takes at most this many seconds. Default: no target.
    pub target: Option<f64>,
    /// Threads that the scheduler may use. Default: 1.
    pub threads: Option<NonZeroUsize>,
    /// Ends the run from outside.
    pub cancel: CancelToken,
    /// The clock that measures the wall time.
    pub clock: Clock,
}

impl ScheduleBudget {
    /// The budget of a planner that places the schedule of a run that took `elapsed`: the time that is left, and `work`
    /// units of the planner if this budget limits work.
    #[must_use]
    pub fn placement_budget(&self, elapsed: Duration, work: u64) -> Budget {
        Budget {
            wall: self.wall.map(|wall| wall.saturating_sub(elapsed)),
            work: self.work.map(|_| work),
            cancel: self.cancel.clone(),
            clock: self.clock.clone(),
            ..Budget::default()
        }
    }
}

/// A point of the trajectory.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ScheduleMark {
    /// Time since the start of the run.
    pub elapsed: Duration,
    /// Units of work done until then.
    pub work: u64,
    /// The time of the best schedule.
    pub seconds: f64,
}

/// The result of a run.
#[derive(Clone, Debug)]
pub struct ScheduleOutcome {
    /// The fastest valid schedule.
    pub best: Option<Verified>,
    /// The best proven bound on the time of every schedule.
    pub bound: ScheduleBound,
    /// The best proven bound on the memory of every schedule. If it is above the capacity, no schedule fits, and the run
    /// has ended as [`Stop::Infeasible`].
    pub least_memory: MemoryBound,
    /// Why the run ended.
    pub end: Result<Stop, ScheduleError>,
    /// Why there is no schedule, in the scheduler's words, such as out of memory.
    pub shortfall: Option<String>,
    /// Improvements, ascending by time.
    pub trajectory: Vec<ScheduleMark>,
    /// Time from start to end, including simulation and validation.
    pub elapsed: Duration,
    /// Units of work done.
    pub work: u64,
}

impl ScheduleOutcome {
    /// The [gap](ScheduleBound::gap) of the best schedule; 0 means optimal. `None` without a schedule.
    #[must_use]
    pub fn best_gap(&self) -> Option<f64> {
        Some(self.bound.gap(self.best.as_ref()?.seconds()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placement_gets_the_time_that_is_left() {
        let seconds = Duration::from_secs;
        let budget = ScheduleBudget { wall: Some(seconds(10)), ..ScheduleBudget::default() };
        let wall = |elapsed| budget.placement_budget(elapsed, 7).wall;
        assert_eq!(
            [4, 10, 12].map(|elapsed| wall(seconds(elapsed))),
            [6, 0, 0].map(|left| Some(seconds(left)))
        );
        assert_eq!(ScheduleBudget::default().placement_budget(seconds(1), 7).wall, None);
    }

    #[test]
    fn placement_has_a_work_limit_under_a_work_limit() {
        let work = |work| {
            let budget = ScheduleBudget { work, ..ScheduleBudget::default() };
            budget.placement_budget(Duration::ZERO, 7).work
        };
        assert_eq!((work(Some(1)), work(None)), (Some(7), None));
    }

    #[test]
    fn cancelled_run_places_nothing() {
        let budget = ScheduleBudget::default();
        let placement = budget.placement_budget(Duration::ZERO, 1);
        budget.cancel.cancel();
        assert!(placement.cancel.is_cancelled());
    }
}
