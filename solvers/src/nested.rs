//! A run within a run: a planner on another instance that represents all or part of the outer one.
//!
//! The inner run gets a share of the outer run's remaining time and work, ends with it, and reports every plan and
//! bound as it is found. The caller converts them to the outer instance and passes them on. The outer run counts all
//! inner work, however the inner run ends. It counts it before each plan or bound is passed on, so that the outer
//! trajectory shows the work that each took.

use std::sync::Arc;
use std::time::Duration;

use planlab_dsa::{
    Bound, Budget, Bytes, Claim, Event, Halt, Instance, Offset, PlanError, Planner, Run, Scope, Stop,
    execute_observed,
};
use rand::RngExt;

/// The share of an inner run: its limits, its target and its hints.
#[derive(Clone, Debug, Default)]
pub(crate) struct Share {
    /// Wall time. Default: no limit.
    pub(crate) wall: Option<Duration>,
    /// Units of work. Default: no limit.
    pub(crate) work: Option<u64>,
    /// A height that is low enough, in bytes of the inner instance. Default: no target.
    pub(crate) target: Option<Bytes>,
    /// Hints for each buffer of the inner instance. Default: no hints.
    pub(crate) hints: Option<Arc<[Option<Offset>]>>,
}

impl Share {
    pub(crate) fn all_remaining(run: &Run<'_>) -> Self {
        Self { wall: run.remaining_time(), work: run.remaining_work(), ..Self::default() }
    }
}

/// How an inner run ended.
#[derive(Clone, Debug)]
pub(crate) struct Ended {
    pub(crate) end: Result<Stop, PlanError>,
    pub(crate) bound: Bound,
    /// Units of work; the outer run has counted them.
    pub(crate) work: u64,
}

/// Whether an inner run continues.
pub(crate) enum Then {
    GoOn,
    End,
}

/// Runs a planner on another instance. Passes each event of it, and the outer run, to `take`.
pub(crate) fn run_nested<'o>(
    run: &mut Run<'o>,
    planner: &dyn Planner,
    instance: &Instance,
    share: Share,
    mut take: impl FnMut(&mut Run<'o>, &Event<'_>) -> Result<Then, Halt> + Send,
) -> Result<Ended, Halt> {
    let seed = run.rng().random();
    let cancel = run.cancel_token().child_token();
    let Share { wall, work, target, hints } = share;
    let clock = run.clock().clone();
    let budget =
        Budget { wall, work, target, cancel: cancel.clone(), threads: Some(run.threads()), hints, clock };
    let (mut over, mut counted) = (None, 0_u64);
    let outer = &mut *run;
    let outcome = execute_observed(planner, instance, budget, seed, |event, work| {
        if over.is_some() {
            return;
        }
        outer.count_work(work.saturating_sub(counted));
        counted = counted.max(work);
        let taken = take(outer, &event);
        if !matches!(taken, Ok(Then::GoOn)) {
            cancel.cancel();
        }
        over = taken.err();
    });
    let (end, bound, work) = (outcome.end.clone(), outcome.bound, outcome.work);
    drop(outcome);
    run.count_work(work.saturating_sub(counted));
    match over {
        Some(halt) => Err(halt),
        None => Ok(Ended { end, bound, work: work.max(counted) }),
    }
}

/// Raises the bound of a run in both scopes.
pub(crate) fn raise_both(run: &mut Run<'_>, bound: Bound) -> Result<(), Halt> {
    for scope in [Scope::Any, Scope::NoHandOver] {
        let Claim { value, evidence } = bound.best_claim(scope);
        run.raise_bound(value, scope, evidence)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use planlab_dsa::{ArenaId, Evidence, Plan, execute};

    use super::*;
    use crate::placement::Scaled;
    use crate::placement::testing::{scripted_by_arena, test_arena, test_buffer};

    /// Units of work before the first event.
    const WORK: u64 = 1_000;

    /// Works for some time; then puts everything at the bottom, or states a bound.
    fn late(bound: Option<Bytes>) -> impl Planner {
        scripted_by_arena("late", move |run| {
            run.tick(WORK)?;
            match bound {
                Some(bound) => run.raise_bound(bound, Scope::Any, Evidence::Search),
                None => run.offer(Plan::from_offsets(vec![Offset::default(); run.instance().len()])),
            }
        })
    }

    /// Works before each of two plans; the second is lower.
    fn stepwise() -> impl Planner {
        scripted_by_arena("stepwise", |run| {
            for above in [1, 0] {
                run.tick(WORK)?;
                run.offer(Plan::from_offsets(vec![Offset::new(above); run.instance().len()]))?;
            }
            Ok(())
        })
    }

    /// A buffer of 5 bytes in each arena.
    fn instance(capacities: &[Option<u64>]) -> Instance {
        let buffer = |arena: u16| test_buffer(5, 0, 1).in_arena(ArenaId::new(arena));
        let count = u16::try_from(capacities.len()).expect("few");
        let builder = Instance::builder().buffers((0..count).map(buffer));
        builder.arenas(capacities.iter().copied().map(test_arena)).build().expect("valid")
    }

    fn end_and_work(planner: &dyn Planner, instance: &Instance, work: Option<u64>) -> (Stop, u64) {
        let outcome = execute(planner, instance, Budget { work, ..Budget::default() }, 0);
        (outcome.end.expect("no error"), outcome.work)
    }

    #[test]
    fn work_counts_where_an_inner_plan_decides() {
        for limit in [None, Some(1_000_000)] {
            let scaled = end_and_work(&Scaled::new(late(None)), &instance(&[None]), limit);
            assert_eq!(scaled, (Stop::Proved, WORK));
            let two = end_and_work(&late(None), &instance(&[None, None]), limit);
            assert_eq!(two, (Stop::Proved, 2 * WORK));
        }
    }

    #[test]
    fn work_counts_where_an_inner_bound_decides() {
        let bounded = late(Some(Bytes::new(9)));
        let capacity = instance(&[Some(8), None]);
        assert_eq!(end_and_work(&bounded, &capacity, None), (Stop::Infeasible, WORK));
    }

    #[test]
    fn the_trajectory_says_what_work_each_plan_took() {
        let one = instance(&[None]);
        let outcome = execute(&Scaled::new(stepwise()), &one, Budget::default(), 0);
        let planned = outcome.trajectory.iter().filter_map(|mark| Some((mark.height?, mark.work)));
        let mut planned: Vec<(Bytes, u64)> = planned.collect();
        planned.dedup();
        let works: Vec<u64> = planned.iter().map(|(_, work)| *work).collect();
        assert_eq!(works, [WORK, 2 * WORK], "{planned:?}");
        assert_eq!(outcome.work, 2 * WORK);
    }

    #[test]
    fn work_that_reaches_the_limit_ends_the_outer_run() {
        let limit = end_and_work(&Scaled::new(late(None)), &instance(&[None]), Some(WORK));
        assert_eq!(limit, (Stop::WorkLimit, WORK));
    }
}
