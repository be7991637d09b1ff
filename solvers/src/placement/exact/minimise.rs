//! Minimisation: restarts at capacities between the bound and the incumbent.
//!
//! Each restart has a capacity of its own. A plan lowers the incumbent, a refutation raises the bound,
//! and both are those of the run, which all workers share. Every other restart tries the bound itself:
//! where it can be reached, the search that has no byte to waste is often the fastest, and a capacity that
//! is generous is met on the way. The others spread evenly over what lies between bound and incumbent: how
//! hard a capacity is changes from one to the next as it does from one preference to the next, and a
//! success far down saves all the steps to it.

use planlab_dsa::{Bytes, Evidence, Halt, Instance, Offset, Plan, Run, Scope};
use rand::RngExt;

use super::hand_overs::Merge;
use super::kernel::{Problem, Restarts, Turn, Verdict};
use super::pruning::Pruning;
use crate::placement::search::first_fit;
use crate::team::{Over, team};

/// Stack that each item adds, in bytes: the search goes as deep as there are items.
const STACK_PER_ITEM: usize = 4 << 10;
/// The fewest items of which some are set aside; with fewer, nodes are quick as it is.
const LEAST_PEELED: usize = 600;
/// Nodes, for each item, of a first look at a capacity.
const LOOK_NODES: u64 = 2;
/// The most items of an instance that is looked at first.
const MOST_LOOKED_AT: usize = 2_000;
/// Capacities that are tried with each ranking as it is before any is blurred.
const PLAIN_CAPACITIES: u64 = 8;

/// A problem, and what was set aside of it.
pub(crate) struct Task {
    problem: Problem,
    pruning: Pruning,
    /// The buffers that are put back by first fit, in this order.
    aside: Vec<u32>,
    /// Where the problem is one of several that hand-overs make of an instance.
    merge: Option<Merge>,
}

impl Task {
    /// `None` where the search cannot see all of the instance (see [`Problem::new`]).
    pub(crate) fn new(run: &Run<'_>, pruning: Pruning) -> Option<Self> {
        Self::peeled_from(run, pruning, LEAST_PEELED)
    }

    /// The same, where something may be set aside of that many items or more.
    pub(super) fn peeled_from(run: &Run<'_>, pruning: Pruning, least: usize) -> Option<Self> {
        let bound = run.bound().of(Scope::NoHandOver).value.get();
        let (problem, aside) = prepare(run.instance(), bound, pruning, least)?;
        Some(Self { problem, pruning, aside, merge: None })
    }

    /// The task of an instance whose hand-overs are decided. `None` as above.
    pub(super) fn merged(merge: Merge, pruning: Pruning) -> Option<Self> {
        let (problem, aside) =
            prepare(&merge.instance, merge.instance.load().bytes.get(), pruning, LEAST_PEELED)?;
        Some(Self { problem, pruning, aside, merge: Some(merge) })
    }

    /// What is known of the least height of its plans, in bytes.
    fn bound(&self, run: &Run<'_>) -> u64 {
        match &self.merge {
            None => run.bound().of(Scope::NoHandOver).value.get(),
            Some(merge) => merge.instance.load().bytes.get().max(run.bound().of(Scope::Any).value.get()),
        }
    }

    /// Stack that the search needs, in bytes.
    pub(crate) fn stack(&self) -> usize {
        stack(&self.problem)
    }

    /// How many buffers are searched for a place.
    pub(crate) fn movable(&self) -> usize {
        self.problem.movable()
    }
}

fn prepare(instance: &Instance, bound: u64, pruning: Pruning, least: usize) -> Option<(Problem, Vec<u32>)> {
    let problem = Problem::new(instance, &[])?;
    let bound = bound.max(problem.floor().get());
    let pays = problem.items.len() >= least;
    Some(if pruning.peel && pays { problem.peeled(instance, bound) } else { (problem, Vec::new()) })
}

/// Looks once, with each ranking, at the capacity that was asked for, if one was: where it is generous, the
/// search goes straight down, sooner than the greedy planners are through.
///
/// # Errors
///
/// What the run says; in the best case that the target is reached.
pub(crate) fn look(run: &mut Run<'_>, pruning: Pruning) -> Result<(), Halt> {
    let Some(target) = run.target() else { return Ok(()) };
    if run.instance().len() > MOST_LOOKED_AT || run.scope() == Scope::Any {
        return Ok(());
    }
    let Some(task) = Task::new(run, pruning) else { return Ok(()) };
    team(run, task.stack(), |run, number, over| {
        let mut minimiser = Minimiser::new(run, &task, number)?;
        let nodes = LOOK_NODES * task.problem.items.len() as u64 + 64;
        for round in 0..3 {
            let mut tick = |work| {
                run.tick(work)?;
                over.check()
            };
            let turn = Turn::of((round + 2 * number as u64) % 3);
            let verdict = minimiser.restarts.step(target.get(), turn, nodes, &mut tick)?;
            minimiser.take(run, target.get() / task.problem.unit(), verdict)?;
        }
        Ok(())
    })
}

