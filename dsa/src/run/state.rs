//! One run of a planner: clock, random numbers, incumbent, bound and trajectory.

use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::{
    Bound, Budget, Bytes, CancelToken, Clock, Event, Halt, Instance, Mark, Offset, Plan, Scope, Stop,
    VerifiedPlan,
};

/// Units of work between two readings of the clock.
pub(super) const WORK_PER_LOOK: u64 = 256;

/// Receives each event, and the units of work done by then.
pub(super) type Observer<'i> = Box<dyn FnMut(Event<'_>, u64) + Send + 'i>;

#[derive(Default)]
pub(super) struct State<'i> {
    pub(super) best: Option<Arc<VerifiedPlan<'i>>>,
    /// The lowest plan, if its verification is pending.
    pub(super) pending: Option<Plan>,
    /// The number of verified plans.
    pub(super) verified: u32,
    /// The work at which the next plan is verified.
    pub(super) due: u64,
    pub(super) bound: Bound,
    /// Bounds claimed without a proof.
    pub(super) claimed: Bound,
    pub(super) trajectory: Vec<Mark>,
    pub(super) verifying: Duration,
    pub(super) observer: Option<Observer<'i>>,
}

pub(super) struct Shared<'i> {
    pub(super) instance: &'i Instance,
    pub(super) budget: Budget,
    pub(super) scope: Scope,
    /// Whether the planner counts units of work, so that they measure its progress.
    pub(super) counts_work: bool,
    pub(super) start: Duration,
    pub(super) work: AtomicU64,
    /// The work at which the pending plan is verified; `u64::MAX` without one.
    pub(super) settle_at: AtomicU64,
    /// The height below which a plan is worth offering; `u64::MAX` at first.
    pub(super) below: AtomicU64,
    /// How a plan or a bound ended the run; all forks see it at their next tick.
    pub(super) decided: OnceLock<Stop>,
    pub(super) state: Mutex<State<'i>>,
}

impl<'i> Shared<'i> {
    /// Wall time since the start of the run.
    pub(super) fn elapsed(&self) -> Duration {
        self.budget.clock.now().saturating_sub(self.start)
    }

    pub(super) fn lock_state(&self) -> MutexGuard<'_, State<'i>> {
        // A worker that panicked leaves valid state behind: each field is replaced as a whole.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One run: instance, clock, random numbers, incumbent, bound, trajectory.
pub struct Run<'i> {
    pub(super) shared: Arc<Shared<'i>>,
    rng: ChaCha8Rng,
    unread: u64,
}

impl<'i> Run<'i> {
    pub(super) fn new(
        (instance, scope): (&'i Instance, Scope),
        budget: Budget,
        seed: u64,
        counts_work: bool,
        observer: Option<Observer<'i>>,
    ) -> Self {
        let state = State { observer, ..State::default() };
        let shared = Shared {
            instance,
            start: budget.clock.now(),
            budget,
            scope,
            counts_work,
            work: AtomicU64::new(0),
            settle_at: AtomicU64::new(u64::MAX),
            below: AtomicU64::new(u64::MAX),
            decided: OnceLock::new(),
            state: Mutex::new(state),
        };
        Self { shared: Arc::new(shared), rng: ChaCha8Rng::seed_from_u64(seed), unread: 0 }
    }

    /// A second run on the same clock, incumbent and bound, with its own random numbers: one for each worker of a
    /// parallel planner.
    #[must_use]
    pub fn fork(&mut self) -> Self {
        self.hand_in();
        let rng = ChaCha8Rng::seed_from_u64(self.rng.random());
        Self { shared: Arc::clone(&self.shared), rng, unread: 0 }
    }

    /// The problem.
    #[must_use]
    pub fn instance(&self) -> &'i Instance {
        self.shared.instance
    }

    /// Random numbers, seeded by the caller of the run.
    pub fn rng(&mut self) -> &mut ChaCha8Rng {
        &mut self.rng
    }

    /// Threads that the planner may use.
    #[must_use]
    pub fn threads(&self) -> NonZeroUsize {
        self.shared.budget.threads.unwrap_or(NonZeroUsize::MIN)
    }

