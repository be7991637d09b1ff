//! Tests of all registered schedulers: valid schedules within the capacity, stops, and repeatable results.

use std::time::Duration;

use planlab_dsa::testing::is_deep_run;
use planlab_dsa::{Bytes, CancelToken, Clock, Stop};
use planlab_graph::{
    Engine, ScheduleBound, ScheduleBudget, ScheduleError, ScheduleEvidence, ScheduleHalt, ScheduleRun,
    Scheduler, SchedulerDescriptor, SchedulingProblem, Verified, execute_scheduler, validate_schedule,
};
use planlab_solvers::schedule::{
    Class, InCore, Lab, Policy, Pooch, Prefetch, SwapAll, find_scheduler, schedulers,
};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::golden::run;
use super::nets::{random, resnet50_on, small_machine, unit_chain};
use super::references::slow;

fn small_problem(seed: u64) -> SchedulingProblem {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let problem = SchedulingProblem::new(random(&mut rng), small_machine());
    let lab = Lab::new(&problem, Policy::Discard, Prefetch::AsRoomPermits);
    let [least, most] =
        [Class::Swap, Class::Keep].map(|class| lab.peak_bytes(&lab.all_in_class(class)).get());
    let capacity = rng.random_range(least.min(most)..=most + 4);
    problem.clone().with_capacity(Bytes::new(capacity))
}

/// The problems among which a quick run shares out the schedulers.
const TURNS: usize = 3;

/// The schedulers for problem number `turn` of a test: all of them in a deep run, otherwise one of three, so that each
/// scheduler has every third problem.
pub(super) fn schedulers_in_turn(turn: usize) -> Vec<Box<dyn Scheduler>> {
    let has_turn = |index: usize| is_deep_run() || index % TURNS == turn % TURNS;
    let numbered = schedulers().into_iter().enumerate();
    numbered.filter(|&(index, _)| has_turn(index)).map(|(_, scheduler)| scheduler).collect()
}

/// A budget of this much work for searches that would go on for minutes. Without a limit in a deep run, and for all other
/// schedulers.
pub(super) fn limit_search(key: &str, work: u64) -> ScheduleBudget {
    let is_search = ["exact", "joint"].contains(&key);
    ScheduleBudget { work: (is_search && !is_deep_run()).then_some(work), ..ScheduleBudget::default() }
}

/// Checks a scheduler's result on a problem. Returns the schedule, if there is one.
pub(super) fn check(
    problem: &SchedulingProblem,
    scheduler: &dyn Scheduler,
    budget: ScheduleBudget,
) -> Option<Verified> {
    let key = scheduler.descriptor().key;
    let outcome = execute_scheduler(scheduler, problem, budget, 0);
    assert!(outcome.end.is_ok(), "{key}: {:?}", outcome.end);
    let Some(best) = &outcome.best else {
        let is_reason =
            |reason: String| ["out of memory", "too large"].iter().any(|why| reason.starts_with(why));
        assert!(outcome.shortfall.is_some_and(is_reason), "{key}");
        return None;
    };
    assert!(best.live_peak() <= problem.capacity && best.height() >= best.live_peak(), "{key}");
    assert!(best.seconds() >= outcome.bound.seconds * (1.0 - 1e-9), "{key}: below its bound");
    assert!(outcome.best_gap().is_some_and(|gap| gap >= 0.0), "{key}");
    let audited = validate_schedule(problem, best.schedule(), Some(best.height())).expect("valid");
    assert!((audited.seconds - best.seconds()).abs() < 1e-9 * best.seconds(), "{key}");
    outcome.best
}

#[test]
fn schedules_of_small_nets_are_right() {
    let (mut tried, mut found) = (0, 0);
    for (turn, seed) in (0..150).enumerate() {
        let problem = small_problem(seed);
        for scheduler in schedulers_in_turn(turn) {
            tried += 1;
            let searches = ["exact", "joint"].contains(&&*scheduler.descriptor().key);
            let budget = ScheduleBudget { work: searches.then_some(1_000), ..ScheduleBudget::default() };
            if let Some(best) = check(&problem, &scheduler, budget) {
                found += 1;
                slow::run(&problem, best.schedule(), 4096)
                    .unwrap_or_else(|reason| panic!("seed {seed}, {}: {reason}", scheduler.descriptor().key));
            }
        }
    }
    assert!(found * 6 > tried, "only {found} schedules in {tried} runs");
}

