//! The contract of a scheduler, and its run: the counterpart of a [`Planner`](planlab_dsa::Planner) for placement.
//!
//! A scheduler [offers](ScheduleRun::offer) drafts as it finds them. The run simulates, places and validates each draft
//! before it counts. Schedules are ranked by time. The memory that their *offsets* need is reported separately, because
//! it may exceed the most bytes taken at once.

use std::num::NonZeroUsize;
use std::time::Duration;

use planlab_dsa::Stop;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use super::bounds::{ScheduleBound, compute_bound};
use super::error::{ScheduleError, ScheduleHalt};
use super::least_memory::{MemoryBound, bound_memory};
use super::outcome::{ScheduleBudget, ScheduleMark, ScheduleOutcome, SchedulerDescriptor};
use super::verified::Verified;
use crate::{Schedule, SchedulingProblem};

/// A scheduling algorithm: an immutable configuration, and a [`ScheduleRun`] that holds all changing state.
pub trait Scheduler: Send + Sync {
    /// What the scheduler is.
    fn descriptor(&self) -> SchedulerDescriptor;

    /// Schedules. `Ok(())` means that the scheduler has finished.
    ///
    /// # Errors
    ///
    /// [`ScheduleHalt::Stop`] when the run ends, [`ScheduleHalt::Error`] when the scheduler fails.
    fn schedule(&self, run: &mut ScheduleRun<'_>) -> Result<(), ScheduleHalt>;

    /// Whether the scheduler uses several [threads](ScheduleRun::threads) if the budget permits. Default: no.
    fn uses_threads(&self) -> bool {
        false
    }

    /// Whether the scheduler searches all schedules of small nets, so that it may
    /// [claim](ScheduleRun::claim_infeasible) that no schedule fits. Default: no.
    fn searches_all_schedules(&self) -> bool {
        false
    }
}

impl<S: Scheduler + ?Sized> Scheduler for Box<S> {
    fn descriptor(&self) -> SchedulerDescriptor {
        (**self).descriptor()
    }

    fn schedule(&self, run: &mut ScheduleRun<'_>) -> Result<(), ScheduleHalt> {
        (**self).schedule(run)
    }

    fn uses_threads(&self) -> bool {
        (**self).uses_threads()
    }

    fn searches_all_schedules(&self) -> bool {
        (**self).searches_all_schedules()
    }
}

/// One run of a scheduler.
pub struct ScheduleRun<'p> {
    problem: &'p SchedulingProblem,
    budget: ScheduleBudget,
    start: Duration,
    work: u64,
    rng: ChaCha8Rng,
    best: Option<Verified>,
    bound: ScheduleBound,
    least_memory: MemoryBound,
    shortfall: Option<String>,
    trajectory: Vec<ScheduleMark>,
    /// The schedules that a consulted scheduler offers, except the best; `None` if only the best counts.
    others: Option<Vec<Verified>>,
    observer: Box<dyn FnMut(&Verified) + 'p>,
}

/// Runs a scheduler.
///
/// The bound that every function takes its time is known before the start, so a schedule that hides all its copies is
/// thereby proved optimal. If no schedule fits the capacity by [`bound_memory`], the run ends as [`Stop::Infeasible`]
/// before the scheduler starts.
#[must_use]
pub fn execute_scheduler(
    scheduler: &dyn Scheduler,
    problem: &SchedulingProblem,
    budget: ScheduleBudget,
    seed: u64,
) -> ScheduleOutcome {
    execute_scheduler_observed(scheduler, problem, budget, seed, |_| ())
}

/// Like [`execute_scheduler`], but calls `observer` for every schedule that is better than all before it.
#[must_use]
pub fn execute_scheduler_observed<'p>(
    scheduler: &dyn Scheduler,
    problem: &'p SchedulingProblem,
    budget: ScheduleBudget,
    seed: u64,
    observer: impl FnMut(&Verified) + 'p,
) -> ScheduleOutcome {
    let rng = ChaCha8Rng::seed_from_u64(seed);
    let start = budget.clock.now();
    let bounds = (compute_bound(problem), bound_memory(problem));
    let mut run = ScheduleRun::new(problem, budget, start, rng, bounds);
    run.observer = Box::new(observer);
    let end = match run.check_capacity().and_then(|()| scheduler.schedule(&mut run)) {
        Ok(()) => Ok(Stop::Finished),
        Err(ScheduleHalt::Stop(stop)) => Ok(stop),
        Err(ScheduleHalt::Error(error)) => Err(error),
    };
    ScheduleOutcome {
        shortfall: run.take_shortfall(),
        elapsed: run.elapsed(),
        best: run.best,
        bound: run.bound,
        least_memory: run.least_memory,
        end,
        trajectory: run.trajectory,
        work: run.work,
    }
}