    /// The clock that measures the wall time.
    #[must_use]
    pub fn clock(&self) -> &Clock {
        &self.shared.budget.clock
    }

    /// The remaining wall time, for solvers with their own clock.
    #[must_use]
    pub fn remaining_time(&self) -> Option<Duration> {
        self.shared.budget.wall.map(|wall| wall.saturating_sub(self.shared.elapsed()))
    }

    /// The remaining units of work, if they are limited.
    #[must_use]
    pub fn remaining_work(&self) -> Option<u64> {
        self.shared.budget.work.map(|limit| limit.saturating_sub(self.work_done()))
    }

    /// The units of work done so far, without work that other forks have not counted yet.
    pub(super) fn work_done(&self) -> u64 {
        self.shared.work.load(Ordering::Relaxed) + self.unread
    }

    /// The flag that ends the run from outside.
    #[must_use]
    pub fn cancel_token(&self) -> &CancelToken {
        &self.shared.budget.cancel
    }

    /// The capacity that the run should reach.
    #[must_use]
    pub fn target(&self) -> Option<Bytes> {
        self.shared.budget.target
    }

    /// Offsets suggested as a start, by buffer; not necessarily a valid plan. `None` if there are no hints, or not one
    /// per buffer.
    #[must_use]
    pub fn hints(&self) -> Option<&[Option<Offset>]> {
        self.shared.budget.hints.as_deref().filter(|hints| hints.len() == self.shared.instance.len())
    }

    /// Whether plans with hand-overs count in this run.
    #[must_use]
    pub fn scope(&self) -> Scope {
        self.shared.scope
    }

    /// The best proven bounds so far.
    #[must_use]
    pub fn bound(&self) -> Bound {
        self.shared.lock_state().bound
    }

    /// Counts work and, from time to time, reads the clock.
    ///
    /// # Errors
    ///
    /// [`Halt::Stop`] when a limit is reached, the run was cancelled, or a plan or bound of another fork ended it.
    pub fn tick(&mut self, work: u64) -> Result<(), Halt> {
        self.unread += work;
        if self.unread < WORK_PER_LOOK && self.shared.budget.work.is_none() {
            return Ok(());
        }
        let done = self.hand_in();
        let shared = &*self.shared;
        if let Some(&stop) = shared.decided.get() {
            return Err(Halt::Stop(stop));
        }
        if done >= shared.settle_at.load(Ordering::Relaxed) {
            self.verify_pending(&mut shared.lock_state())?;
        }
        if shared.budget.work.is_some_and(|limit| done >= limit) {
            return Err(Halt::Stop(Stop::WorkLimit));
        }
        if shared.budget.cancel.is_cancelled() {
            return Err(Halt::Stop(Stop::Cancelled));
        }
        if shared.budget.wall.is_some_and(|wall| shared.elapsed() >= wall) {
            return Err(Halt::Stop(Stop::Deadline));
        }
        Ok(())
    }

    /// Adds this fork's work to the total; returns the total.
    fn hand_in(&mut self) -> u64 {
        let own = std::mem::take(&mut self.unread);
        self.shared.work.fetch_add(own, Ordering::Relaxed) + own
    }

    /// Counts work done elsewhere for this run, without checking a limit: its result may have decided the run already.
    pub fn count_work(&mut self, work: u64) {
        self.unread += work;
    }

    /// Ends the run for every fork.
    pub(super) fn end_run(&self, stop: Stop) -> Halt {
        Halt::Stop(*self.shared.decided.get_or_init(|| stop))
    }

    pub(super) fn mark_trajectory(&self, state: &mut State<'_>) {
        let mark = Mark {
            elapsed: self.shared.elapsed(),
            work: self.work_done(),
            height: state.best.as_ref().map(|best| best.height()),
            bound: state.bound.best_claim(Scope::Any).value,
        };
        state.trajectory.push(mark);
    }
}

impl Drop for Run<'_> {
    fn drop(&mut self) {
        self.hand_in();
    }
}