#[test]
fn schedules_of_resnet50_are_right() {
    let (mut tried, mut found) = (0, 0);
    let machines = ["x86-pcie3", "power9-nvlink2", "h100-pcie5"];
    let problems = machines.into_iter().flat_map(|machine| [256, 640].map(|batch| (machine, batch)));
    for (turn, (machine, batch)) in problems.enumerate() {
        let problem = resnet50_on(machine, batch);
        // The joint search would go on for minutes.
        let work = |key: &str| if key == "joint" { 2_000 } else { 12_000 };
        for scheduler in schedulers_in_turn(turn) {
            let work = Some(work(&scheduler.descriptor().key));
            let budget = ScheduleBudget { work, ..ScheduleBudget::default() };
            tried += 1;
            found += usize::from(check(&problem, &scheduler, budget).is_some());
        }
    }
    println!("{found} schedules in {tried} runs");
    assert!(found * 5 > tried, "only {found} schedules in {tried} runs");
}

#[test]
fn the_same_run_gives_the_same_schedule() {
    let problem = small_problem(3);
    for scheduler in schedulers() {
        let budget = || limit_search(&scheduler.descriptor().key, 5_000);
        let run = || execute_scheduler(&scheduler, &problem, budget(), 5);
        let (first, second) = (run(), run());
        assert_eq!((first.best, first.work), (second.best, second.work));
    }
}

#[test]
fn a_run_stops_when_it_is_told() {
    let problem = resnet50_on("x86-pcie3", 512);
    let pooch = Pooch::new(Policy::Discard);
    let end = |budget: ScheduleBudget| execute_scheduler(&pooch, &problem, budget, 0);
    let limited = end(ScheduleBudget { work: Some(200), ..ScheduleBudget::default() });
    assert_eq!(limited.end, Ok(Stop::WorkLimit));
    assert!(limited.best.is_some(), "the first step's schedule is kept");
    let cancel = CancelToken::default();
    cancel.cancel();
    assert_eq!(end(ScheduleBudget { cancel, ..ScheduleBudget::default() }).end, Ok(Stop::Cancelled));
    let seconds = std::sync::atomic::AtomicU64::new(0);
    let clock =
        Clock::new(move || Duration::from_secs(seconds.fetch_add(1, std::sync::atomic::Ordering::Relaxed)));
    let wall = Some(Duration::from_secs(9));
    let late = end(ScheduleBudget { wall, clock, ..ScheduleBudget::default() });
    assert_eq!((late.end, late.work), (Ok(Stop::Deadline), 8));
    let slow = end(ScheduleBudget { target: Some(1e3), ..ScheduleBudget::default() });
    assert_eq!(slow.end, Ok(Stop::TargetReached));
}

#[test]
fn what_hides_every_copy_is_proved_optimal() {
    let problem = resnet50_on("power9-nvlink2", 256);
    let outcome = run(&problem, &Pooch::new(Policy::Discard));
    assert_eq!(outcome.end, Ok(Stop::Proved));
    let in_time = outcome.best_gap().expect("a schedule");
    assert_eq!(in_time, 0.0);
    let best = outcome.best.expect("a schedule");
    assert!(!best.schedule().events_of(Engine::Out).is_empty());
    let swapped = run(&problem, &SwapAll::with_prefetch());
    assert!(swapped.best_gap().is_some_and(|gap| gap > 0.1));
}

