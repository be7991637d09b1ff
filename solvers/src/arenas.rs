//! Plans several arenas, or one with a capacity, with planners that support neither: each arena is planned alone.
//!
//! Buffers of different arenas never meet. So an instance splits into one part for each arena, and heights and bounds
//! add up. A capacity is a height that is low enough, which is the meaning of a run's target; if it is proved out of
//! reach, there is no plan at all.
//!
//! 1. Each arena in turn, until it has a plan within its capacity, with an equal share of the time (or work) that is
//!    left. As soon as all have a plan, the whole has one.
//! 2. Each arena in turn for as low a plan as its share allows, starting from its plan. An arena leaves what it does
//!    not need to those after it, and to another round.
//!
//! Without limits, shares are units of work and double from round to round, so that no arena waits for ever for one
//! that never ends.
//!
//! # Complexity
//!
//! O(n) for n buffers to split the arenas, and O(n log n) to verify the whole each time that one of them has a lower
//! plan. Then what the planner needs for each arena. With limited time or work that is at most twice (the first plan,
//! then one as low as the share allows, within the limit in all). Without a limit it is less than four times, since
//! every round of doubling shares starts again from the existing plan.

use std::sync::Arc;
use std::time::Duration;

use planlab_dsa::{
    ArenaId, ArenaPart, Bound, BufferId, Bytes, Descriptor, Event, Halt, InPlace, Instance, Offset, Plan,
    Planner, Run, Scope, Stop, VerifiedPlan,
};

use crate::nested::{Ended, Share, Then, raise_both, run_nested};

/// Units of work of the first share if work is not limited: at least, and for each buffer.
const FIRST_SHARE: (u64, u64) = (1 << 20, 64);
/// The most doublings of that share.
const MOST_DOUBLINGS: u32 = 40;

/// Whether an instance has several arenas, or a capacity.
pub(crate) fn has_arenas(instance: &Instance) -> bool {
    !matches!(instance.arenas(), [arena] if arena.capacity.is_none())
}

/// Plans every arena with a planner that need not support arenas.
///
/// # Errors
///
/// The `Halt` of the run; [`Stop::Infeasible`] if an arena cannot keep its capacity.
pub(crate) fn plan_each_arena(planner: &dyn Planner, run: &mut Run<'_>) -> Result<(), Halt> {
    let parts = run.instance().split_arenas();
    let mut arenas = Arenas::new(run.instance(), &parts);
    arenas.offer_combined(run)?;
    for round in 0.. {
        let open = arenas.open_arenas();
        if open.is_empty() {
            return Ok(());
        }
        for (at, &arena) in open.iter().enumerate() {
            // The first round leaves a share for the second.
            let to_come = open.len() - at + usize::from(round == 0);
            arenas.plan_arena(run, planner, arena, (round, to_come))?;
        }
    }
    Ok(())
}

/// The state of an arena.
#[derive(Clone, Debug, Default)]
struct KnownArena {
    capacity: Option<Bytes>,
    /// The lowest plan within the capacity, and its height.
    best: Option<(Bytes, Plan)>,
    bound: Bound,
    /// Whether the planner has finished.
    is_done: bool,
}

struct Arenas<'p> {
    parts: &'p [ArenaPart],
    known: Vec<KnownArena>,
    count: usize,
}

impl<'p> Arenas<'p> {
    fn new(instance: &Instance, parts: &'p [ArenaPart]) -> Self {
        let of = |(arena, part): (&planlab_dsa::Arena, &ArenaPart)| KnownArena {
            capacity: arena.capacity,
            best: part.ids.is_empty().then(|| (Bytes::ZERO, Plan::default())),
            bound: Bound::default(),
            is_done: part.ids.is_empty(),
        };
        let known = instance.arenas().iter().zip(parts).map(of).collect();
        Self { parts, known, count: instance.len() }
    }

    /// The arenas still to be planned; empty if one has no plan and will not get one.
    fn open_arenas(&self) -> Vec<usize> {
        if self.known.iter().any(|arena| arena.is_done && arena.best.is_none()) {
            return Vec::new();
        }
        (0..self.known.len()).filter(|&at| !self.known[at].is_done).collect()
    }