impl<'p> ScheduleRun<'p> {
    fn new(
        problem: &'p SchedulingProblem,
        budget: ScheduleBudget,
        start: Duration,
        rng: ChaCha8Rng,
        (bound, least_memory): (ScheduleBound, MemoryBound),
    ) -> Self {
        Self {
            problem,
            budget,
            start,
            work: 0,
            rng,
            best: None,
            bound,
            least_memory,
            shortfall: None,
            trajectory: Vec::new(),
            others: None,
            observer: Box::new(|_| ()),
        }
    }

    /// The problem to schedule.
    #[must_use]
    pub const fn problem(&self) -> &'p SchedulingProblem {
        self.problem
    }

    /// Random numbers, from the run's seed.
    pub const fn rng(&mut self) -> &mut ChaCha8Rng {
        &mut self.rng
    }

    /// Threads that the scheduler may use.
    #[must_use]
    pub fn threads(&self) -> NonZeroUsize {
        self.budget.threads.unwrap_or(NonZeroUsize::MIN)
    }

    /// The best schedule so far.
    #[must_use]
    pub const fn best_schedule(&self) -> Option<&Verified> {
        self.best.as_ref()
    }

    fn elapsed(&self) -> Duration {
        self.budget.clock.now().saturating_sub(self.start)
    }

    /// The remaining wall time, for solvers with their own clock.
    #[must_use]
    pub fn remaining_time(&self) -> Option<Duration> {
        self.budget.wall.map(|wall| wall.saturating_sub(self.elapsed()))
    }

    /// Counts iterations that are about to be simulated or checked, or other work that takes about as long: a limit of n
    /// permits n of them.
    ///
    /// # Errors
    ///
    /// [`ScheduleHalt::Stop`] when the run is over.
    pub fn tick(&mut self, work: u64) -> Result<(), ScheduleHalt> {
        self.work = self.work.saturating_add(work);
        let stop = if self.budget.cancel.is_cancelled() {
            Stop::Cancelled
        } else if self.budget.work.is_some_and(|limit| self.work > limit) {
            Stop::WorkLimit
        } else if self.budget.wall.is_some_and(|limit| self.elapsed() >= limit) {
            Stop::Deadline
        } else {
            return Ok(());
        };
        Err(ScheduleHalt::Stop(stop))
    }

    /// States why there is no schedule; the last reason counts.
    pub fn fall_short(&mut self, reason: impl Into<String>) {
        self.shortfall = Some(reason.into());
    }

    /// Why there is no schedule; `None` if there is one.
    fn take_shortfall(&mut self) -> Option<String> {
        if self.best.is_some() {
            return None;
        }
        match self.check_capacity() {
            Ok(()) => self.shortfall.take(),
            Err(_) => Some(self.least_memory.explain_shortfall(self.problem)),
        }
    }

    /// Ends the run if the bound on the memory of every schedule is above the capacity.
    fn check_capacity(&self) -> Result<(), ScheduleHalt> {
        if self.least_memory.bytes <= self.problem.capacity {
            return Ok(());
        }
        Err(ScheduleHalt::Stop(Stop::Infeasible))
    }

    /// Claims that a search of all schedules has found none that fits the capacity. Returns what ends the run:
    /// [`Stop::Infeasible`], or [`ScheduleError::Fits`] if there is a schedule. In a capacity of 2^64 - 1 bytes, the search
    /// has finished without a proof: its sums of bytes may have been cut off there.
    #[must_use]
    pub fn claim_infeasible(&mut self) -> ScheduleHalt {
        if self.best.is_some() {
            return ScheduleError::Fits { capacity: self.problem.capacity }.into();
        }
        let Some(bound) = MemoryBound::above_searched(self.problem.capacity) else {
            return ScheduleHalt::Stop(Stop::Finished);
        };
        self.least_memory = bound;
        ScheduleHalt::Stop(Stop::Infeasible)
    }

    /// Offers a schedule. It is simulated, placed if it is a draft, validated, and kept if it is faster than the best.
    ///
    /// # Errors
    ///
    /// [`ScheduleError::Stuck`] and [`ScheduleError::Invalid`] for a schedule that does not run or is wrong,
    /// [`ScheduleError::Refuted`] for one below a bound; [`Stop::Proved`] for one that meets it,
    /// [`Stop::TargetReached`] for one that is fast enough.
    pub fn offer(&mut self, schedule: Schedule) -> Result<(), ScheduleHalt> {
        let verified = Verified::new(self.problem, schedule)?;
        let seconds = verified.seconds();
        if self.best.as_ref().is_some_and(|best| best.seconds() <= seconds) {
            if let Some(others) = &mut self.others {
                others.push(verified);
            }
            return Ok(());
        }
        self.trajectory.push(ScheduleMark { elapsed: self.elapsed(), work: self.work, seconds });
        (self.observer)(&verified);
        if let (Some(slower), Some(others)) = (self.best.replace(verified), &mut self.others) {
            others.push(slower);
        }
        self.check_end()?;
        match self.budget.target {
            Some(target) if seconds <= target => Err(ScheduleHalt::Stop(Stop::TargetReached)),
            _ => Ok(()),
        }
    }

    /// Runs another scheduler within the limits of this run. Returns the schedules that it offers, the fastest last, and
    /// how it ends. The schedules do not count as offered to this run.
    ///
    /// # Errors
    ///
    /// The end is as of the other scheduler, but it may prove its best schedule, or fall short.
    pub fn consult_scheduler(
        &mut self,
        scheduler: &dyn Scheduler,
    ) -> (Vec<Verified>, Result<(), ScheduleHalt>) {
        self.consult_with(scheduler, self.budget.clone())
    }

    /// As [`Self::consult_scheduler`], but with at most one of `parts` equal parts of the work that is left, or of the
    /// time that is left if work is not limited: time is not divided beside work, because results would depend on the
    /// clock. A scheduler that reaches this limit has finished.
    ///
    /// # Errors
    ///
    /// As of [`Self::consult_scheduler`].
    ///
    /// # Panics
    ///
    /// If `parts` is 0 and there is a limit.
    pub fn consult_scheduler_within(
        &mut self,
        scheduler: &dyn Scheduler,
        parts: u32,
    ) -> (Vec<Verified>, Result<(), ScheduleHalt>) {
        let mut budget = self.budget.clone();
        if let Some(limit) = budget.work {
            budget.work = Some(self.work + limit.saturating_sub(self.work).div_ceil(parts.into()));
        } else if let Some(limit) = budget.wall {
            let elapsed = self.elapsed();
            budget.wall = Some(elapsed + limit.saturating_sub(elapsed) / parts);
        }
        match self.consult_with(scheduler, budget) {
            (found, Err(ScheduleHalt::Stop(Stop::WorkLimit | Stop::Deadline))) => (found, self.tick(0)),
            answer => answer,
        }
    }

    fn consult_with(
        &mut self,
        scheduler: &dyn Scheduler,
        budget: ScheduleBudget,
    ) -> (Vec<Verified>, Result<(), ScheduleHalt>) {
        let budget = ScheduleBudget { target: None, ..budget };
        let bounds = (self.bound, self.least_memory);
        let mut run = ScheduleRun::new(self.problem, budget, self.start, self.rng.clone(), bounds);
        (run.work, run.others) = (self.work, Some(Vec::new()));
        let end = match scheduler.schedule(&mut run) {
            Err(ScheduleHalt::Stop(Stop::Proved)) => Ok(()),
            end => end,
        };
        self.work = run.work;
        (self.bound, self.least_memory) = (run.bound, run.least_memory);
        (run.others.into_iter().flatten().chain(run.best).collect(), end)
    }

    /// Whether another scheduler consults this one. Bounds that take time are then left to that scheduler.
    #[must_use]
    pub const fn is_consulted(&self) -> bool {
        self.others.is_some()
    }

    /// Claims that no schedule takes less time.
    ///
    /// # Errors
    ///
    /// [`ScheduleError::Refuted`] if the best schedule takes less, [`Stop::Proved`] if it meets the bound.
    pub fn raise_bound(&mut self, bound: ScheduleBound) -> Result<(), ScheduleHalt> {
        if bound.seconds > self.bound.seconds {
            self.bound = bound;
        }
        self.check_end()
    }

    fn check_end(&self) -> Result<(), ScheduleHalt> {
        let Some(seconds) = self.best.as_ref().map(Verified::seconds) else { return Ok(()) };
        if self.bound.is_refuted_by(seconds) {
            return Err(ScheduleError::Refuted { bound: self.bound.seconds, seconds }.into());
        }
        if self.bound.proves_fastest(seconds) { Err(ScheduleHalt::Stop(Stop::Proved)) } else { Ok(()) }
    }
}
