//! The contract of a scheduler, and its run: the counterpart of a [`Planner`](planlab_dsa::Planner) for placement.
//!
//! A scheduler [offers](ScheduleRun::offer) drafts as it finds them. The run simulates, places and validates each draft
//! before it counts. Schedules are ranked by time. The memory that their *offsets* need is reported separately, because
//! it may exceed the most bytes taken at once.

use std::borrow::Cow;
use std::time::Duration;

use planlab_dsa::{Bytes, CancelToken, Clock, InstanceError, Stop};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use serde::Serialize;

use crate::schedule::bounds::{ScheduleBound, compute_bound};
use crate::schedule::events::Schedule;
use crate::schedule::problem::SchedulingProblem;
use crate::schedule::timeline::{Stuck, Timeline, simulate};
use crate::schedule::validate::{Violation, validate};

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
}

impl<S: Scheduler + ?Sized> Scheduler for Box<S> {
    fn descriptor(&self) -> SchedulerDescriptor {
        (**self).descriptor()
    }

    fn schedule(&self, run: &mut ScheduleRun<'_>) -> Result<(), ScheduleHalt> {
        (**self).schedule(run)
    }
}

/// What is known of a scheduler before it runs.
#[derive(Clone, Debug, Serialize)]
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
    /// Ends the run from outside.
    pub cancel: CancelToken,
    /// The clock that measures the wall time.
    pub clock: Clock,
}

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
            let timeline = simulate(&schedule, Some(problem.capacity))?;
            let offsets = schedule.best_fit(&timeline);
            return Self::placed(problem, schedule.place(&timeline, &offsets));
        }
        Self::placed(problem, schedule)
    }

    fn placed(problem: &SchedulingProblem, schedule: Schedule) -> Result<Self, ScheduleError> {
        let audited = validate(problem, &schedule, None)?;
        let timeline = simulate(&schedule, Some(problem.capacity))?;
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
        offsets: &[planlab_dsa::Offset],
    ) -> Result<Self, ScheduleError> {
        Self::placed(problem, self.schedule.clone().place(&self.timeline, offsets))
    }

    /// The placement problem of its buffers.
    ///
    /// # Errors
    ///
    /// [`InstanceError`] if the sum of the sizes exceeds 64 bits.
    pub fn instance(&self) -> Result<planlab_dsa::Instance, InstanceError> {
        self.schedule.instance(&self.timeline)
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

/// Why a scheduler failed.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ScheduleError {
    /// The scheduler offered a schedule that does not run to its end.
    #[error("the schedule does not run: {0}")]
    Stuck(#[from] Stuck),
    /// The scheduler offered a schedule that the validator rejects.
    #[error("the schedule is invalid: {0}")]
    Invalid(#[from] Violation),
    /// A bound above the time of a valid schedule.
    #[error("a bound of {bound:e} s was claimed, but a valid schedule takes {seconds:e} s")]
    Refuted {
        /// The claimed bound.
        bound: f64,
        /// The time that refutes it.
        seconds: f64,
    },
    /// Any other error, in the scheduler's words.
    #[error("{0}")]
    Failed(String),
}

/// Ends a scheduler from any depth through `?`.
#[derive(Clone, Debug, PartialEq)]
pub enum ScheduleHalt {
    /// The run is over.
    Stop(Stop),
    /// The scheduler failed.
    Error(ScheduleError),
}

impl From<ScheduleError> for ScheduleHalt {
    fn from(error: ScheduleError) -> Self {
        Self::Error(error)
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
    pub fn gap(&self) -> Option<f64> {
        Some(self.bound.gap(self.best.as_ref()?.seconds()))
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
    shortfall: Option<String>,
    trajectory: Vec<ScheduleMark>,
    /// The schedules that a consulted scheduler offers, except the best; `None` if only the best counts.
    others: Option<Vec<Verified>>,
    observer: Box<dyn FnMut(&Verified) + 'p>,
}

/// Runs a scheduler.
///
/// The bound that every function takes its time is known before the start, so a schedule that hides all its copies is
/// thereby proved optimal.
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
    let start = budget.clock.now();
    let mut run = ScheduleRun {
        problem,
        budget,
        start,
        work: 0,
        rng: ChaCha8Rng::seed_from_u64(seed),
        best: None,
        bound: compute_bound(problem),
        shortfall: None,
        trajectory: Vec::new(),
        others: None,
        observer: Box::new(observer),
    };
    let end = match scheduler.schedule(&mut run) {
        Ok(()) => Ok(Stop::Finished),
        Err(ScheduleHalt::Stop(stop)) => Ok(stop),
        Err(ScheduleHalt::Error(error)) => Err(error),
    };
    ScheduleOutcome {
        shortfall: if run.best.is_none() { run.shortfall.take() } else { None },
        elapsed: run.elapsed(),
        best: run.best,
        bound: run.bound,
        end,
        trajectory: run.trajectory,
        work: run.work,
    }
}

impl<'p> ScheduleRun<'p> {
    /// The problem to schedule.
    #[must_use]
    pub const fn problem(&self) -> &'p SchedulingProblem {
        self.problem
    }

    /// Random numbers, from the run's seed.
    pub const fn rng(&mut self) -> &mut ChaCha8Rng {
        &mut self.rng
    }

    /// The best schedule so far.
    #[must_use]
    pub const fn best(&self) -> Option<&Verified> {
        self.best.as_ref()
    }

    fn elapsed(&self) -> Duration {
        self.budget.clock.now().saturating_sub(self.start)
    }

    /// Counts iterations that are about to be simulated or checked: a limit of n permits n of them.
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
        self.judge()?;
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
    pub fn consult(&mut self, scheduler: &dyn Scheduler) -> (Vec<Verified>, Result<(), ScheduleHalt>) {
        let mut run = ScheduleRun {
            problem: self.problem,
            budget: ScheduleBudget { target: None, ..self.budget.clone() },
            start: self.start,
            work: self.work,
            rng: self.rng.clone(),
            best: None,
            bound: self.bound,
            shortfall: None,
            trajectory: Vec::new(),
            others: Some(Vec::new()),
            observer: Box::new(|_| ()),
        };
        let end = match scheduler.schedule(&mut run) {
            Err(ScheduleHalt::Stop(Stop::Proved)) => Ok(()),
            end => end,
        };
        self.work = run.work;
        self.bound = run.bound;
        (run.others.into_iter().flatten().chain(run.best).collect(), end)
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
        self.judge()
    }

    fn judge(&self) -> Result<(), ScheduleHalt> {
        let Some(seconds) = self.best.as_ref().map(Verified::seconds) else { return Ok(()) };
        if self.bound.is_refuted_by(seconds) {
            return Err(ScheduleError::Refuted { bound: self.bound.seconds, seconds }.into());
        }
        if self.bound.proves(seconds) { Err(ScheduleHalt::Stop(Stop::Proved)) } else { Ok(()) }
    }
}