    /// Looks for a first plan of an arena, or for a lower one.
    fn plan_arena(
        &mut self,
        run: &mut Run<'_>,
        planner: &dyn Planner,
        at: usize,
        (round, to_come): (u32, usize),
    ) -> Result<(), Halt> {
        if run.remaining_time() == Some(Duration::ZERO) {
            return Err(Halt::Stop(Stop::Deadline));
        }
        let parts = self.parts;
        let is_first = self.known[at].best.is_none();
        let by_work = planner.descriptor().honours.work_limit;
        let share = self.share_of(run, at, by_work, (round, to_come));
        let informed = Informed { planner, bound: self.known[at].bound };
        let Ended { end, bound, work } =
            run_nested(run, &informed, &parts[at].instance, share, |run, event| {
                match event {
                    Event::Incumbent(plan) => self.take_plan(run, at, plan)?,
                    Event::Bound(bound) => self.take_bound(run, at, *bound)?,
                }
                let has_first = is_first && self.known[at].best.is_some();
                Ok(if has_first { Then::End } else { Then::GoOn })
            })?;
        match end? {
            Stop::Finished | Stop::Proved => self.known[at].is_done = true,
            Stop::Infeasible if is_first => {
                let arena = ArenaId::new(u16::try_from(at).expect("arena ids have 16 bits"));
                run.raise_arena_bound(arena, bound.best_claim(Scope::Any))?;
            }
            _ => {}
        }
        // Counts at least one unit in all, so that a run that is over is noticed.
        run.tick(u64::from(work == 0))
    }

    /// The share of one arena. It has a time limit only if the planner counts no work (`by_work` is false), so that a
    /// time limit decides where a run ends and nothing else.
    fn share_of(&self, run: &Run<'_>, at: usize, by_work: bool, (round, to_come): (u32, usize)) -> Share {
        let parts = u32::try_from(to_come).expect("there are at most 65535 arenas");
        let (wall, work) = match (run.remaining_time(), run.remaining_work()) {
            (wall, Some(work)) => (wall, Some((work / u64::from(parts)).max(1))),
            (Some(wall), None) if !by_work => {
                (Some(wall / parts), self.waits_for_a_plan(at).then_some(u64::MAX))
            }
            (wall, None) => (wall, Some(self.first_share(at) << round.min(MOST_DOUBLINGS))),
        };
        Share { wall, work, target: self.target_height(run, at), hints: self.starting_hints(run, at) }
    }

    fn first_share(&self, at: usize) -> u64 {
        let (least, each) = FIRST_SHARE;
        let buffers = u64::try_from(self.parts[at].ids.len()).unwrap_or(u64::MAX);
        least.max(each.saturating_mul(buffers)).min(u64::MAX >> MOST_DOUBLINGS)
    }

    /// Whether any plan will do: a run that counts work notices at once that it was ended.
    fn waits_for_a_plan(&self, at: usize) -> bool {
        self.known[at].best.is_none() && self.known[at].capacity.is_none()
    }

    /// The height that is low enough: the capacity for a first plan, then what the other arenas leave of the target,
    /// unless that is known to be out of reach for this arena alone.
    fn target_height(&self, run: &Run<'_>, at: usize) -> Option<Bytes> {
        let known = &self.known[at];
        if known.best.is_none() {
            return known.capacity;
        }
        let mut others = (0..self.known.len()).filter(|&other| other != at);
        let left = others.try_fold(run.target()?.get(), |left, other| {
            let (height, _) = self.known[other].best.as_ref()?;
            left.checked_sub(height.get())
        })?;
        (left >= known.bound.best_claim(Scope::Any).value.get()).then(|| Bytes::new(left))
    }

    /// The hints to begin with: the existing plan, or those of the run.
    fn starting_hints(&self, run: &Run<'_>, at: usize) -> Option<Arc<[Option<Offset>]>> {
        if let Some((_, plan)) = &self.known[at].best {
            return Some(plan.offsets.iter().copied().map(Some).collect());
        }
        let hints = run.hints()?;
        Some(self.parts[at].ids.iter().map(|id| hints[id.index()]).collect())
    }

