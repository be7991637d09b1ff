//! The plans of a run: what is offered, what is verified, what is kept.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use super::{Run, State};
use crate::{Bytes, Event, Halt, Plan, PlanError, Scope, Stop};

/// Part of the wall time that verification may take while the planner is still working.
const VERIFY_SHARE: u32 = 10;

impl<'i> Run<'i> {
    /// Whether a plan of this height would be better than the incumbent.
    #[must_use]
    pub fn improves(&self, height: Bytes) -> bool {
        let below = self.shared.below.load(Ordering::Relaxed);
        // No plan yet looks like a plan of the greatest height there is.
        height.get() < below || (below == u64::MAX && self.best().is_none())
    }

    /// Hands a plan in. Its height is looked at first; only what is better is verified, then kept. Where
    /// verification has used its tenth of the time, the plan waits until the end of the run.
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
        let spent = state.verifying * VERIFY_SHARE > self.shared.start.elapsed();
        let decides = height.is_some_and(|height| self.decides(&state, height, plan.scope()));
        if let (Some(height), true, true, false) = (height, spent, state.best.is_some(), decides) {
            self.shared.below.fetch_min(height.get(), Ordering::Relaxed);
            state.pending = Some((plan, height));
            return Ok(());
        }
        self.keep(&mut state, plan)
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

    pub(super) fn keep(&self, state: &mut State<'i>, plan: Plan) -> Result<(), Halt> {
        let before = Instant::now();
        let verified = self.shared.instance.verify(plan);
        state.verifying += before.elapsed();
        let verified = Arc::new(verified.map_err(PlanError::Invalid)?);
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
        state.pending = None;
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
