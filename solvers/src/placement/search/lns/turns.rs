//! Large neighbourhoods and annealing in turns.

use std::sync::Arc;

use planlab_dsa::{Bytes, Halt, Run};
use rand::RngExt;

use super::search::LnsSearch;
use crate::feasibility::luby_number;
use crate::placement::search::annealing::AnnealingSearch;
use crate::placement::search::decoding::{Search, Walk};
use crate::placement::search::start::Start;

/// Units of work of the shortest course.
const COURSE: u64 = 200_000_000;
/// A disturbed order has noise of the height of the plan, halved at random fewer than this many times.
const DISTURBANCES: u32 = 8;

/// Large neighbourhoods and annealing in turns; each continues from the other's result.
#[derive(Clone, Debug)]
pub(crate) struct LnsTurns {
    lns: LnsSearch,
    annealing: AnnealingSearch,
    /// The number of this course, from 1 on, and the work at its end.
    pub(crate) course: u64,
    end: u64,
}

impl LnsTurns {
    /// Begins at a start. `None` if no plan without hand-overs exists.
    pub(crate) fn new(run: &mut Run<'_>, start: &Start) -> Result<Option<Self>, Halt> {
        let Some(walk) = Walk::new(run, start)? else { return Ok(None) };
        let lns = LnsSearch::new(run, Arc::clone(walk.decoder.model()), start);
        let annealing = AnnealingSearch::new(walk);
        Ok(Some(Self { lns, annealing, course: 1, end: COURSE }))
    }

    /// The height of the lowest plan of both.
    pub(crate) fn lowest_height(&self) -> Bytes {
        Bytes::new(self.lowest_granules() * self.lns.model.grain)
    }

    /// The same, in granules.
    fn lowest_granules(&self) -> u64 {
        self.annealing.walk.own.min(self.lns.own)
    }

    fn work_done(&self) -> u64 {
        self.lns.work_done() + self.annealing.work_done()
    }

    /// One turn of each search, with the given units of work; false if one of them has nothing left to do.
    pub(crate) fn run_turn(&mut self, run: &mut Run<'_>, work: u64) -> Result<bool, Halt> {
        let lowest = self.lowest_granules();
        if !self.annealing.run_slice(run, work)? {
            return Ok(false);
        }
        if self.annealing.walk.own < self.lns.own {
            self.lns.adopt_offsets(run, &self.annealing.walk.best_offsets);
        }
        let height = self.lns.own;
        let goes_on = self.lns.run_slice(run, work)?;
        if self.lns.own < height {
            self.annealing.walk.adopt_offsets(run, &self.lns.best_offsets)?;
        }
        if self.lowest_granules() < lowest {
            self.end = self.work_done() + COURSE * luby_number(self.course);
        } else if self.work_done() >= self.end {
            self.begin_next_course(run)?;
        }
        Ok(goes_on)
    }

    /// Begins the next course: every other one from the lowest plan, the others from that with its order disturbed.
    fn begin_next_course(&mut self, run: &mut Run<'_>) -> Result<(), Halt> {
        self.course += 1;
        self.end = self.work_done() + COURSE * luby_number(self.course);
        self.annealing.restart_round();
        let mut order = self.lns.best_offsets.clone();
        if !self.course.is_multiple_of(2) {
            let most = self.lns.own >> run.rng().random_range(0..DISTURBANCES);
            order.iter_mut().for_each(|offset| *offset += run.rng().random_range(0..=most));
        }
        self.annealing.walk.adopt_offsets(run, &order)?;
        let offsets = self.annealing.walk.decoder.offsets().collect();
        self.lns.restart_from(run, offsets);
        Ok(())
    }

    /// Continues from a plan found elsewhere, if that is lower.
    pub(crate) fn adopt_start(&mut self, run: &mut Run<'_>, start: &Start) -> Result<(), Halt> {
        let grain = self.lns.model.grain;
        if start.height.div_ceil(grain) < self.lowest_granules() {
            let offsets: Vec<u64> = start.offsets.iter().map(|offset| offset / grain).collect();
            self.lns.adopt_offsets(run, &offsets);
            self.annealing.walk.adopt_offsets(run, &offsets)?;
            self.end = self.work_done() + COURSE * luby_number(self.course);
        }
        Ok(())
    }
}