    fn take_plan(&mut self, run: &mut Run<'_>, at: usize, plan: &VerifiedPlan<'_>) -> Result<(), Halt> {
        let (known, height) = (&mut self.known[at], plan.height());
        let fits = known.capacity.is_none_or(|capacity| height <= capacity);
        if !fits || known.best.as_ref().is_some_and(|(best, _)| *best <= height) {
            return Ok(());
        }
        known.best = Some((height, plan.as_plan().clone()));
        self.offer_combined(run)
    }

    /// Offers the best plans combined, if every arena has one.
    fn offer_combined(&self, run: &mut Run<'_>) -> Result<(), Halt> {
        match self.total_height() {
            Some(height) if run.improves_incumbent(height) => run.offer(self.combined_plan()),
            _ => Ok(()),
        }
    }

    fn take_bound(&mut self, run: &mut Run<'_>, at: usize, bound: Bound) -> Result<(), Halt> {
        for scope in [Scope::Any, Scope::NoHandOver] {
            self.known[at].bound.raise_claim(bound.best_claim(scope), scope);
        }
        raise_both(run, Bound::sum_parts(self.known.iter().map(|arena| arena.bound)))
    }

    /// The height of all best plans together; `None` if one is missing.
    fn total_height(&self) -> Option<Bytes> {
        let mut heights = self.known.iter().map(|arena| arena.best.as_ref().map(|(height, _)| *height));
        heights.try_fold(Bytes::ZERO, |sum, height| sum.checked_add(height?))
    }

    fn combined_plan(&self) -> Plan {
        let mut whole = Plan::from_offsets(vec![Offset::default(); self.count]);
        for (part, known) in self.parts.iter().zip(&self.known) {
            let Some((_, plan)) = &known.best else { continue };
            for (id, &offset) in part.ids.iter().zip(&plan.offsets) {
                whole.offsets[id.index()] = offset;
            }
            let old = |id: BufferId| part.ids[id.index()];
            let pair = |pair: &InPlace| InPlace { input: old(pair.input), output: old(pair.output) };
            whole.in_place.extend(plan.in_place.iter().map(pair));
        }
        whole
    }
}

/// A planner that begins with a known bound.
struct Informed<'p> {
    planner: &'p dyn Planner,
    bound: Bound,
}

impl Planner for Informed<'_> {
    fn descriptor(&self) -> Descriptor {
        self.planner.descriptor()
    }

    fn plan(&self, run: &mut Run<'_>) -> Result<(), Halt> {
        raise_both(run, self.bound)?;
        self.planner.plan(run)
    }
}

#[cfg(test)]
mod tests {
    use planlab_dsa::{Budget, Buffer, Outcome, execute};

    use super::*;
    use crate::placement::exact::Exact;
    use crate::placement::testing::{scripted_by_arena, test_arena, test_buffer};

    /// Stacks everything, leaves one granule less below at each step while it can, and never ends.
    fn endless() -> impl Planner {
        scripted_by_arena("endless", |run| {
            for above in (0..).map(|at: u64| 100_u64.saturating_sub(at)) {
                run.tick(100)?;
                let mut top = above;
                let stack = run.instance().buffers().iter().map(|buffer| {
                    top += buffer.size.get();
                    Offset::new(top - buffer.size.get())
                });
                let stack: Vec<Offset> = stack.collect();
                run.offer(Plan::from_offsets(stack))?;
            }
            Ok(())
        })
    }

    fn buffer(size: u64, start: u32, end: u32, arena: u16) -> Buffer {
        test_buffer(size, start, end).in_arena(ArenaId::new(arena))
    }

    fn instance(buffers: impl IntoIterator<Item = Buffer>, capacities: &[Option<u64>]) -> Instance {
        let arenas = capacities.iter().copied().map(test_arena);
        Instance::builder().buffers(buffers).arenas(arenas).build().expect("valid")
    }

