//! Tabu search: makes the best of a few changes, even a bad one, and does not undo it at once.
//!
//! The state is an order of the buffers. Its value is the *excess* of the first-fit plan: what sticks out above a
//! ceiling one granule below the best known height. A step draws a handful of changes below what sticks out (see the
//! module `moves`) and makes the best of them, even if all are worse. The buffer that it moved must then rest for a
//! number of steps, unless moving it again gives the smallest excess so far under this ceiling. After a long time
//! without progress, the search returns to the best order under this ceiling and clears all rests.
//!
//! # References
//!
//! 1. F. Glover, *Tabu search, part I*, ORSA Journal on Computing 1(3), 1989, doi:10.1287/ijoc.1.3.190.
//! 2. F. Glover, *Tabu search, part II*, ORSA Journal on Computing 2(1), 1990, doi:10.1287/ijoc.2.1.4.
//!
//! # Complexity
//!
//! Anytime. A step decodes [`SAMPLE`] + 1 changes.

use planlab_dsa::{Descriptor, Halt, Planner, Run};
use rand::RngExt;

use super::decoding::{Change, Decoder, Moves, Search, Walk, search_from};

/// Changes that a step compares.
const SAMPLE: usize = 10;
/// Steps for which a moved buffer rests: this, plus a random number up to this.
const REST: u64 = 10;
/// Steps without a smaller excess before the search goes back.
const STAGNATION_LIMIT: u64 = 2_000;

/// Makes the best of a handful of changes and does not undo it at once; key `tabu`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tabu;

impl Planner for Tabu {
    fn descriptor(&self) -> Descriptor {
        Descriptor {
            key: "tabu".into(),
            summary: "the best of ten changes of the order of first fit; what was moved rests".into(),
            reference: "Glover 1989, doi:10.1287/ijoc.1.3.190",
            ..super::anytime_descriptor()
        }
    }

    fn plan(&self, run: &mut Run<'_>) -> Result<(), Halt> {
        search_from(self, run, Walk::from_best, TabuSearch::new)
    }
}

/// A tabu search that can be resumed.
#[derive(Clone, Debug)]
pub(crate) struct TabuSearch {
    walk: Walk,
    moves: Moves,
    steps: u64,
    /// The step from which each buffer may be moved again.
    rests_until: Vec<u64>,
    /// The best state under this ceiling.
    best: Decoder,
    best_at: u64,
    idle: u32,
}

impl TabuSearch {
    pub(crate) fn new(walk: Walk) -> Self {
        let count = walk.decoder.order().len();
        let best = walk.decoder.clone();
        Self {
            walk,
            moves: Moves::default(),
            steps: 0,
            rests_until: vec![0; count],
            best,
            best_at: 0,
            idle: 0,
        }
    }

    /// The allowed change of least excess among those drawn.
    fn choose_change(&mut self, run: &mut Run<'_>) -> Result<Option<Change>, Halt> {
        let mut best: Option<(u128, Change)> = None;
        for _ in 0..SAMPLE {
            let Some(change) = self.moves.draw_change(&self.walk.decoder, run.rng()) else { continue };
            self.walk.make_change(run, change)?;
            let excess = self.walk.decoder.excess_over_ceiling();
            self.walk.decoder.undo_changes();
            let rests = self.rests_until[moved_buffer(change) as usize] > self.steps;
            let may = !rests || excess < self.best.excess_over_ceiling();
            if may && best.is_none_or(|(least, _)| excess < least) {
                best = Some((excess, change));
            }
        }
        Ok(best.map(|(_, change)| change))
    }

    fn judge_change(&mut self, run: &mut Run<'_>) -> Result<(), Halt> {
        if self.walk.decoder.tall_buffers().is_empty() {
            self.walk.offer_current(run)?;
            self.remember_change();
        } else if self.walk.decoder.excess_over_ceiling() < self.best.excess_over_ceiling() {
            self.remember_change();
        } else if self.steps - self.best_at > STAGNATION_LIMIT {
            self.walk.decoder.clone_from(&self.best);
            self.rests_until.fill(0);
            self.best_at = self.steps;
        }
        Ok(())
    }

    fn remember_change(&mut self) {
        self.best.clone_from(&self.walk.decoder);
        self.best_at = self.steps;
    }
}

fn moved_buffer(change: Change) -> u32 {
    match change {
        Change::Swap(id, _) | Change::Shift(id, _) => id,
    }
}

impl Search for TabuSearch {
    fn make_step(&mut self, run: &mut Run<'_>) -> Result<bool, Halt> {
        self.steps += 1;
        self.walk.count_work(run, 1)?;
        if self.walk.aim_below_incumbent(run) {
            self.best.set_ceiling(self.walk.decoder.ceiling());
        }
        if self.walk.decoder.tall_buffers().is_empty() {
            return Ok(false); // The ceiling is the bound.
        }
        let Some(change) = self.choose_change(run)? else {
            self.idle += 1;
            return Ok(self.idle < super::IDLE);
        };
        self.idle = 0;
        self.rests_until[moved_buffer(change) as usize] =
            self.steps + REST + run.rng().random_range(0..=REST);
        self.walk.make_change(run, change)?;
        self.walk.decoder.keep_changes();
        self.judge_change(run)?;
        Ok(true)
    }

    fn work_done(&self) -> u64 {
        self.walk.work
    }
}
