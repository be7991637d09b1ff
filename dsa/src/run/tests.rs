//! Runs of a planner that follows a test's script.

use std::sync::LazyLock;
use std::time::Duration;

use rand::RngExt;

use super::{Run, execute};
use crate::testing::{test_buffer, test_instance};
use crate::{
    Arena, ArenaId, Budget, BufferId, Bytes, Claim, Descriptor, Evidence, Feature, Halt, Honours, InPlace,
    Instance, Offset, Outcome, Plan, PlanError, Planner, Scope, Stop, Violation,
};

/// A planner that runs a script.
struct Scripted<F>(F, Honours);

impl<F: Fn(&mut Run<'_>) -> Result<(), Halt> + Send + Sync> Planner for Scripted<F> {
    fn descriptor(&self) -> Descriptor {
        Descriptor {
            key: "scripted".into(),
            summary: "does what the test says".into(),
            honours: self.1,
            reference: "",
            complexity: "",
            ..Descriptor::default()
        }
    }

    fn plan(&self, run: &mut Run<'_>) -> Result<(), Halt> {
        (self.0)(run)
    }
}

fn scripted<F: Fn(&mut Run<'_>) -> Result<(), Halt> + Send + Sync>(script: F) -> Scripted<F> {
    Scripted(script, Honours::default())
}

/// Three buffers of 4 bytes; the load is 8, and stacking two of them needs 12.
static INSTANCE: LazyLock<Instance> = LazyLock::new(|| test_instance(&[(4, 0, 2), (4, 1, 3), (4, 2, 4)]));

/// What a planner makes of these buffers without limits.
fn outcome_of(planner: &dyn Planner) -> Outcome<'static> {
    execute(planner, &INSTANCE, Budget::default(), 0)
}

fn plan(offsets: [u64; 3]) -> Plan {
    Plan::from_offsets(offsets.map(Offset::new))
}

#[test]
fn an_invalid_plan_is_an_error_and_keeps_the_incumbent() {
    let script = |run: &mut Run<'_>| {
        run.offer(plan([0, 4, 8]))?;
        run.offer(plan([0, 3, 0]))
    };
    let outcome = outcome_of(&scripted(script));
    assert!(matches!(outcome.end, Err(PlanError::Invalid(Violation::Overlap { .. }))));
    assert_eq!(outcome.height(), Some(Bytes::new(12)));
}

#[test]
fn a_bound_above_a_verified_height_fails_the_run() {
    let offer = |run: &mut Run<'_>| run.offer(plan([0, 4, 8]));
    let claim = |run: &mut Run<'_>| run.raise_bound(Bytes::new(13), Scope::Any, Evidence::Claimed);
    for ended in [
        outcome_of(&scripted(|run| offer(run).and_then(|()| claim(run)))),
        outcome_of(&scripted(|run| claim(run).and_then(|()| offer(run)))),
    ] {
        assert!(matches!(ended.end, Err(PlanError::Refuted { .. })));
    }
}

/// Does this much work again and again, until the run is ended.
fn endless(work: u64) -> impl Planner {
    scripted(move |run| {
        loop {
            run.tick(work)?;
        }
    })
}

fn with_target(bytes: u64) -> Budget {
    Budget { target: Some(Bytes::new(bytes)), ..Budget::default() }
}

#[test]
fn limits_end_a_run_that_would_not_end() {
    let endless = endless(1);
    let wall = Budget { wall: Some(Duration::from_millis(5)), ..Budget::default() };
    assert_eq!(execute(&endless, &INSTANCE, wall, 0).end, Ok(Stop::Deadline));
    let work = Budget { work: Some(1000), ..Budget::default() };
    let outcome = execute(&endless, &INSTANCE, work, 0);
    assert_eq!((outcome.end, outcome.work), (Ok(Stop::WorkLimit), 1000));
    let cancelled = Budget::default();
    cancelled.cancel.cancel();
    assert_eq!(execute(&endless, &INSTANCE, cancelled, 0).end, Ok(Stop::Cancelled));
}

#[test]
fn targets_are_reached_or_proved_out_of_reach() {
    let high = scripted(|run| {
        run.offer(plan([0, 4, 8]))?;
        run.offer(plan([0, 4, 0]))
    });
    let outcome = execute(&high, &INSTANCE, with_target(12), 0);
    assert_eq!((outcome.end.clone(), outcome.height()), (Ok(Stop::TargetReached), Some(Bytes::new(12))));
    assert_eq!(execute(&high, &INSTANCE, with_target(7), 0).end, Ok(Stop::Infeasible));
}