    /// A load of 20, but no plan lower than 21.
    fn above_load(arena: u16) -> impl Iterator<Item = Buffer> {
        let early = [(11, 0, 3), (6, 6, 8), (6, 1, 5), (3, 1, 4)];
        let late = [(4, 3, 6), (7, 5, 7), (7, 3, 7), (12, 7, 8)];
        early.into_iter().chain(late).map(move |(size, start, end)| buffer(size, start, end, arena))
    }

    /// How a run with a target ends, and the height of its plan.
    fn result(planner: &dyn Planner, instance: &Instance, target: Option<u64>) -> (Stop, Option<u64>) {
        let budget = Budget { target: target.map(Bytes::new), ..Budget::default() };
        let outcome = execute(planner, instance, budget, 0);
        (outcome.end.clone().expect("no error"), outcome.height().map(Bytes::get))
    }

    fn heights<'i>(outcome: &'i Outcome<'_>) -> impl Iterator<Item = u64> + 'i {
        outcome.trajectory.iter().filter_map(|mark| Some(mark.height?.get()))
    }

    #[test]
    fn there_is_a_plan_as_soon_as_every_arena_has_one() {
        let three = instance((0..3).map(|arena| buffer(5, 0, 1, arena)), &[None, None, None]);
        let work = Some(3_000);
        let outcome = execute(&endless(), &three, Budget { work, ..Budget::default() }, 0);
        // The first share finds one plan of 105 bytes for each; the rest is shared.
        assert_eq!(heights(&outcome).next(), Some(315));
        assert!(outcome.height() < Some(Bytes::new(315)), "{:?}", outcome.height());
        assert!(outcome.work <= 3_300, "{}", outcome.work);
    }

    #[test]
    fn no_arena_waits_for_one_that_never_ends() {
        // Only the last plan ends this: there is no limit, and the planner never stops.
        let two = instance((0..2).map(|arena| buffer(5, 0, 1, arena)), &[None, None]);
        assert_eq!(result(&endless(), &two, None), (Stop::Proved, Some(10)));
    }

    #[test]
    fn bounds_add_up_with_their_evidence() {
        let two = instance(above_load(0).chain(above_load(1)), &[None, Some(21)]);
        let outcome = execute(&Exact, &two, Budget::default(), 0);
        assert_eq!((outcome.end.clone(), outcome.height()), (Ok(Stop::Proved), Some(Bytes::new(42))));
        assert!(outcome.bound_claim().evidence > planlab_dsa::Evidence::Load, "{:?}", outcome.bound_claim());
    }

    #[test]
    fn a_capacity_that_search_refutes_leaves_no_plan() {
        for capacities in [[None, Some(20)], [Some(20), None], [Some(20), Some(20)]] {
            let two = instance(above_load(0).chain(above_load(1)), &capacities);
            assert_eq!(result(&Exact, &two, None), (Stop::Infeasible, None), "{capacities:?}");
        }
    }

    #[test]
    fn the_target_is_one_for_all_arenas() {
        let two = instance(above_load(0).chain(above_load(1)), &[None, None]);
        let end = |target: u64| result(&Exact, &two, Some(target));
        assert_eq!(end(41).0, Stop::Infeasible);
        let met = end(42);
        assert!(matches!(met, (Stop::Proved | Stop::TargetReached, Some(42))), "{met:?}");
        assert_eq!(end(1_000).0, Stop::TargetReached);
    }

    #[test]
    fn hints_go_to_their_arenas() {
        let two = instance([buffer(4, 0, 2, 1), buffer(2, 0, 2, 0), buffer(4, 0, 2, 1)], &[None, Some(9)]);
        let hints = [4, 0, 0].map(|at| Some(Offset::new(at)));
        let budget = Budget { hints: Some(hints.into()), ..Budget::default() };
        let best = execute(&Exact, &two, budget, 0).best.expect("a plan");
        assert_eq!(best.offsets(), [4, 0, 0].map(Offset::new));
    }

    #[test]
    fn an_instance_of_empty_arenas_has_a_plan() {
        let none = instance([], &[Some(1), None]);
        assert_eq!(result(&Exact, &none, None), (Stop::Proved, Some(0)));
    }
}
