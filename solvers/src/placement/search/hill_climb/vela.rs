//! The hill climb of Arm's Vela compiler.
//!
//! First fit in the order of *urgency*: the largest load over the live range, then the longest lifetime. A try takes
//! the *bottleneck*, a buffer with the highest end, and everything that determined its place: its neighbours in time,
//! and the chains of predecessors of these and of itself. A predecessor is the buffer on which another was put. Two of
//! them change places in the order; three times in ten, one of the two is not itself a neighbour of the bottleneck. The
//! swap stays if the plan is not higher.
//!
//! ```text
//!         +-------+
//!         |   D   |        the bottleneck
//!  +------+-------+---+
//!  |        B         |    a neighbour, D's predecessor
//!  +--+-----------+---+
//!  |A |           |C|      A: B's predecessor, no neighbour of D; C: a neighbour
//!  +--+           +-+
//! ```
//!
//! # References
//!
//! 1. Arm, *Vela compiler for Ethos-U*, `ethosu/vela/hillclimb_allocation.py`, 2021.
//!
//! # Complexity
//!
//! For k neighbours of a buffer, a try examines the neighbours of what it collects, usually O(k^2), and
//! places again what the decoder must.
//!
//! # Deviations from the paper
//!
//! - It continues until it is stopped. The original ends after 500 tries.
//! - If several buffers could be the predecessor, it is the one with the lowest id; in the original it is the last that
//!   the search for an offset met. The bottleneck has the lowest id, too.
//! - A plan that grows too high is still completed.

use planlab_dsa::{Descriptor, Halt, Planner, Run};
use rand::RngExt;

use crate::placement::search::decoding::{Change, Decoder, Search, Walk, random_below, search_from};
use crate::placement::search::{anytime_descriptor, start};

/// Swaps two of the buffers that hold up the highest one; key `hill-climb/vela`.
#[derive(Clone, Copy, Debug, Default)]
pub struct HillClimbVela;

impl Planner for HillClimbVela {
    fn descriptor(&self) -> Descriptor {
        Descriptor {
            key: "hill-climb/vela".into(),
            summary: "swaps in the order of first fit among what holds the highest buffer up".into(),
            reference: "Arm Vela, ethosu/vela/hillclimb_allocation.py, 2021",
            complexity: "anytime; k^2 a try for k neighbours in time",
            practical: Some(10_000),
            ..anytime_descriptor()
        }
    }

    fn plan(&self, run: &mut Run<'_>) -> Result<(), Halt> {
        search_from(self, run, |run| Walk::in_order(run, start::by_urgency), Climb::new)
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Climb {
    walk: Walk,
    height: u64,
    /// The buffers that determined the bottleneck's place, and whether each buffer is one of them.
    deciding: Vec<u32>,
    is_deciding: Vec<bool>,
    near: Vec<u32>,
}

impl Climb {
    pub(crate) fn new(walk: Walk) -> Self {
        let height = walk.decoder.height();
        let is_deciding = vec![false; walk.decoder.order().len()];
        Self { walk, height, deciding: Vec::new(), is_deciding, near: Vec::new() }
    }

    fn draw_change(&mut self, run: &mut Run<'_>) -> Result<Option<Change>, Halt> {
        let decoder = &self.walk.decoder;
        let Some(bottleneck) = decoder.ids().find(|&id| decoder.end(id) == self.height) else {
            return Ok(None);
        };
        self.collect_candidates(run, bottleneck)?;
        let decoder = &self.walk.decoder;
        self.deciding.retain(|&id| decoder.position(id) >= decoder.first_movable());
        let neighbours = &decoder.model().neighbours;
        let is_far = |id: &&u32| **id != bottleneck && !neighbours.overlap(bottleneck, **id);
        let far: Vec<u32> = self.deciding.iter().filter(is_far).copied().collect();
        let from = if run.rng().random_range(0..101) < 30 && !far.is_empty() { &far } else { &self.deciding };
        let count = self.deciding.len();
        let (Some(one), Some(other)) =
            (random_below(run.rng(), from.len()), random_below(run.rng(), count.saturating_sub(1)))
        else {
            return Ok(None);
        };
        let (one, other) = (from[one], self.deciding[other]);
        Ok(Some(Change::Swap(one, if one == other { self.deciding[count - 1] } else { other })))
    }

    fn collect_candidates(&mut self, run: &mut Run<'_>, bottleneck: u32) -> Result<(), Halt> {
        for id in self.deciding.drain(..) {
            self.is_deciding[id as usize] = false;
        }
        let mut neighbours = Vec::new();
        self.walk.decoder.collect_neighbours(bottleneck, &mut neighbours);
        for id in std::iter::once(bottleneck).chain(neighbours) {
            self.collect_chain(run, id)?;
        }
        // All marks are cleared here, because pinned buffers leave `deciding` later.
        for &id in &self.deciding {
            self.is_deciding[id as usize] = false;
        }
        Ok(())
    }

    /// Collects a buffer and its chain of predecessors, except those collected before.
    fn collect_chain(&mut self, run: &mut Run<'_>, id: u32) -> Result<(), Halt> {
        let mut next = Some(id);
        while let Some(id) = next {
            if std::mem::replace(&mut self.is_deciding[id as usize], true) {
                break;
            }
            self.deciding.push(id);
            self.walk.decoder.collect_neighbours(id, &mut self.near);
            self.walk.count_work(run, 1 + self.near.len() as u64 / 4)?;
            next = predecessor(&self.walk.decoder, id, &self.near);
        }
        Ok(())
    }
}

fn predecessor(decoder: &Decoder, id: u32, near: &[u32]) -> Option<u32> {
    near.iter().copied().filter(|&other| decoder.carries_buffer(other, id)).min()
}

impl Search for Climb {
    fn make_step(&mut self, run: &mut Run<'_>) -> Result<bool, Halt> {
        self.walk.count_work(run, 1)?;
        let Some(change) = self.draw_change(run)? else { return Ok(false) };
        self.walk.make_change(run, change)?;
        let height = self.walk.decoder.height();
        let stays = height <= self.height;
        self.height = self.height.min(height);
        self.walk.settle_change(run, stays)?;
        Ok(true)
    }

    fn work_done(&self) -> u64 {
        self.walk.work
    }
}
