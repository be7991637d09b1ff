//! The bounds of a run: claims, and the decisions that follow from them.

use super::state::{Run, State};
use crate::{ArenaId, Bound, Bytes, Claim, Event, Evidence, Halt, PlanError, Scope, Stop};

impl Run<'_> {
    /// Claims that no plan of `scope` is lower than `value`. A plan can refute a bound that is only
    /// [`Evidence::Claimed`]. Such a bound proves nothing: it neither closes the gap nor shows that a target is out of
    /// reach.
    ///
    /// # Errors
    ///
    /// [`Stop::Proved`] when the gap closes, [`Stop::Infeasible`] when the bound on *any* plan lies above the target,
    /// [`PlanError::Refuted`] when a verified plan is lower. [`Stop::Finished`] when no plan without hand-overs is lower
    /// and the planner uses none.
    pub fn raise_bound(&mut self, value: Bytes, scope: Scope, evidence: Evidence) -> Result<(), Halt> {
        let mut bound = Bound::default();
        bound.raise_claim(Claim { value, evidence }, scope);
        self.raise_any_bound(bound)
    }

    /// Claims that one arena is at least this high in every plan. Has an effect only if the bound is proven, and the
    /// arena has a capacity below it.
    ///
    /// # Errors
    ///
    /// [`Stop::Infeasible`] if the bound exceeds the capacity, so that no plan exists; [`PlanError::Refuted`] if a
    /// verified plan contradicts it.
    ///
    /// # Panics
    ///
    /// If the arena does not exist.
    pub fn raise_arena_bound(&mut self, arena: ArenaId, bound: Claim) -> Result<(), Halt> {
        let capacity = self.instance().arenas()[arena.index()].capacity;
        let Some(capacity) = capacity.filter(|&capacity| bound.value > capacity) else { return Ok(()) };
        if bound.evidence == Evidence::Claimed {
            return Ok(());
        }
        let mut state = self.shared.lock_state();
        self.verify_pending(&mut state)?;
        match &state.best {
            // Every verified plan keeps the capacity.
            Some(_) => Err(PlanError::Refuted { bound, height: capacity }.into()),
            None => Err(self.end_run(Stop::Infeasible)),
        }
    }

    pub(super) fn raise_any_bound(&mut self, bound: Bound) -> Result<(), Halt> {
        let mut bound = bound;
        if self.shared.instance.in_place().is_empty() {
            // If nothing may be handed over, these are all plans.
            bound.raise_claim(bound.best_claim(Scope::NoHandOver), Scope::Any);
        }
        let mut state = self.shared.lock_state();
        let known = state.bound;
        self.verify_pending(&mut state)?;
        if let Some(best) = &state.best {
            let claim = bound.best_claim(best.bound_scope());
            let height = best.height();
            if claim.value > height {
                return Err(PlanError::Refuted { bound: claim, height }.into());
            }
        }
        for scope in [Scope::Any, Scope::NoHandOver] {
            let claim = bound.best_claim(scope);
            let kept =
                if claim.evidence == Evidence::Claimed { &mut state.claimed } else { &mut state.bound };
            kept.raise_claim(claim, scope);
        }
        if state.bound == known {
            return Ok(());
        }
        let raised = state.bound;
        let work = self.work_done();
        if let Some(observer) = &mut state.observer {
            observer(Event::Bound(raised), work);
        }
        self.mark_trajectory(&mut state);
        self.check_end(&state)
    }

    fn check_end(&self, state: &State<'_>) -> Result<(), Halt> {
        if self.is_out_of_reach(state) {
            return Err(self.end_run(Stop::Infeasible));
        }
        match state.best.as_ref().and_then(|best| self.closing_stop(state, best.height())) {
            Some(stop) => Err(self.end_run(stop)),
            None => Ok(()),
        }
    }

    /// Why no plan lower than `height` can be found: none exists, or none without hand-overs, and others do not count.
    pub(super) fn closing_stop(&self, state: &State<'_>, height: Bytes) -> Option<Stop> {
        if height <= state.bound.best_claim(Scope::Any).value {
            return Some(Stop::Proved);
        }
        (height <= state.bound.best_claim(self.shared.scope).value).then_some(Stop::Finished)
    }

    /// Whether no plan can fit the target.
    pub(super) fn is_out_of_reach(&self, state: &State<'_>) -> bool {
        self.shared.budget.target.is_some_and(|target| state.bound.best_claim(Scope::Any).value > target)
    }
}
