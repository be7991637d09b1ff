//! The plans of a run: offered, verified and kept.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::state::{Run, State};
use crate::{Bytes, Event, Halt, Plan, PlanError, Stop, VerifiedPlan};

/// The number of plans at the start of a run that are verified as soon as they are offered.
const VERIFIED_AT_ONCE: u32 = 16;
/// Units of work per buffer between two verifications, meant to keep verification near a tenth of the time. Counting
/// work instead of time makes equal runs see equal incumbents.
const WORK_PER_BUFFER: u64 = 40;

impl<'i> Run<'i> {
    /// Whether a plan of this height would be better than the incumbent.
    #[must_use]
    pub fn improves_incumbent(&self, height: Bytes) -> bool {
        let below = self.shared.below.load(Ordering::Relaxed);
        // Without a plan yet, `below` looks like a plan of the greatest height.
        height.get() < below || (below == u64::MAX && self.shared.lock_state().best.is_none())
    }

    /// The height of the lowest plan, verified or not: a new plan must be lower.
    #[must_use]
    pub fn height_to_beat(&self) -> Option<Bytes> {
        let below = self.shared.below.load(Ordering::Relaxed);
        let highest = || self.shared.lock_state().best.as_ref().map(|best| best.height());
        (below != u64::MAX).then(|| Bytes::new(below)).or_else(highest)
    }

    /// The best plan so far. A pending plan is verified now.
    ///
    /// # Errors
    ///
    /// Like [`Run::offer`], for the pending plan.
    pub fn best_plan(&mut self) -> Result<Option<Arc<VerifiedPlan<'i>>>, Halt> {
        let mut state = self.shared.lock_state();
        self.verify_pending(&mut state)?;
        Ok(state.best.clone())
    }

    /// Offers a plan. Its height is checked first; only a better plan is verified and kept. If plans come quickly, one
    /// stays pending until enough work was done to be worth a verification. It is verified earlier if the planner asks
    /// for the [best](Run::best_plan), the bound rises or the run ends. A lower plan replaces a pending one.
    ///
    /// # Errors
    ///
    /// [`PlanError::Invalid`] if the verifier rejects the plan, [`PlanError::Refuted`] if it is below the bound;
    /// [`Stop::Proved`] when its height equals the bound on any plan, [`Stop::Finished`] when it equals that on plans
    /// without hand-overs and the planner uses none, [`Stop::TargetReached`] when it fits the target.
    pub fn offer(&mut self, plan: Plan) -> Result<(), Halt> {
        let height = plan.height(self.shared.instance);
        if height.is_some_and(|height| !self.improves_incumbent(height)) {
            return Ok(());
        }
        let mut state = self.shared.lock_state();
        let is_soon = state.verified >= VERIFIED_AT_ONCE && self.work_done() < state.due;
        let waits = self.shared.counts_work && is_soon;
        match height {
            Some(height) if waits && !self.ends_run(&state, height) => {
                // Another fork may have been faster.
                if self.shared.below.fetch_min(height.get(), Ordering::Relaxed) > height.get() {
                    self.shared.settle_at.store(state.due, Ordering::Relaxed);
                    state.pending = Some(plan);
                }
                Ok(())
            }
            _ => self.keep_plan(&mut state, plan),
        }
    }

    /// Verifies the pending plan, if there is one.
    pub(super) fn verify_pending(&self, state: &mut State<'i>) -> Result<(), Halt> {
        self.shared.settle_at.store(u64::MAX, Ordering::Relaxed);
        state.pending.take().map_or(Ok(()), |plan| self.keep_plan(state, plan))
    }

    /// Whether a plan of this height ends the run.
    fn ends_run(&self, state: &State<'_>, height: Bytes) -> bool {
        let is_closed = self.closing_stop(state, height).is_some();
        is_closed || self.shared.budget.target.is_some_and(|target| height <= target)
    }

    fn verify_plan(&self, state: &mut State<'i>, plan: Plan) -> Result<VerifiedPlan<'i>, PlanError> {
        let before = self.shared.elapsed();
        let verified = self.shared.instance.verify(plan);
        state.verifying += self.shared.elapsed().saturating_sub(before);
        state.verified = state.verified.saturating_add(1);
        let buffers = u64::try_from(self.shared.instance.len()).unwrap_or(u64::MAX);
        state.due = self.work_done().saturating_add(WORK_PER_BUFFER.saturating_mul(buffers));
        verified.map_err(PlanError::Invalid)
    }

    fn keep_plan(&self, state: &mut State<'i>, plan: Plan) -> Result<(), Halt> {
        let verified = Arc::new(self.verify_plan(state, plan)?);
        let height = verified.height();
        if state.best.as_ref().is_some_and(|best| best.height() <= height) {
            return Ok(());
        }
        self.shared.below.fetch_min(height.get(), Ordering::Relaxed);
        let work = self.work_done();
        if let Some(observer) = &mut state.observer {
            observer(Event::Incumbent(&verified), work);
        }
        let scope = verified.bound_scope();
        state.best = Some(verified);
        state.pending.take_if(|waiting| waiting.height(self.shared.instance) >= Some(height));
        self.mark_trajectory(state);
        for bound in [state.bound.best_claim(scope), state.claimed.best_claim(scope)] {
            if height < bound.value {
                return Err(PlanError::Refuted { bound, height }.into());
            }
        }
        if self.is_out_of_reach(state) {
            return Err(self.end_run(Stop::Infeasible));
        }
        if let Some(stop) = self.closing_stop(state, height) {
            return Err(self.end_run(stop));
        }
        if self.shared.budget.target.is_some_and(|target| height <= target) {
            return Err(self.end_run(Stop::TargetReached));
        }
        Ok(())
    }
}