#[test]
fn a_target_below_a_proven_bound_is_out_of_reach_whatever_the_scope() {
    let proof = scripted(|run| {
        run.offer(plan([0, 4, 8]))?;
        run.raise_bound(Bytes::new(12), Scope::NoHandOver, Evidence::Search)
    });
    assert_eq!(execute(&proof, &INSTANCE, with_target(11), 0).end, Ok(Stop::Infeasible));
    let proof_first = scripted(|run| {
        run.raise_bound(Bytes::new(9), Scope::NoHandOver, Evidence::Search)?;
        run.offer(plan([0, 4, 8]))
    });
    assert_eq!(execute(&proof_first, &INSTANCE, with_target(8), 0).end, Ok(Stop::Infeasible));
}

#[test]
fn an_arena_that_cannot_keep_its_capacity_leaves_no_plan() {
    let arena = Arena { name: String::new(), capacity: Some(Bytes::new(11)) };
    let buffers = INSTANCE.buffers().to_vec();
    let instance = Instance::builder().buffers(buffers).arenas([arena]).build().expect("valid");
    let claim = |value, evidence| Claim { value: Bytes::new(value), evidence };
    let honours = Honours { arenas: true, ..Honours::default() };
    let end = |offers: bool, bound: Claim| {
        let script = move |run: &mut Run<'_>| {
            if offers {
                run.offer(plan([0, 5, 1]))?;
            }
            run.raise_arena_bound(ArenaId::default(), bound)
        };
        execute(&Scripted(script, honours), &instance, Budget::default(), 0).end
    };
    assert_eq!(end(false, claim(12, Evidence::Search)), Ok(Stop::Infeasible));
    assert_eq!(end(false, claim(11, Evidence::Search)), Ok(Stop::Finished));
    assert_eq!(end(false, claim(12, Evidence::Claimed)), Ok(Stop::Finished));
    let refuted = end(true, claim(12, Evidence::Search));
    assert!(matches!(refuted, Err(PlanError::Refuted { .. })), "{refuted:?}");
}

#[test]
fn what_is_left_of_the_work_is_told() {
    let script = scripted(|run| {
        assert_eq!(run.remaining_work(), Some(1000));
        run.tick(400)?;
        assert_eq!((run.remaining_work(), run.fork().remaining_work()), (Some(600), Some(600)));
        assert!(!run.cancel_token().is_cancelled());
        Ok(())
    });
    let budget = Budget { work: Some(1000), ..Budget::default() };
    assert_eq!(execute(&script, &INSTANCE, budget, 0).end, Ok(Stop::Finished));
}

#[test]
fn a_demand_that_is_not_honoured_is_unsupported() {
    let pinned = test_buffer(4, 0, 1).with_pin(Offset::new(4));
    let instance = Instance::from_buffers(vec![pinned]).expect("valid");
    let outcome = execute(&scripted(|_| Ok(())), &instance, Budget::default(), 0);
    assert_eq!(outcome.end, Err(PlanError::Unsupported(Feature::Pins)));
}

#[test]
fn a_plan_is_proved_by_the_bound_on_any_plan_alone() {
    let permission = InPlace { input: BufferId::new(0), output: BufferId::new(1) };
    let instance = Instance::builder()
        .buffers([test_buffer(4, 0, 2), test_buffer(4, 1, 3)])
        .in_place([permission])
        .build()
        .expect("valid");
    let script = |run: &mut Run<'_>| {
        run.offer(Plan::from_offsets([0, 4].map(Offset::new)))?;
        let offsets = [0, 0].map(Offset::new).to_vec();
        run.offer(Plan { offsets, in_place: vec![permission] })
    };
    let honours = Honours { in_place: true, ..Honours::default() };
    let outcome = execute(&Scripted(script, honours), &instance, Budget::default(), 0);
    assert_eq!((outcome.end.clone(), outcome.height()), (Ok(Stop::Proved), Some(Bytes::new(4))));
    assert!(outcome.is_optimal());
    let without = execute(&scripted(script), &instance, Budget::default(), 0);
    // The lowest plan without hand-overs: nothing is left to do, but a lower plan exists.
    assert_eq!((without.end.clone(), without.height()), (Ok(Stop::Finished), Some(Bytes::new(8))));
    assert_eq!((without.bound_claim().value, without.is_optimal()), (Bytes::new(4), false));
}

