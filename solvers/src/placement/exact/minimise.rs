//! Minimisation: restarts at capacities between the bound and the incumbent.
//!
//! Each restart has its own capacity. A plan lowers the incumbent, a refutation raises the bound; both belong to the
//! run, and all workers share them. Every other restart tries the bound itself: if it can be reached, the search that
//! has no byte to waste is often the fastest, and it also meets generous capacities. The other restarts spread evenly
//! between bound and incumbent. How hard a capacity is varies as much between capacities as between preferences, and a
//! success far down saves all the steps to it.

use planlab_dsa::{Bytes, Evidence, Halt, Instance, Offset, Plan, Run, Scope, Stop};
use rand::RngExt;

use super::merge::Merge;
use crate::feasibility::{Problem, Restarts, Turn, Verdict, van_der_corput};
use crate::placement::greedy::first_fit;
use crate::placement::order::by_offset;
use crate::team::{EndsWith, RunOver, run_team};

/// The fewest items of a problem that sets some aside; smaller ones have quick nodes anyway.
const LEAST_PEELED: usize = 600;
/// Nodes per item in a first look at a capacity.
const LOOK_NODES: u64 = 2;
/// The most items of an instance that gets a first look.
const MOST_LOOKED_AT: usize = 2_000;
/// Capacities that are tried with each plain ranking before any is blurred.
const PLAIN_CAPACITIES: u64 = 8;

/// What else runs during a restart; see [`Minimiser::turn_beside`].
pub(crate) type NodeHook<'b> = dyn FnMut(&mut Run<'_>, u64) -> Result<(), Halt> + 'b;

/// A problem, and the buffers set aside from it.
pub(crate) struct Task {
    problem: Problem,
    /// The buffers that first fit puts back, in this order.
    aside: Vec<u32>,
    /// The merged instance, if the problem comes from one choice of hand-overs.
    merge: Option<Merge>,
}

impl Task {
    /// `None` if the search does not support the instance (see [`Problem::new`]).
    pub(crate) fn new(run: &Run<'_>) -> Option<Self> {
        Self::peeled_from(run, LEAST_PEELED)
    }

    /// The same, but sets buffers aside only in a problem of at least `least` items.
    pub(super) fn peeled_from(run: &Run<'_>, least: usize) -> Option<Self> {
        let bound = run.bound().best_claim(Scope::NoHandOver).value.get();
        let (problem, aside) = prepare_problem(run.instance(), bound, least)?;
        Some(Self { problem, aside, merge: None })
    }

    /// The task of an instance whose hand-overs are decided. `None` as in [`Task::new`].
    pub(super) fn from_merge(merge: Merge) -> Option<Self> {
        let (problem, aside) =
            prepare_problem(&merge.instance, merge.instance.load().bytes.get(), LEAST_PEELED)?;
        Some(Self { problem, aside, merge: Some(merge) })
    }

    /// The best known lower bound on the height of its plans, in bytes.
    fn bound_bytes(&self, run: &Run<'_>) -> u64 {
        match &self.merge {
            None => run.bound().best_claim(Scope::NoHandOver).value.get(),
            Some(merge) => {
                merge.instance.load().bytes.get().max(run.bound().best_claim(Scope::Any).value.get())
            }
        }
    }

    /// Stack that the search needs, in bytes.
    pub(crate) fn stack_bytes(&self) -> usize {
        self.problem.stack()
    }

    /// The number of buffers that the search places.
    pub(crate) fn movable_buffers(&self) -> usize {
        self.problem.movable_items()
    }
}

fn prepare_problem(instance: &Instance, bound: u64, least: usize) -> Option<(Problem, Vec<u32>)> {
    let problem = Problem::new(instance)?;
    let bound = bound.max(problem.floor_height().get());
    let pays = problem.len() >= least;
    Some(if pays { problem.peel_for(instance, bound) } else { (problem, Vec::new()) })
}

/// Looks once, with each ranking, at the requested capacity, if there is one. If it is generous, the search goes
/// straight down and is done before the greedy planners are.
///
/// # Errors
///
/// The `Halt` of the run; in the best case because the target is reached.
pub(crate) fn look_at_capacity(run: &mut Run<'_>) -> Result<(), Halt> {
    let Some(target) = run.target() else { return Ok(()) };
    if run.instance().len() > MOST_LOOKED_AT || run.scope() == Scope::Any {
        return Ok(());
    }
    let Some(task) = Task::new(run) else { return Ok(()) };
    run_team(run, task.stack_bytes(), EndsWith::First, |run, number, over| {
        let mut minimiser = Minimiser::new(run, &task, number)?;
        let nodes = LOOK_NODES * task.problem.len() as u64 + 64;
        for round in 0..3 {
            let mut tick = |work| {
                run.tick(work)?;
                over.check_over()
            };
            let turn = Turn::from_round((round + 2 * number as u64) % 3);
            let verdict = minimiser.restarts.run_restart(target.get(), turn, nodes, &mut tick)?;
            minimiser.take_verdict(run, target.get() / task.problem.unit(), verdict)?;
        }
        Ok(())
    })
}

/// Searches until the gap is closed or the run is over, on as many threads as the run may use.
pub(crate) fn minimise_height(run: &mut Run<'_>, task: &Task) -> Result<(), Halt> {
    run_team(run, task.stack_bytes(), EndsWith::First, |run, number, over| {
        let mut minimiser = Minimiser::new(run, task, number)?;
        while minimiser.run_turn(run, over)? {}
        Ok(())
    })
}

