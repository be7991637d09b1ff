//! What every search of this module works on: a decoder, the best height, and the run that receives plans.

use std::sync::Arc;

use planlab_dsa::{Bytes, Halt, Instance, Planner, Run};

use super::decoder::{Change, Decoder};
use super::model::Model;
use crate::arenas::{has_arenas, plan_each_arena};
use crate::demands::can_stand;
use crate::placement::order::by_offset;
use crate::placement::search::start::{self, Start};
use crate::tick::count_for_both;

/// A search that can be resumed.
pub(crate) trait Search {
    /// Makes one step; `false` if the search has nothing left to do.
    fn make_step(&mut self, run: &mut Run<'_>) -> Result<bool, Halt>;

    /// The units of work done so far.
    fn work_done(&self) -> u64;

    /// Lets a search do about `work` units of work; `false` if it has nothing left to do.
    fn run_slice(&mut self, run: &mut Run<'_>, work: u64) -> Result<bool, Halt> {
        let end = self.work_done().saturating_add(work);
        while self.work_done() < end {
            if !self.make_step(run)? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// Plans each arena by a search that begins at the walk of a start, until it has nothing left to try.
pub(crate) fn search_from<S: Search>(
    planner: &dyn Planner,
    run: &mut Run<'_>,
    start: impl FnOnce(&mut Run<'_>) -> Result<Option<Walk>, Halt>,
    search: fn(Walk) -> S,
) -> Result<(), Halt> {
    if has_arenas(run.instance()) {
        return plan_each_arena(planner, run);
    }
    let Some(walk) = start(run)? else { return Ok(()) };
    let mut search = search(walk);
    while search.run_slice(run, u64::MAX)? {}
    Ok(())
}

/// A decoder on a run.
#[derive(Clone, Debug)]
pub(crate) struct Walk {
    pub(crate) decoder: Decoder,
    /// The height of the lowest plan that any search has found, in granules.
    pub(crate) best: u64,
    /// The height of the lowest plan that this walk has found or begun with, and its offsets, in granules.
    pub(crate) own: u64,
    pub(crate) best_offsets: Vec<u64>,
    /// The units of work done so far.
    pub(crate) work: u64,
}

impl Walk {
    /// Begins at a start. `None` if no plan without hand-overs exists.
    pub(crate) fn new(run: &mut Run<'_>, start: &Start) -> Result<Option<Self>, Halt> {
        let model = Model::new(run.instance(), &mut |work| run.tick(work))?;
        Ok(model.map(|model| Self::with_model(run, &Arc::new(model), start)))
    }

    /// As [`Walk::new`], with an existing model.
    pub(crate) fn with_model(run: &Run<'_>, model: &Arc<Model>, start: &Start) -> Self {
        let offsets: Vec<u64> = start.offsets.iter().map(|offset| offset / model.grain).collect();
        let mut decoder = Decoder::with_offsets(Arc::clone(model), &start.order, &offsets);
        let best = decoder.height();
        decoder.set_ceiling(model.next_ceiling(run, best));
        Self { decoder, best, own: best, best_offsets: offsets, work: 0 }
    }

    /// Begins at first fit in an order. `None` if no plan without hand-overs exists.
    pub(crate) fn in_order(
        run: &mut Run<'_>,
        order: fn(&Instance) -> Vec<u32>,
    ) -> Result<Option<Self>, Halt> {
        if !can_stand(run.instance()) {
            return Ok(None);
        }
        let start = start::in_order(run, order(run.instance()))?;
        Self::new(run, &start)
    }

    /// Begins at the best of the greedy orders.
    pub(crate) fn from_best(run: &mut Run<'_>) -> Result<Option<Self>, Halt> {
        start::best_start(run)?.map_or(Ok(None), |start| Self::new(run, &start))
    }

    /// Continues from another plan: from first fit in the order of its offsets.
    pub(crate) fn adopt_offsets(&mut self, run: &mut Run<'_>, offsets: &[u64]) -> Result<(), Halt> {
        let model = Arc::clone(self.decoder.model());
        let order = by_offset(offsets);
        let ceiling = self.decoder.ceiling();
        self.decoder = Decoder::new(model, &order, &mut count_for_both(&mut self.work, run))?;
        self.decoder.set_ceiling(ceiling);
        self.aim_below_incumbent(run);
        self.keep_lower();
        self.offer_current(run)
    }

    /// Keeps the current plan if it is lower than all of this walk.
    fn keep_lower(&mut self) {
        let height = self.decoder.height();
        if height < self.own {
            self.own = height;
            self.best_offsets.clear();
            self.best_offsets.extend(self.decoder.offsets());
        }
    }

    pub(crate) fn make_change(&mut self, run: &mut Run<'_>, change: Change) -> Result<(), Halt> {
        self.decoder.make_change(change, &mut count_for_both(&mut self.work, run))
    }

    /// Keeps the last change and offers the resulting plan, or undoes the change.
    pub(crate) fn settle_change(&mut self, run: &mut Run<'_>, stays: bool) -> Result<(), Halt> {
        if !stays {
            self.decoder.undo_changes();
            return Ok(());
        }
        self.decoder.keep_changes();
        self.offer_current(run)
    }

    /// Counts work done outside the decoder.
    pub(crate) fn count_work(&mut self, run: &mut Run<'_>, units: u64) -> Result<(), Halt> {
        self.work += units;
        run.tick(units)
    }

    /// Offers the current plan if it is lower than all known ones, and lowers the ceiling.
    pub(crate) fn offer_current(&mut self, run: &mut Run<'_>) -> Result<(), Halt> {
        let height = self.decoder.height();
        if height >= self.best {
            return Ok(());
        }
        self.best = height;
        self.keep_lower();
        let model = Arc::clone(self.decoder.model());
        if run.improves_incumbent(Bytes::new(height * model.grain)) {
            run.offer(model.plan_of(self.decoder.offsets()))?;
        }
        self.decoder.set_ceiling(model.next_ceiling(run, height));
        Ok(())
    }

    /// Lowers the ceiling if another search has found a lower plan. Returns whether it did.
    pub(crate) fn aim_below_incumbent(&mut self, run: &Run<'_>) -> bool {
        let model = Arc::clone(self.decoder.model());
        let known = model.incumbent_height(run, self.best);
        if known >= self.best {
            return false;
        }
        self.best = known;
        self.decoder.set_ceiling(model.next_ceiling(run, known));
        true
    }
}
