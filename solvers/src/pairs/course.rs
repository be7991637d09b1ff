//! Solves part after part: greedy plans first, then a solver for each part that could be lower.
//!
//! Only the order of a solver's offsets is used. The buffers are placed one by one in that order, each at its lowest
//! free offset, which is never above the solver's. If windows are in use during pauses, the solver's own offsets are
//! tried as well. The verifier decides.

use planlab_dsa::{
    BufferId, Bytes, Evidence, Halt, InPlace, Instance, Offset, Plan, Planner, Run, Scope, VerifiedPlan,
};

use super::parts::Parts;
use super::symmetry::break_symmetry;
use super::{PairDraft, Reductions};
use crate::demands::has_windows;
use crate::placement::Order;
use crate::placement::greedy::{Rule, place_in_order, plan_in_order};
use crate::placement::skyline::{BestFit, best_fit};

/// Plans with a solver of parts: `solve` improves the plan of a draft and raises the bound. `Ok` means that it has
/// finished with the part, decided or not.
pub(crate) fn follow_course<'i>(
    run: &mut Run<'i>,
    reductions: Reductions,
    mut solve: impl FnMut(&mut Run<'i>, &mut PairCourse, PairDraft<'i>) -> Result<(), Halt>,
) -> Result<(), Halt> {
    offer_greedy_plans(run)?;
    let Some(best) = run.best_plan()? else { return Ok(()) };
    let mut course = PairCourse::new(&best);
    while let Some(draft) = course.next_draft(run, reductions)? {
        solve(run, &mut course, draft)?;
    }
    Ok(())
}

/// Offers the plans of the skyline and of every order and rule, or as many as time allows.
fn offer_greedy_plans(run: &mut Run<'_>) -> Result<(), Halt> {
    let instance = run.instance();
    if BestFit.descriptor().honours.first_refused_feature(instance).is_none() {
        let plan = best_fit(run)?;
        run.offer(plan)?;
    }
    for order in Order::ALL {
        let ids = order.sort_buffers(instance);
        for rule in [Rule::FirstFit, Rule::BestFit] {
            plan_in_order(run, &ids, rule)?;
        }
    }
    Ok(())
}

/// The plan so far, with each part as low as found.
pub(crate) struct PairCourse {
    offsets: Vec<Offset>,
    in_place: Vec<InPlace>,
    /// Peeled buffers, in the order in which they are placed after all others.
    peeled: Vec<BufferId>,
    is_done: Vec<bool>,
}

impl PairCourse {
    fn new(best: &VerifiedPlan<'_>) -> Self {
        let offsets = best.offsets().to_vec();
        let is_done = vec![false; offsets.len()];
        Self { offsets, in_place: best.in_place().to_vec(), peeled: Vec::new(), is_done }
    }