#[test]
fn hints_are_there_where_every_buffer_has_an_entry() {
    let hinted = |count: usize| {
        let hints: Vec<_> = (0..).map(|at| Some(Offset::new(at))).take(count).collect();
        let script = move |run: &mut Run<'_>| {
            assert_eq!(run.hints().map(<[_]>::len), (count == 3).then_some(3));
            let fork = run.fork();
            assert_eq!(run.hints(), fork.hints());
            Ok(())
        };
        let budget = Budget { hints: Some(hints.into()), ..Budget::default() };
        execute(&scripted(script), &INSTANCE, budget, 0).end
    };
    for count in 0..5 {
        assert_eq!(hinted(count), Ok(Stop::Finished));
    }
}

#[test]
fn forks_share_the_incumbent_and_draw_other_numbers() {
    let script = scripted(|run| {
        let mut fork = run.fork();
        assert_ne!(fork.rng().random::<u64>(), run.rng().random::<u64>());
        fork.offer(plan([0, 4, 8]))?;
        assert_eq!(run.best_plan()?.map(|best| best.height()), Some(Bytes::new(12)));
        Ok(())
    });
    assert_eq!(execute(&script, &INSTANCE, Budget::default(), 7).end, Ok(Stop::Finished));
}

/// Like [`scripted`], but counts its work.
fn working<F: Fn(&mut Run<'_>) -> Result<(), Halt> + Send + Sync>(script: F) -> Scripted<F> {
    Scripted(script, Honours { work_limit: true, ..Honours::default() })
}

/// `count` plans, each a byte lower than the last; the load is 8.
fn offer_many(run: &mut Run<'_>, count: u64) -> Result<(), Halt> {
    (0..count).rev().try_for_each(|above| run.offer(plan([0, 4, 9 + above])))
}

fn heights(outcome: &Outcome<'_>) -> Vec<u64> {
    let mut heights: Vec<u64> =
        outcome.trajectory.iter().filter_map(|mark| mark.height).map(Bytes::get).collect();
    heights.dedup();
    heights
}

#[test]
fn plans_that_come_quickly_wait_for_the_verifier_and_the_lowest_is_kept() {
    let verified = |planner: &dyn Planner| {
        let outcome = outcome_of(planner);
        assert_eq!(outcome.height(), Some(Bytes::new(13)));
        heights(&outcome).len()
    };
    assert_eq!(
        verified(&working(|run| offer_many(run, 100))),
        17,
        "sixteen at once, the last one in the end"
    );
    assert_eq!(verified(&scripted(|run| offer_many(run, 100))), 100, "without units of work none waits");
}

#[test]
fn a_plan_that_waits_is_verified_once_the_work_is_worth_it() {
    let script = working(|run| {
        offer_many(run, 100)?;
        assert_eq!(run.height_to_beat(), Some(Bytes::new(13)));
        // Without a work limit, the clock is not read for less work.
        run.tick(super::state::WORK_PER_LOOK)?;
        run.tick(super::state::WORK_PER_LOOK)
    });
    let outcome = outcome_of(&script);
    let last_plan = outcome.trajectory.iter().find(|mark| mark.height == Some(Bytes::new(13)));
    assert_eq!(
        last_plan.map(|mark| mark.work),
        Some(super::state::WORK_PER_LOOK),
        "{:?}",
        outcome.trajectory
    );
}

#[test]
fn the_best_plan_never_waits() {
    let script = working(|run| {
        offer_many(run, 50)?;
        assert_eq!(run.best_plan()?.map(|best| best.height()), Some(Bytes::new(13)));
        Ok(())
    });
    assert_eq!(outcome_of(&script).end, Ok(Stop::Finished));
}

#[test]
fn a_wrong_plan_that_waited_is_found_out() {
    let script = |asks: bool| {
        working(move |run: &mut Run<'_>| {
            offer_many(run, 50)?;
            run.offer(plan([0, 1, 6]))?;
            if asks { run.best_plan().map(drop) } else { Ok(()) }
        })
    };
    for asks in [false, true] {
        let outcome = outcome_of(&script(asks));
        assert!(matches!(outcome.end, Err(PlanError::Invalid(_))), "{:?}", outcome.end);
        assert!(outcome.height() > Some(Bytes::new(12)), "{:?}", outcome.height());
    }
}

#[test]
fn time_comes_from_the_clock_of_the_budget() {
    let seconds = std::sync::atomic::AtomicU64::new(0);
    let read = move || Duration::from_secs(seconds.fetch_add(1, std::sync::atomic::Ordering::Relaxed));
    let wall = Some(Duration::from_secs(1_000));
    let budget = Budget { wall, clock: crate::Clock::new(read), ..Budget::default() };
    let outcome = execute(&endless(1_000), &INSTANCE, budget, 0);
    assert_eq!(outcome.end, Ok(Stop::Deadline));
    assert!((wall <= Some(outcome.elapsed)) && outcome.work < 1_001_000, "{outcome:?}");
}
