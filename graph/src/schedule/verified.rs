//! A schedule that has passed the validator.

use planlab_dsa::{Bytes, Instance, InstanceError, Offset};

use super::error::ScheduleError;
use crate::{Schedule, SchedulingProblem, Timeline, simulate_schedule, validate_schedule};

/// A schedule that has passed the validator.
#[derive(Clone, Debug, PartialEq)]
pub struct Verified {
    schedule: Schedule,
    timeline: Timeline,
    height: Bytes,
}

impl Verified {
    /// Simulates a schedule, gives a draft the offsets of [`Schedule::best_fit`], and validates it.
    ///
    /// # Errors
    ///
    /// [`ScheduleError::Stuck`] if it does not run within the problem's capacity, [`ScheduleError::Invalid`] if it is
    /// wrong.
    pub fn new(problem: &SchedulingProblem, schedule: Schedule) -> Result<Self, ScheduleError> {
        let is_draft = schedule.buffers.iter().any(|buffer| buffer.offset.is_none());
        if is_draft {
            let timeline = simulate_schedule(&schedule, Some(problem.capacity))?;
            let offsets = schedule.best_fit(&timeline);
            return Self::validate_and_simulate(problem, schedule.with_offsets(&timeline, &offsets));
        }
        Self::validate_and_simulate(problem, schedule)
    }

    fn validate_and_simulate(problem: &SchedulingProblem, schedule: Schedule) -> Result<Self, ScheduleError> {
        let audited = validate_schedule(problem, &schedule, None)?;
        let timeline = simulate_schedule(&schedule, Some(problem.capacity))?;
        Ok(Self { schedule, timeline, height: audited.height })
    }

    /// The same schedule with other offsets, counted from the base.
    ///
    /// # Errors
    ///
    /// [`ScheduleError::Invalid`] if two buffers share an address.
    ///
    /// # Panics
    ///
    /// If there is not one offset per buffer.
    pub fn with_offsets(
        &self,
        problem: &SchedulingProblem,
        offsets: &[Offset],
    ) -> Result<Self, ScheduleError> {
        Self::validate_and_simulate(problem, self.schedule.clone().with_offsets(&self.timeline, offsets))
    }

    /// The placement problem of its buffers. Errors are as of [`Schedule::placement_problem`].
    pub fn placement_problem(&self) -> Result<Instance, InstanceError> {
        self.schedule.placement_problem(&self.timeline)
    }

    /// The placed schedule.
    #[must_use]
    pub const fn schedule(&self) -> &Schedule {
        &self.schedule
    }

    /// The simulated run of the schedule.
    #[must_use]
    pub const fn timeline(&self) -> &Timeline {
        &self.timeline
    }

    /// Seconds of one iteration.
    #[must_use]
    pub const fn seconds(&self) -> f64 {
        self.timeline.seconds
    }

    /// The most bytes taken at once, base included.
    #[must_use]
    pub const fn live_peak(&self) -> Bytes {
        self.timeline.peak
    }

    /// The memory that its offsets need, base included.
    #[must_use]
    pub const fn height(&self) -> Bytes {
        self.height
    }
}
