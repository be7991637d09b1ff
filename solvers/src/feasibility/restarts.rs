//! Restarts of the search: decides whether there is a plan of at most a given height.

use planlab_dsa::Halt;

use super::preference::{Preference, Random, Ranking};
use super::problem::Problem;
use super::search::{Cut, Search};
use super::sequences::luby_number;
use crate::tick::Tick;

/// The result of a search at a capacity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// A plan that fits: the offset of every buffer, in bytes.
    Feasible(Vec<u64>),
    /// No plan without hand-overs fits.
    Infeasible,
    /// The node limit came first.
    Unknown,
}

const NODES_PER_ITEM: u64 = 8;

/// A search that restarts with other preferences each time, and remembers failed states.
pub(crate) struct Restarts<'p> {
    problem: &'p Problem,
    search: Search<'p>,
    random: Random,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Turn {
    /// The number of the ranking; rankings take turns.
    pub(crate) ranking: u64,
    /// Whether its measures are blurred.
    pub(crate) is_blurred: bool,
    /// The index, from 0 on, in Luby's sequence, which gives its node limit.
    pub(crate) length: u64,
}

impl Turn {
    /// The settings of restart number `round`: each ranking once without blur, then blurred.
    pub(crate) const fn from_round(round: u64) -> Self {
        let kinds = Ranking::ALL.len() as u64;
        Self { ranking: round, is_blurred: round >= kinds, length: round / kinds }
    }
}

impl<'p> Restarts<'p> {
    pub(crate) fn new(problem: &'p Problem, seed: u64) -> Self {
        let search = Search::new(problem, Preference::from_ranking(Ranking::ALL[0]));
        Self { problem, search, random: Random(seed) }
    }

    /// One restart: `capacity` in bytes, at most `nodes` nodes.
    pub(crate) fn run_restart(
        &mut self,
        capacity: u64,
        turn: Turn,
        nodes: u64,
        tick: &mut Tick<'_>,
    ) -> Result<Verdict, Halt> {
        let kinds = Ranking::ALL.len() as u64;
        let ranking = Ranking::ALL[usize::try_from(turn.ranking % kinds).unwrap_or(0)];
        self.search.prefer(if turn.is_blurred {
            Preference::with_blur(ranking, self.problem, &mut self.random)
        } else {
            Preference::from_ranking(ranking)
        });
        let most = luby_number(turn.length + 1) * NODES_PER_ITEM * (self.problem.items.len() as u64 + 8);
        match self.search.run(capacity / self.problem.unit(), most.min(nodes), tick) {
            Ok(true) => Ok(Verdict::Feasible(self.search.plan())),
            Ok(false) => Ok(Verdict::Infeasible),
            Err(Cut::Nodes) => Ok(Verdict::Unknown),
            Err(Cut::Halt(halt)) => Err(halt),
        }
    }

    /// Restarts until there is a result, or until `nodes` nodes in all.
    pub(crate) fn decide_capacity(
        &mut self,
        capacity: u64,
        nodes: u64,
        tick: &mut Tick<'_>,
    ) -> Result<Verdict, Halt> {
        let (mut left, mut round) = (nodes, 0);
        loop {
            let verdict = self.run_restart(capacity, Turn::from_round(round), left, tick)?;
            left = left.saturating_sub(self.search.nodes);
            if verdict != Verdict::Unknown || left == 0 {
                return Ok(verdict);
            }
            round += 1;
        }
    }
}

impl Problem {
    /// Whether a plan fits `capacity` bytes, in at most `nodes` search nodes. Reports the work done to `tick`.
    pub(crate) fn decide_capacity(
        &self,
        capacity: u64,
        nodes: u64,
        tick: &mut Tick<'_>,
    ) -> Result<Verdict, Halt> {
        Restarts::new(self, 0).decide_capacity(capacity, nodes, tick)
    }
}
