//! The hill climb of TVM's unified static memory planner.
//!
//! First fit in the order of size, then 500 tries. Each try takes a buffer that touches the top, one of its neighbours
//! in time that come earlier in the order, and a second one: three times in four an earlier neighbour of a neighbour,
//! else another earlier neighbour. The two change places in the order. A lower plan stays; a higher one stays
//! sometimes, ever more rarely as the tries proceed.
//!
//! # References
//!
//! 1. Apache TVM, `src/tir/usmp/algo/hill_climb.cc`, 2022.
//! 2. Apache TVM RFC 9, *Unified Static Memory Planning*, 2021.
//!
//! # Complexity
//!
//! For k neighbours of a buffer: 500 times O(k^2) for the neighbours of neighbours, and what the decoder
//! places again.
//!
//! # Deviations from the paper
//!
//! - One pool at a time; ties in the order of size are broken by the lower id (in the original: by name).
//! - An offset is rounded up to the buffer's own alignment, not to that of the buffer below.
//! - After a swap is undone, a try that finds no second buffer changes nothing; the original repeats the last swap.
//! - The lowest plan is kept; the original keeps the last that was accepted.
//! - As in the original, the chance that a higher plan stays *grows* with the difference.

use planlab_dsa::{Descriptor, Halt, Planner, Run};
use rand::RngExt;

use crate::placement::search::decoding::{Change, Search, Walk, random_below, search_from};
use crate::placement::search::{anytime_descriptor, start};

const TRIES: u32 = 500;

/// 500 swaps below what touches the top; key `hill-climb/tvm`.
#[derive(Clone, Copy, Debug, Default)]
pub struct HillClimbTvm;

impl Planner for HillClimbTvm {
    fn descriptor(&self) -> Descriptor {
        Descriptor {
            key: "hill-climb/tvm".into(),
            summary: "500 swaps in the order of first fit, below what touches the top".into(),
            reference: "Apache TVM, src/tir/usmp/algo/hill_climb.cc, 2022",
            complexity: "500 k^2 for k neighbours in time",
            practical: Some(10_000),
            ..anytime_descriptor()
        }
    }

    fn plan(&self, run: &mut Run<'_>) -> Result<(), Halt> {
        search_from(self, run, |run| Walk::in_order(run, start::by_size_and_overlaps), Climb::new)
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Climb {
    walk: Walk,
    tries: u32,
    /// The height that was accepted last.
    height: u64,
    near: Vec<u32>,
    second: Vec<u32>,
}

impl Climb {
    pub(crate) fn new(walk: Walk) -> Self {
        let height = walk.decoder.height();
        Self { walk, tries: 0, height, near: Vec::new(), second: Vec::new() }
    }

    fn draw_change(&mut self, run: &mut Run<'_>) -> Result<Option<Change>, Halt> {
        let decoder = &self.walk.decoder;
        let mut tops: Vec<u32> = decoder.ids().filter(|&id| decoder.end(id) == self.height).collect();
        tops.sort_unstable_by_key(|&id| decoder.position(id));
        let Some(at) = random_below(run.rng(), tops.len()) else { return Ok(None) };
        self.collect_candidates(run, tops[at])?;
        let Some(at) = random_below(run.rng(), self.near.len()) else { return Ok(None) };
        let first = self.near[at];
        if self.second.len() < 2 && self.near.len() < 2 {
            return Ok(None);
        }
        loop {
            let is_far = !self.second.is_empty() && run.rng().random_range(0..100) > 25;
            let from = if is_far { &self.second } else { &self.near };
            let Some(at) = random_below(run.rng(), from.len()) else { return Ok(None) };
            if from[at] != first {
                return Ok(Some(Change::Swap(first, from[at])));
            }
            self.walk.count_work(run, 1)?;
            if self.near.iter().chain(&self.second).all(|&id| id == first) {
                return Ok(None);
            }
        }
    }

    /// Collects the earlier neighbours of a buffer and of all its neighbours, with repetitions.
    fn collect_candidates(&mut self, run: &mut Run<'_>, id: u32) -> Result<(), Halt> {
        let Self { walk, near, second, .. } = self;
        let free = walk.decoder.first_movable();
        let (mut all, mut theirs) = (Vec::new(), Vec::new());
        walk.decoder.collect_neighbours(id, &mut all);
        second.clear();
        for &neighbour in &all {
            let decoder = &walk.decoder;
            decoder.collect_neighbours(neighbour, &mut theirs);
            let before = decoder.position(neighbour);
            second.extend(theirs.iter().filter(|&&id| (free..before).contains(&decoder.position(id))));
            walk.count_work(run, 1 + theirs.len() as u64 / 4)?;
        }
        let decoder = &walk.decoder;
        let before = decoder.position(id);
        near.clear();
        near.extend(all.iter().filter(|&&id| (free..before).contains(&decoder.position(id))));
        Ok(())
    }
}

/// The chance in a hundred that a higher plan stays.
fn chance(new: u64, old: u64, tries: u32) -> u128 {
    50 * u128::from(new - old) / u128::from(new.max(1)) / u128::from(tries)
}

impl Search for Climb {
    fn make_step(&mut self, run: &mut Run<'_>) -> Result<bool, Halt> {
        self.tries += 1;
        if self.tries >= TRIES {
            return Ok(false);
        }
        self.walk.count_work(run, 1)?;
        let Some(change) = self.draw_change(run)? else { return Ok(true) };
        self.walk.make_change(run, change)?;
        let height = self.walk.decoder.height();
        let stays = height < self.height
            || u128::from(run.rng().random_range(0_u32..100)) < chance(height, self.height, self.tries);
        if stays {
            self.height = height;
        }
        self.walk.settle_change(run, stays)?;
        Ok(true)
    }

    fn work_done(&self) -> u64 {
        self.walk.work
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_much_higher_plan_stays_more_often_and_late_tries_never() {
        assert_eq!(chance(200, 100, 1), 25);
        assert_eq!(chance(110, 100, 1), 4);
        assert_eq!(chance(200, 100, 26), 0);
        assert_eq!(chance(100, 100, 1), 0);
    }
}