/// Offers invalid results.
struct Liar(fn(&mut ScheduleRun<'_>) -> Result<(), ScheduleHalt>);

impl Scheduler for Liar {
    fn descriptor(&self) -> SchedulerDescriptor {
        SchedulerDescriptor { key: "liar".into(), ..SchedulerDescriptor::default() }
    }

    fn schedule(&self, run: &mut ScheduleRun<'_>) -> Result<(), ScheduleHalt> {
        (self.0)(run)
    }
}

#[test]
fn a_lie_is_an_error() {
    let problem = small_problem(1);
    let roomy = problem.clone().with_capacity(Bytes::new(1 << 20));
    let end = |problem: &SchedulingProblem, lie| {
        execute_scheduler(&Liar(lie), problem, ScheduleBudget::default(), 0).end
    };
    let too_large = end(&unit_chain(10, 5), |run| {
        let lab_problem = run.problem().clone().with_capacity(Bytes::new(1 << 20));
        let lab = Lab::new(&lab_problem, Policy::Discard, Prefetch::AsRoomPermits);
        run.offer(lab.draft_schedule(&lab.all_in_class(Class::Keep)).expect("there is room"))
    });
    assert!(matches!(too_large, Err(ScheduleError::Stuck(_))), "{too_large:?}");
    let wrong = end(&roomy, |run| {
        let lab = Lab::new(run.problem(), Policy::Discard, Prefetch::AsRoomPermits);
        let mut draft = lab.draft_schedule(&lab.all_in_class(Class::Keep)).expect("there is room");
        draft.events[0].last_mut().expect("one").seconds = 0.0;
        run.offer(draft)
    });
    assert!(matches!(wrong, Err(ScheduleError::Invalid(_))), "{wrong:?}");
    let refuted = end(&roomy, |run| {
        run.raise_bound(ScheduleBound { seconds: 1e9, evidence: ScheduleEvidence::Lp })?;
        InCore.schedule(run)
    });
    assert!(matches!(refuted, Err(ScheduleError::Refuted { .. })), "{refuted:?}");
    let fits = end(&roomy, |run| match InCore.schedule(run) {
        Err(ScheduleHalt::Error(error)) => Err(error.into()),
        Ok(()) | Err(ScheduleHalt::Stop(_)) => Err(run.claim_infeasible()),
    });
    assert_eq!(fits, Err(ScheduleError::Fits { capacity: roomy.capacity }));
    let unlimited = end(&roomy.with_capacity(Bytes::new(u64::MAX)), |run| Err(run.claim_infeasible()));
    assert_eq!(unlimited, Ok(Stop::Finished));
}

/// Simulates without an end.
fn simulate_endlessly(run: &mut ScheduleRun<'_>) -> Result<(), ScheduleHalt> {
    loop {
        run.tick(1)?;
    }
}

#[test]
fn consulted_scheduler_gets_a_part_of_what_is_left() {
    let problem = small_problem(1);
    let consult = Liar(|run| {
        for _ in 0..2 {
            let (found, end) = run.consult_scheduler_within(&Liar(simulate_endlessly), 10);
            assert!(found.is_empty());
            end?;
        }
        Ok(())
    });
    // 10 of 100, and the tick that ends them; then 9 of 89.
    let limited = ScheduleBudget { work: Some(100), ..ScheduleBudget::default() };
    let outcome = execute_scheduler(&consult, &problem, limited, 0);
    assert_eq!((outcome.end, outcome.work), (Ok(Stop::Finished), 21));
    let spent = ScheduleBudget { work: Some(10), ..ScheduleBudget::default() };
    let outcome = execute_scheduler(&Liar(simulate_endlessly), &problem, spent, 0);
    assert_eq!(outcome.end, Ok(Stop::WorkLimit));
    // The clock counts its readings: a tenth of a hundred seconds, then of the rest.
    let seconds = std::sync::atomic::AtomicU64::new(0);
    let clock =
        Clock::new(move || Duration::from_secs(seconds.fetch_add(1, std::sync::atomic::Ordering::Relaxed)));
    let timed = ScheduleBudget { wall: Some(Duration::from_secs(100)), clock, ..ScheduleBudget::default() };
    let outcome = execute_scheduler(&consult, &problem, timed, 0);
    assert_eq!(outcome.end, Ok(Stop::Finished));
    assert!((15..25).contains(&outcome.work), "{}", outcome.work);
}

/// Schedulers whose own loops take longer than a few simulations: a limit on work ends them.
#[test]
fn schedulers_with_tables_end_at_a_work_limit() {
    let problem = unit_chain(200, 30);
    for key in ["dtr", "coop", "rotor", "pofo"] {
        let scheduler = find_scheduler(key).expect("a scheduler");
        let within = |work| {
            execute_scheduler(&scheduler, &problem, ScheduleBudget { work, ..ScheduleBudget::default() }, 0)
        };
        let whole = within(None);
        assert!(whole.end.is_ok() && whole.work > 2, "{key}: {} units of work", whole.work);
        let half = within(Some(whole.work / 2));
        assert_eq!(half.end, Ok(Stop::WorkLimit), "{key}: {} units of work", whole.work);
        let at_once = within(Some(0));
        assert_eq!((at_once.end, at_once.best), (Ok(Stop::WorkLimit), None), "{key}");
        let reason = at_once.shortfall.expect("a reason");
        assert!(reason.starts_with("too large: the limit came"), "{key}: {reason}");
    }
}

/// A long chain in little memory: no start takes all of the work.
#[test]
fn joint_search_of_a_long_chain_ends_at_its_work_limit() {
    let problem = unit_chain(150, 30);
    let joint = find_scheduler("joint").expect("a scheduler");
    let limited = ScheduleBudget { work: Some(3_000), ..ScheduleBudget::default() };
    let outcome = execute_scheduler(&joint, &problem, limited, 0);
    assert_eq!(outcome.end, Ok(Stop::WorkLimit));
    let best = outcome.best.expect("a schedule");
    assert!(best.height() <= problem.capacity);
    assert!(best.seconds() >= outcome.bound.seconds * (1.0 - 1e-9));
}