    /// The next part to solve: the one that ends highest, of those that end above the best known bound. After the bound
    /// has risen, more buffers may be peeled and parts may split.
    fn next_draft<'i>(
        &mut self,
        run: &mut Run<'i>,
        reductions: Reductions,
    ) -> Result<Option<PairDraft<'i>>, Halt> {
        let instance = run.instance();
        // Heights are multiples of the granularity.
        let floor = run
            .bound()
            .best_claim(Scope::NoHandOver)
            .value
            .get()
            .next_multiple_of(instance.offset_granularity());
        let Parts { parts, peeled } = Parts::new(run, floor, reductions.peel)?;
        self.peeled = peeled;
        self.place_anew(run)?;
        let mut open = Vec::new();
        for part in parts.into_iter().filter(|part| !part.iter().all(|id| self.is_done[id.index()])) {
            let top = highest_end(instance, &part, &self.offsets);
            if top > floor || !reductions.drop_settled {
                open.push((top, part));
            }
        }
        // The first of equals.
        open.sort_by_key(|&(top, _)| std::cmp::Reverse(top));
        let mut ids: Vec<BufferId> = match open.into_iter().map(|(_, part)| part) {
            parts if !reductions.split => parts.flatten().collect(),
            mut parts => parts.next().unwrap_or_default(),
        };
        if ids.is_empty() {
            return Ok(None);
        }
        ids.sort_unstable();
        ids.iter().for_each(|id| self.is_done[id.index()] = true);
        let unit = if reductions.scale { common_granularity(instance, &ids) } else { 1 };
        let mut draft = PairDraft::new(run, &ids, &self.offsets, (unit, floor))?;
        if reductions.symmetry {
            break_symmetry(&mut draft);
        }
        Ok(Some(draft))
    }

    /// Places every buffer as low as possible in the order of the plan so far, the peeled ones last.
    fn place_anew(&mut self, run: &mut Run<'_>) -> Result<(), Halt> {
        if let Some(plan) = self.complete_plan(run, &self.offsets)? {
            self.offsets.clone_from(&plan.offsets);
            run.offer(plan)?;
        }
        Ok(())
    }

    fn complete_plan(&self, run: &mut Run<'_>, offsets: &[Offset]) -> Result<Option<Plan>, Halt> {
        let mut is_peeled = vec![false; offsets.len()];
        self.peeled.iter().for_each(|id| is_peeled[id.index()] = true);
        let mut order: Vec<BufferId> = run.instance().ids().filter(|id| !is_peeled[id.index()]).collect();
        order.sort_by_key(|id| (offsets[id.index()], *id));
        order.extend(&self.peeled);
        place_in_order(run, &order, Rule::FirstFit)
    }

    /// Uses the offsets, in units, of a draft's places if they make its part lower, and offers the plan. Returns the
    /// height of the part afterwards, in whole units, rounded down.
    pub(crate) fn improve_incumbent(
        &mut self,
        run: &mut Run<'_>,
        draft: &PairDraft<'_>,
        units: &[u64],
    ) -> Result<u64, Halt> {
        let instance = run.instance();
        let ids: Vec<BufferId> = draft.places.iter().map(|place| place.id).collect();
        let mut said = self.offsets.clone();
        for (id, &offset) in ids.iter().zip(units) {
            said[id.index()] = Offset::new(offset.saturating_mul(draft.unit));
        }
        let placed = self.complete_plan(run, &said)?;
        let said = Plan { offsets: said, in_place: self.in_place.clone() };
        let said = Some(said).filter(|plan| has_windows(instance) && instance.verify(plan.clone()).is_ok());
        for plan in placed.into_iter().chain(said) {
            if highest_end(instance, &ids, &plan.offsets) < highest_end(instance, &ids, &self.offsets) {
                self.offsets.clone_from(&plan.offsets);
                run.offer(plan)?;
            }
        }
        Ok(highest_end(instance, &ids, &self.offsets) / draft.unit)
    }
}

/// Raises the bound: the part of a draft, and so the whole, is not lower than this many units. Does nothing if the
/// bound is already known.
pub(crate) fn prove_bound(run: &mut Run<'_>, draft: (u64, u64), evidence: Evidence) -> Result<(), Halt> {
    let (unit, units) = draft;
    let bound = Bytes::new(units.saturating_mul(unit));
    if bound > run.bound().best_claim(Scope::NoHandOver).value {
        run.raise_bound(bound, Scope::NoHandOver, evidence)?;
    }
    Ok(())
}

fn highest_end(instance: &Instance, ids: &[BufferId], offsets: &[Offset]) -> u64 {
    let end = |id: &BufferId| offsets[id.index()].get() + instance.buffer(*id).size.get();
    ids.iter().map(end).max().unwrap_or(0)
}

/// The greatest common divisor of all sizes, pins and windows of some buffers such that their alignments divide it or
/// are multiples of it.
fn common_granularity(instance: &Instance, ids: &[BufferId]) -> u64 {
    let buffers = ids.iter().map(|&id| instance.buffer(id).clone());
    // A part of a valid instance is valid: its totals are no greater, and no more of its pins meet.
    let part = Instance::builder().buffers(buffers).arenas(instance.arenas().to_vec()).build();
    part.map_or_else(|_| instance.offset_granularity(), |part| part.offset_granularity())
}
