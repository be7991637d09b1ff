//! Simulated annealing over the order of the buffers.
//!
//! The state is an order. Its energy is the *excess* of the first-fit plan: what sticks out above a ceiling one granule
//! below the best known height, summed over the buffers. This measures the distance to a better plan even if the height
//! does not change. Changes start below what sticks out (see the module `moves`). A change that costs d is accepted
//! with probability exp(-d / heat). The heat falls geometrically over a round, and each round is twice as long as the
//! one before. As soon as nothing sticks out, the search offers the plan and lowers the ceiling.
//!
//! # References
//!
//! 1. S. Kirkpatrick, C. D. Gelatt and M. P. Vecchi, *Optimization by simulated annealing*, Science
//!    220(4598), 1983, doi:10.1126/science.220.4598.671.
//!
//! # Complexity
//!
//! Anytime. A change places again what it affects: half of the buffers on dense instances, a few on nets.

use planlab_dsa::{Descriptor, Halt, Planner, Run};
use rand::RngExt;

use super::decoding::{Moves, Search, Walk, search_from};

/// The heat at the start and at the end of a round, as parts of the height.
const HOT: f64 = 0.05;
const COLD: f64 = 0.001;
const FIRST_ROUND: u64 = 10_000;

/// Simulated annealing below what sticks out; key `annealing`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Annealing;

impl Planner for Annealing {
    fn descriptor(&self) -> Descriptor {
        Descriptor {
            key: "annealing".into(),
            summary: "simulated annealing over the order of first fit, below what sticks out".into(),
            reference: "Kirkpatrick, Gelatt and Vecchi 1983, doi:10.1126/science.220.4598.671",
            ..super::anytime_descriptor()
        }
    }

    fn plan(&self, run: &mut Run<'_>) -> Result<(), Halt> {
        search_from(self, run, Walk::from_best, AnnealingSearch::new)
    }
}

/// An annealing that can be resumed.
#[derive(Clone, Debug)]
pub(crate) struct AnnealingSearch {
    pub(crate) walk: Walk,
    moves: Moves,
    /// Changes made so far in this round, and the length of the round.
    at: u64,
    round: u64,
    idle: u32,
}

impl AnnealingSearch {
    pub(crate) fn new(walk: Walk) -> Self {
        Self { walk, moves: Moves::default(), at: 0, round: FIRST_ROUND, idle: 0 }
    }

    /// Begins a round as short as the first.
    pub(crate) fn restart_round(&mut self) {
        (self.at, self.round) = (0, FIRST_ROUND);
    }

    /// The heat of the next change, in granules.
    #[expect(clippy::cast_precision_loss, reason = "a temperature needs no exact counts")]
    fn next_heat(&mut self) -> f64 {
        if self.at == self.round {
            (self.at, self.round) = (0, self.round.saturating_mul(2));
        }
        let part = self.at as f64 / self.round as f64;
        self.at += 1;
        HOT * (COLD / HOT).powf(part) * self.walk.best as f64
    }
}

#[expect(clippy::cast_precision_loss, reason = "the rounding is far below any heat")]
fn walk_energy(walk: &Walk) -> f64 {
    walk.decoder.excess_over_ceiling() as f64
}

impl Search for AnnealingSearch {
    fn make_step(&mut self, run: &mut Run<'_>) -> Result<bool, Halt> {
        self.walk.count_work(run, 1)?;
        self.walk.aim_below_incumbent(run);
        if self.walk.decoder.tall_buffers().is_empty() {
            return Ok(false); // The ceiling is the bound.
        }
        let Some(change) = self.moves.draw_change(&self.walk.decoder, run.rng()) else {
            self.idle += 1;
            return Ok(self.idle < super::IDLE);
        };
        self.idle = 0;
        let chance: f64 = run.rng().random();
        let most = walk_energy(&self.walk) - self.next_heat() * (1.0 - chance).ln();
        self.walk.make_change(run, change)?;
        if walk_energy(&self.walk) > most {
            self.walk.decoder.undo_changes();
            return Ok(true);
        }
        self.walk.decoder.keep_changes();
        if self.walk.decoder.tall_buffers().is_empty() {
            self.walk.offer_current(run)?;
        }
        Ok(true)
    }

    fn work_done(&self) -> u64 {
        self.walk.work
    }
}