/// One worker's share of a minimisation.
pub(crate) struct Minimiser<'p> {
    task: &'p Task,
    restarts: Restarts<'p>,
    number: u64,
    turns: u64,
    /// The number of restarts at the bound.
    low: u64,
    /// The number of restarts above it, in all and since the last plan.
    high: u64,
    since: u64,
    /// One more than the highest capacity, in units, that has no plan of this task.
    refuted: u64,
    /// The last plan found.
    best: Option<Plan>,
    work: u64,
}

impl<'p> Minimiser<'p> {
    /// Worker number `number`; draws its seed from the run.
    ///
    /// # Errors
    ///
    /// The `Halt` of the run when the floor of the problem raises the bound.
    pub(crate) fn new(run: &mut Run<'_>, task: &'p Task, number: usize) -> Result<Self, Halt> {
        // Fixed and never active buffers end at the floor in every plan.
        run.raise_bound(task.problem.floor_height(), Scope::Any, Evidence::Load)?;
        let restarts = Restarts::new(&task.problem, run.rng().random());
        let number = number as u64;
        Ok(Self {
            task,
            restarts,
            number,
            turns: 0,
            low: 0,
            high: 0,
            since: 0,
            refuted: 0,
            best: None,
            work: 0,
        })
    }

    /// Units of work of all turns.
    pub(crate) const fn work_done(&self) -> u64 {
        self.work
    }

    /// Takes the last plan found.
    pub(crate) fn take_plan(&mut self) -> Option<Plan> {
        self.best.take()
    }

    /// One restart, until a plan within its capacity is known; false if nothing is left to find.
    pub(crate) fn run_turn(&mut self, run: &mut Run<'_>, over: &RunOver<'_>) -> Result<bool, Halt> {
        self.turn_beside(run, over, &mut |_, _| Ok(()))
    }

    /// The same. A restart may take minutes, so `beside` is called at every node, with the units of work of all turns so
    /// far.
    pub(crate) fn turn_beside(
        &mut self,
        run: &mut Run<'_>,
        over: &RunOver<'_>,
        beside: &mut NodeHook<'_>,
    ) -> Result<bool, Halt> {
        let Some((least, most)) = self.capacity_range(run) else { return Ok(false) };
        self.turns += 1;
        let (capacity, turn) = if least == most || self.turns % 2 == 1 || self.low < 3 {
            self.low += 1;
            (least, Turn::from_round(self.low - 1 + 2 * self.number))
        } else {
            self.next_high(least, most)
        };
        let bytes = capacity * self.task.problem.unit();
        let (done, mut is_beaten) = (&mut self.work, false);
        let mut tick = |work| {
            *done += work;
            run.tick(work)?;
            over.check_over()?;
            beside(run, *done)?;
            is_beaten = run.height_to_beat().is_some_and(|height| height.get() <= bytes);
            if is_beaten { Err(Halt::Stop(Stop::Cancelled)) } else { Ok(()) }
        };
        let verdict = match self.restarts.run_restart(bytes, turn, u64::MAX, &mut tick) {
            Err(_) if is_beaten => Verdict::Unknown,
            other => other?,
        };
        self.take_verdict(run, capacity, verdict)?;
        Ok(true)
    }

    /// The next capacity to try on the way from bound to incumbent, and the turn to use.
    fn next_high(&mut self, least: u64, most: u64) -> (u64, Turn) {
        let capacity = van_der_corput(least, most, self.high / 3 * 2 + self.number % 2 + 1);
        let is_blurred = self.high >= 3 * PLAIN_CAPACITIES;
        let length = if is_blurred { self.since / 3 } else { 0 };
        let turn = Turn { ranking: self.high, is_blurred, length };
        self.high += 1;
        self.since += 1;
        (capacity, turn)
    }

    fn take_verdict(&mut self, run: &mut Run<'_>, capacity: u64, verdict: Verdict) -> Result<(), Halt> {
        match verdict {
            Verdict::Unknown => Ok(()),
            Verdict::Feasible(offsets) => {
                self.since = 0;
                let plan = self.complete_plan(run, offsets)?;
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

    /// The whole plan, with the buffers that were set aside put back.
    fn complete_plan(&self, run: &mut Run<'_>, offsets: Vec<u64>) -> Result<Plan, Halt> {
        let instance = self.task.merge.as_ref().map_or(run.instance(), |merge| &merge.instance);
        let mut offsets = offsets;
        if !self.task.aside.is_empty() {
            let mut is_aside = vec![false; offsets.len()];
            self.task.aside.iter().for_each(|&id| is_aside[id as usize] = true);
            let mut order = by_offset(&offsets);
            order.retain(|&id| !is_aside[id as usize]);
            order.extend(&self.task.aside);
            offsets = first_fit(instance, &order, &mut |work| run.tick(work))?;
        }
        let plan = Plan::from_offsets(offsets.into_iter().map(Offset::new).collect::<Vec<_>>());
        Ok(self.task.merge.as_ref().map_or_else(|| plan.clone(), |merge| merge.original_plan(&plan)))
    }

    /// The least and the most capacity, in units, worth trying; `None` if no plan can be better than the incumbent.
    fn capacity_range(&self, run: &Run<'_>) -> Option<(u64, u64)> {
        let unit = self.task.problem.unit();
        let bound = self.task.bound_bytes(run);
        // The bound may come from buffers that were set aside; the rest may have a larger unit.
        let least = if self.task.aside.is_empty() { bound.div_ceil(unit) } else { bound / unit };
        let least = least.max(self.refuted);
        let below = run.height_to_beat().map(|height| height.get().div_ceil(unit).saturating_sub(1));
        let target = run.target().map(|target| target.get() / unit);
        let most = below.into_iter().chain(target).min().unwrap_or(2 * least);
        (least <= most).then_some((least, most))
    }
}
