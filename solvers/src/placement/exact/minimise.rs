//! Minimisation: restarts at capacities between the bound and the incumbent.
//!
//! Each restart has a capacity of its own. A plan lowers the incumbent, a refutation raises the bound,
//! and both are those of the run, which all workers share. Many restarts try the bound itself: where it
//! can be reached, the search that has no byte to waste is often the fastest, and a capacity that is
//! generous is then met on the way.

use planlab_dsa::{Bytes, Evidence, Halt, Offset, Plan, Run, Scope};
use rand::RngExt;

use super::kernel::{Problem, Restarts, Verdict};
use super::pruning::Pruning;
use crate::team::{Over, team};

/// Where between the bound (0) and just below the incumbent (8) restarts look, in turn.
const EIGHTHS: [u64; 10] = [0, 0, 0, 8, 0, 4, 8, 0, 2, 6];
/// Stack that each item adds, in bytes: the search goes as deep as there are items.
const STACK_PER_ITEM: usize = 4 << 10;
/// Nodes for each item of a first look at a capacity that was asked for.
const FIRST_LOOK: u64 = 2;

/// Searches until the gap is closed or the run is over, by as many threads as the run may use.
pub(crate) fn minimise(run: &mut Run<'_>, problem: &Problem, pruning: Pruning) -> Result<(), Halt> {
    team(run, stack(problem), |run, number, over| {
        let mut minimiser = Minimiser::new(run, problem, pruning, number)?;
        while minimiser.turn(run, over)? {}
        Ok(())
    })
}

/// Stack that a search of the problem needs, in bytes.
pub(crate) fn stack(problem: &Problem) -> usize {
    STACK_PER_ITEM * problem.items.len()
}

/// One worker's share of a minimisation.
pub(crate) struct Minimiser<'p> {
    problem: &'p Problem,
    restarts: Restarts<'p>,
    number: usize,
    turns: usize,
    best: Option<u64>,
}

impl<'p> Minimiser<'p> {
    /// The worker of that number; it draws its seed from the run.
    ///
    /// # Errors
    ///
    /// What the run says to the end of what is fixed, which is a bound.
    pub(crate) fn new(
        run: &mut Run<'_>,
        problem: &'p Problem,
        pruning: Pruning,
        number: usize,
    ) -> Result<Self, Halt> {
        run.raise_bound(problem.floor(), Scope::NoHandOver, Evidence::Load)?;
        let restarts = Restarts::new(problem, pruning, run.rng().random()).from_round(2 * number as u64);
        Ok(Self { problem, restarts, number, turns: 0, best: None })
    }

    /// One restart; false where nothing is left to find.
    ///
    /// # Errors
    ///
    /// What the run says.
    pub(crate) fn turn(&mut self, run: &mut Run<'_>, over: &Over<'_>) -> Result<bool, Halt> {
        let Some((least, most)) = self.units(run) else { return Ok(false) };
        let (turn, has_target) = (self.turns, run.target().is_some() && self.number == 0);
        self.turns += 1;
        let mut tick = |work| {
            run.tick(work)?;
            over.check()
        };
        let (capacity, verdict) = match turn {
            0 if has_target => {
                let nodes = FIRST_LOOK * self.problem.items.len() as u64 + 64;
                (most, self.restarts.look(most * self.problem.unit(), nodes, &mut tick)?)
            }
            _ => {
                let eighth = EIGHTHS[(turn + 3 * self.number) % EIGHTHS.len()];
                let capacity = least + (most - least) * eighth / 8;
                (capacity, self.restarts.step(capacity * self.problem.unit(), u64::MAX, &mut tick)?)
            }
        };
        self.take(run, capacity, verdict)?;
        Ok(true)
    }

    fn take(&mut self, run: &mut Run<'_>, capacity: u64, verdict: Verdict) -> Result<(), Halt> {
        match verdict {
            Verdict::Unknown => Ok(()),
            Verdict::Feasible(offsets) => {
                let plan = Plan::from_offsets(offsets.into_iter().map(Offset::new).collect::<Vec<_>>());
                self.best = plan.height(run.instance()).map(Bytes::get).or(self.best);
                run.offer(plan)
            }
            Verdict::Infeasible => {
                let next = Bytes::new((capacity + 1) * self.problem.unit());
                run.raise_bound(next, Scope::NoHandOver, Evidence::Search)
            }
        }
    }

    /// The least and the most capacity, in units, that is worth a look; `None` where no plan can be better
    /// than the incumbent.
    fn units(&self, run: &Run<'_>) -> Option<(u64, u64)> {
        let unit = self.problem.unit();
        let least = run.bound().of(Scope::NoHandOver).value.get().div_ceil(unit);
        let incumbent = run.best().map(|best| best.height().get()).into_iter().chain(self.best).min();
        let below = incumbent.map(|height| height.div_ceil(unit).saturating_sub(1));
        let target = run.target().map(|target| target.get() / unit);
        let most = below.into_iter().chain(target).min().unwrap_or(2 * least);
        (least <= most).then_some((least, most))
    }
}
