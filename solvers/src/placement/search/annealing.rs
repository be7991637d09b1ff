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

use planlab_dsa::{Descriptor, Guarantee, Halt, Planner, Run};
use rand::RngExt;

use super::HONOURS;
use super::moves::Moves;
use super::walk::{Search, Walk};
use crate::arenas::{has_arenas, plan_each_arena};

/// Simulated annealing below what sticks out; key `annealing`.
///
/// ```
/// use planlab_dsa::{execute, Budget, Buffer, Bytes, Instance, LiveRange};
/// use planlab_solvers::placement::search::Annealing;
///
/// let buffers = [(3, 0, 2), (2, 1, 5), (2, 3, 6), (1, 4, 7)].map(|(size, start, end)| {
///     Buffer::new(Bytes::new(size), LiveRange::new(start, end).expect("not empty"))
/// });
/// let instance = Instance::from_buffers(buffers.to_vec())?;
/// let outcome = execute(&Annealing::default(), &instance, Budget::default(), 0);
/// assert!(outcome.is_optimal());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Annealing {
    hot: f64,
    cold: f64,
    round: u32,
}

impl Default for Annealing {
    fn default() -> Self {
        Self { hot: 0.05, cold: 0.001, round: 10_000 }
    }
}

impl Annealing {
    /// The heat at the start and at the end of a round, as parts of the height. Default: 0.05 and 0.001.
    ///
    /// # Panics
    ///
    /// Unless `hot >= cold > 0`.
    #[must_use]
    pub fn with_heat(mut self, hot: f64, cold: f64) -> Self {
        assert!(hot >= cold && cold > 0.0, "a heat from {hot} to {cold} does not fall");
        (self.hot, self.cold) = (hot, cold);
        self
    }

    /// Changes in the first round; at least 1. Default: 10,000.
    #[must_use]
    pub fn with_round(mut self, changes: u32) -> Self {
        self.round = changes.max(1);
        self
    }
}

impl Planner for Annealing {
    fn descriptor(&self) -> Descriptor {
        Descriptor {
            key: "annealing".into(),
            summary: "simulated annealing over the order of first fit, below what sticks out".into(),
            guarantee: Guarantee::Heuristic,
            honours: HONOURS,
            randomized: true,
            reference: "Kirkpatrick, Gelatt and Vecchi 1983, doi:10.1126/science.220.4598.671",
            complexity: "anytime",
            practical: Some(super::PRACTICAL),
        }
    }

    fn plan(&self, run: &mut Run<'_>) -> Result<(), Halt> {
        if has_arenas(run.instance()) {
            return plan_each_arena(self, run);
        }
        let Some(walk) = Walk::from_best(run)? else { return Ok(()) };
        let mut search = AnnealingSearch::new(walk, *self);
        while search.slice(run, u64::MAX)? {}
        Ok(())
    }
}

/// An annealing that can be resumed.
#[derive(Clone, Debug)]
pub(crate) struct AnnealingSearch {
    walk: Walk,
    moves: Moves,
    config: Annealing,
    /// Changes made so far in this round, and the length of the round.
    at: u64,
    round: u64,
    idle: u32,
}

impl AnnealingSearch {
    pub(crate) fn new(walk: Walk, config: Annealing) -> Self {
        let round = u64::from(config.round);
        Self { walk, moves: Moves::default(), config, at: 0, round, idle: 0 }
    }

    /// The walk that it works on.
    pub(crate) const fn walk(&mut self) -> &mut Walk {
        &mut self.walk
    }

    /// Begins a round as short as the first.
    pub(crate) fn restart(&mut self) {
        (self.at, self.round) = (0, u64::from(self.config.round));
    }

    /// The heat of the next change, in granules.
    #[expect(clippy::cast_precision_loss, reason = "a temperature needs no exact counts")]
    fn heat(&mut self) -> f64 {
        if self.at == self.round {
            (self.at, self.round) = (0, self.round.saturating_mul(2));
        }
        let part = self.at as f64 / self.round as f64;
        self.at += 1;
        let Annealing { hot, cold, .. } = self.config;
        hot * (cold / hot).powf(part) * self.walk.best() as f64
    }
}

#[expect(clippy::cast_precision_loss, reason = "the rounding is far below any heat")]
fn energy(walk: &Walk) -> f64 {
    walk.decoder.excess() as f64
}

impl Search for AnnealingSearch {
    fn step(&mut self, run: &mut Run<'_>) -> Result<bool, Halt> {
        self.walk.tick(run, 1)?;
        self.walk.aim_below_incumbent(run);
        if self.walk.decoder.tall().is_empty() {
            return Ok(false); // The ceiling is the bound.
        }
        let Some(change) = self.moves.draw(&self.walk.decoder, run.rng()) else {
            self.idle += 1;
            return Ok(self.idle < super::IDLE);
        };
        self.idle = 0;
        let chance: f64 = run.rng().random();
        let most = energy(&self.walk) - self.heat() * (1.0 - chance).ln();
        self.walk.change(run, change)?;
        if energy(&self.walk) > most {
            self.walk.decoder.undo();
            return Ok(true);
        }
        self.walk.decoder.keep();
        if self.walk.decoder.tall().is_empty() {
            self.walk.offer(run)?;
        }
        Ok(true)
    }

    fn work(&self) -> u64 {
        self.walk.work()
    }
}
