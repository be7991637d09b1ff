//! The plans of a run: what is offered, what is verified, what is kept.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::{Run, State};
use crate::{Bytes, Event, Halt, Plan, PlanError, Scope, Stop, VerifiedPlan};

/// The first plans of a run are verified as they come.
const VERIFIED_AT_ONCE: u32 = 16;
/// Units of work that a planner does, for each buffer, before the next plan is verified: meant to keep
/// verification near a tenth of the time. Work decides, not the clock, so that equal runs see equal incumbents.
const WORK_PER_BUFFER: u64 = 40;

impl<'i> Run<'i> {
    /// Whether a plan of this height would be better than the incumbent.
    #[must_use]
    pub fn improves(&self, height: Bytes) -> bool {
        let below = self.shared.below.load(Ordering::Relaxed);
        // No plan yet looks like a plan of the greatest height there is.
        height.get() < below || (below == u64::MAX && self.shared.state().best.is_none())
    }

    /// The height of the lowest plan, whether or not it is verified yet: what a plan has to be lower than.
    #[must_use]
    pub fn height_to_beat(&self) -> Option<Bytes> {
        let below = self.shared.below.load(Ordering::Relaxed);
        let highest = || self.shared.state().best.as_ref().map(|best| best.height());
        (below != u64::MAX).then(|| Bytes::new(below)).or_else(highest)
    }

    /// The best plan so far. A plan that waits for the verifier is verified now.
    ///
    /// # Errors
    ///
    /// As [`Run::offer`], for the plan that waited.
    pub fn best(&mut self) -> Result<Option<Arc<VerifiedPlan<'i>>>, Halt> {
        let mut state = self.shared.state();
        self.settle(&mut state)?;
        Ok(state.best.clone())
    }

    /// Hands a plan in. Its height is looked at first; only what is better is verified, then kept. Where plans
    /// come quickly, one waits until as much work was done as is worth a verification, or until somebody asks
    /// for the [best](Run::best), the bound rises or the run ends; meanwhile a lower one takes its place.
    ///
    /// # Errors
    ///
    /// [`PlanError::Invalid`] for a plan that the verifier refuses, [`PlanError::Refuted`] for one below
    /// the bound; [`Stop::Proved`] when its height equals the bound, [`Stop::TargetReached`] when it
    /// fits the target.
    pub fn offer(&mut self, plan: Plan) -> Result<(), Halt> {
        let height = plan.height(self.shared.instance);
        if height.is_some_and(|height| !self.improves(height)) {
            return Ok(());
        }
        let mut state = self.shared.state();
        let is_soon = state.verified >= VERIFIED_AT_ONCE && self.done() < state.due;
        let waits = self.shared.counts_work && is_soon;
        match height {
            Some(height) if waits && !self.decides(&state, height, plan.scope()) => {
                // Another fork may have been quicker.
                if self.shared.below.fetch_min(height.get(), Ordering::Relaxed) > height.get() {
                    self.shared.settle_at.store(state.due, Ordering::Relaxed);
                    state.pending = Some(plan);
                }
                Ok(())
            }
            _ => self.keep(&mut state, plan),
        }
    }

    /// Verifies the plan that waits, if one does.
    pub(super) fn settle(&self, state: &mut State<'i>) -> Result<(), Halt> {
        self.shared.settle_at.store(u64::MAX, Ordering::Relaxed);
        state.pending.take().map_or(Ok(()), |plan| self.keep(state, plan))
    }

    /// Whether a plan of that height ends the run.
    fn decides(&self, state: &State<'_>, height: Bytes, scope: Scope) -> bool {
        let bound = state.bound.of(self.judged(scope)).value;
        height <= bound || self.shared.budget.target.is_some_and(|target| height <= target)
    }

    /// The scope in which the run is over once height meets bound: where hand-overs count, a plan without
    /// them is not optimal before no plan with them can be lower.
    pub(super) fn judged(&self, scope: Scope) -> Scope {
        if self.shared.scope == Scope::Any { Scope::Any } else { scope }
    }

    fn verify(&self, state: &mut State<'i>, plan: Plan) -> Result<VerifiedPlan<'i>, PlanError> {
        let before = self.shared.elapsed();
        let verified = self.shared.instance.verify(plan);
        state.verifying += self.shared.elapsed().saturating_sub(before);
        state.verified = state.verified.saturating_add(1);
        let buffers = u64::try_from(self.shared.instance.len()).unwrap_or(u64::MAX);
        state.due = self.done().saturating_add(WORK_PER_BUFFER.saturating_mul(buffers));
        verified.map_err(PlanError::Invalid)
    }

    fn keep(&self, state: &mut State<'i>, plan: Plan) -> Result<(), Halt> {
        let verified = Arc::new(self.verify(state, plan)?);
        let height = verified.height();
        if state.best.as_ref().is_some_and(|best| best.height() <= height) {
            return Ok(());
        }
        self.shared.below.fetch_min(height.get(), Ordering::Relaxed);
        let work = self.done();
        if let Some(observer) = &mut state.observer {
            observer(Event::Incumbent(&verified), work);
        }
        let scope = verified.scope();
        state.best = Some(verified);
        state.pending.take_if(|waiting| waiting.height(self.shared.instance) >= Some(height));
        self.mark(state);
        for bound in [state.bound.of(scope), state.claimed.of(scope)] {
            if height < bound.value {
                return Err(PlanError::Refuted { bound, height }.into());
            }
        }
        if self.is_out_of_reach(state) {
            return Err(self.decide(Stop::Infeasible));
        }
        if height == state.bound.of(self.judged(scope)).value {
            return Err(self.decide(Stop::Proved));
        }
        if self.shared.budget.target.is_some_and(|target| height <= target) {
            return Err(self.decide(Stop::TargetReached));
        }
        Ok(())
    }
}