/// Searches until the gap is closed or the run is over, by as many threads as the run may use.
pub(crate) fn minimise(run: &mut Run<'_>, task: &Task) -> Result<(), Halt> {
    team(run, task.stack(), |run, number, over| {
        let mut minimiser = Minimiser::new(run, task, number)?;
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
    task: &'p Task,
    restarts: Restarts<'p>,
    number: u64,
    turns: u64,
    /// Restarts at the bound.
    low: u64,
    /// Restarts above it, and those of them since the last plan.
    high: u64,
    since: u64,
    /// One more than the highest capacity, in units, that has no plan of this task.
    refuted: u64,
    /// The last plan that it has found.
    best: Option<Plan>,
}

impl<'p> Minimiser<'p> {
    /// The worker of that number; it draws its seed from the run.
    ///
    /// # Errors
    ///
    /// What the run says to the end of what is fixed, which is a bound.
    pub(crate) fn new(run: &mut Run<'_>, task: &'p Task, number: usize) -> Result<Self, Halt> {
        // What is fixed or never active ends there in every plan.
        run.raise_bound(task.problem.floor(), Scope::Any, Evidence::Load)?;
        let restarts = Restarts::new(&task.problem, task.pruning, run.rng().random());
        let number = number as u64;
        Ok(Self { task, restarts, number, turns: 0, low: 0, high: 0, since: 0, refuted: 0, best: None })
    }

    /// The last plan that it has found, once.
    pub(crate) fn take_plan(&mut self) -> Option<Plan> {
        self.best.take()
    }

    /// One restart; false where nothing is left to find.
    ///
    /// # Errors
    ///
    /// What the run says.
    pub(crate) fn turn(&mut self, run: &mut Run<'_>, over: &Over<'_>) -> Result<bool, Halt> {
        let Some((least, most)) = self.units(run) else { return Ok(false) };
        self.turns += 1;
        let (capacity, turn) = if least == most || self.turns % 2 == 1 || self.low < 3 {
            self.low += 1;
            (least, Turn::of(self.low - 1 + 2 * self.number))
        } else {
            let (part, turn) = self.next_high();
            (least + (most - least) / 4096 * part + (most - least) % 4096 * part / 4096, turn)
        };
        let mut tick = |work| {
            run.tick(work)?;
            over.check()
        };
        let bytes = capacity * self.task.problem.unit();
        let verdict = self.restarts.step(bytes, turn, u64::MAX, &mut tick)?;
        self.take(run, capacity, verdict)?;
        Ok(true)
    }

    /// Where to look between bound and incumbent, in parts of 4096, and how.
    fn next_high(&mut self) -> (u64, Turn) {
        // The digits of a count, reversed, fill an interval evenly.
        let step = self.high / 3 * 2 + self.number % 2 + 1;
        let part = (step % 4096).reverse_bits() >> 52;
        let is_blurred = self.high >= 3 * PLAIN_CAPACITIES;
        let length = if is_blurred { self.since / 3 } else { 0 };
        let turn = Turn { ranking: self.high, is_blurred, length };
        self.high += 1;
        self.since += 1;
        (part, turn)
    }

    fn take(&mut self, run: &mut Run<'_>, capacity: u64, verdict: Verdict) -> Result<(), Halt> {
        match verdict {
            Verdict::Unknown => Ok(()),
            Verdict::Feasible(offsets) => {
                self.since = 0;
                let plan = self.complete(run, offsets)?;
                self.best = Some(plan.clone());
                run.offer(plan)
            }
            Verdict::Infeasible => {
                self.refuted = self.refuted.max(capacity + 1);
                if self.task.merge.is_some() {
                    return Ok(());
                }
                let next = Bytes::new((capacity + 1) * self.task.problem.unit());
                run.raise_bound(next, Scope::NoHandOver, Evidence::Search)
            }
        }
    }

    /// The plan with what was set aside put back.
    fn complete(&self, run: &mut Run<'_>, offsets: Vec<u64>) -> Result<Plan, Halt> {
        let instance = self.task.merge.as_ref().map_or(run.instance(), |merge| &merge.instance);
        let mut offsets = offsets;
        if !self.task.aside.is_empty() {
            let mut is_aside = vec![false; offsets.len()];
            self.task.aside.iter().for_each(|&id| is_aside[id as usize] = true);
            let mut order: Vec<u32> =
                (0..).take(offsets.len()).filter(|&id: &u32| !is_aside[id as usize]).collect();
            order.sort_by_key(|&id| offsets[id as usize]);
            order.extend(&self.task.aside);
            offsets = first_fit(instance, &order, &mut |work| run.tick(work))?;
        }
        let plan = Plan::from_offsets(offsets.into_iter().map(Offset::new).collect::<Vec<_>>());
        Ok(self.task.merge.as_ref().map_or_else(|| plan.clone(), |merge| merge.whole(&plan)))
    }

    /// The least and the most capacity, in units, that is worth a look; `None` where no plan can be better
    /// than the incumbent.
    fn units(&self, run: &Run<'_>) -> Option<(u64, u64)> {
        let unit = self.task.problem.unit();
        let bound = self.task.bound(run);
        // What was set aside may be all that the bound speaks of; the rest has a larger unit perhaps.
        let least = if self.task.aside.is_empty() { bound.div_ceil(unit) } else { bound / unit };
        let least = least.max(self.refuted);
        let below = run.height_to_beat().map(|height| height.get().div_ceil(unit).saturating_sub(1));
        let target = run.target().map(|target| target.get() / unit);
        let most = below.into_iter().chain(target).min().unwrap_or(2 * least);
        (least <= most).then_some((least, most))
    }
}
