//! Tests the joint search on small nets: against other schedulers, and against exact optima.

use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use planlab_dsa::testing::is_deep_run;
use planlab_dsa::{Bytes, Clock, Stop};
use planlab_graph::{
    FeatureMap, Function, MapId, ScheduleBudget, SchedulingProblem, TrainingNet, execute_scheduler,
};
use planlab_solvers::schedule::{Joint, find_scheduler, scheduler_keys};

use super::bounds::{PERCENTS, SAME, random_problem, within};
use super::nets::{small_machine, unit_chain};
use super::references::optimum::optimum_below;

/// The nets that are scheduled, and those of a deep run.
const NETS: u64 = 120;
const DEEP_NETS: u64 = 2000;

/// Schedulers that place their buffers outside the capacity do not count. The optimum is one in bytes, so it may be below
/// what any offsets allow.
#[test]
fn joint_search_is_no_slower_than_others_on_small_nets() {
    let nets = if is_deep_run() { DEEP_NETS } else { NETS };
    let (mut found, mut optimal, mut missed) = (0, 0, 0);
    for seed in 0..nets {
        let problem = random_problem(seed, 6);
        let percent = PERCENTS[usize::try_from(seed).expect("few") % PERCENTS.len()];
        let problem = within(&problem, percent);
        let run = |key: &str| {
            let scheduler = find_scheduler(key).expect("a scheduler");
            execute_scheduler(&scheduler, &problem, ScheduleBudget::default(), seed)
        };
        let outcome = run("joint");
        assert!(outcome.end.is_ok(), "seed {seed}: {:?}", outcome.end);
        let seconds = outcome.best.as_ref().map_or(f64::INFINITY, |best| best.seconds());
        assert!(outcome.best.is_none_or(|best| best.height() <= problem.capacity), "seed {seed}");
        for key in scheduler_keys().iter().filter(|key| *key != "joint") {
            let other = run(key).best.filter(|best| best.height() <= problem.capacity);
            let other = other.map_or(f64::INFINITY, |best| best.seconds());
            assert!(seconds <= other * (1.0 + SAME), "seed {seed} at {percent} %: {key} is faster");
        }
        let below_bound = optimum_below(&problem, outcome.bound.seconds * (1.0 - SAME));
        assert_eq!(below_bound, None, "seed {seed} at {percent} %: a false bound");
        let faster = optimum_below(&problem, seconds * (1.0 - SAME));
        match (seconds.is_finite(), faster) {
            (true, None) => (found, optimal) = (found + 1, optimal + 1),
            (true, Some(_)) => found += 1,
            (false, Some(faster)) => {
                println!(
                    "seed {seed} at {percent} %: {faster} s are possible in bytes: {:?}",
                    outcome.shortfall
                );
                missed += 1;
            }
            (false, None) => {}
        }
    }
    println!(
        "{found} schedules, {optimal} of them optimal; {missed} nets have a schedule that was not found"
    );
    assert!(
        optimal * 50 >= found * 49 && missed * 25 <= nets,
        "{found} schedules, {optimal} of them optimal, {missed} missed"
    );
}

/// Without annealing the result is the best of the starts, which is no better.
#[test]
fn annealing_finds_faster_schedules() {
    let mut faster = 0;
    let large =
        (0..).map(|seed| random_problem(seed, 14)).filter(|problem| problem.net.functions().len() > 8);
    for (seed, problem) in (0..20).zip(large) {
        let problem = within(&problem, 75);
        let seconds = |rounds| {
            let joint = Joint::default().with_rounds(rounds);
            let outcome = execute_scheduler(&joint, &problem, ScheduleBudget::default(), seed);
            outcome.best.map_or(f64::INFINITY, |best| best.seconds())
        };
        let (start, end) = (seconds(0), seconds(3));
        assert!(end <= start, "seed {seed}: {end} after {start}");
        faster += u32::from(end < start);
    }
    assert!(faster > 3, "only {faster}");
}

/// The nets that are annealed on several threads, and those of a deep run.
const SHARED_NETS: usize = 5;
const DEEP_SHARED_NETS: usize = 100;

/// Threads try changes ahead, and only those that one thread would have tried may count. The nets are too large for a search
/// of all schedules, so that the annealing gets its share of the work.
#[test]
fn joint_search_is_the_same_on_any_number_of_threads() {
    let nets = if is_deep_run() { DEEP_SHARED_NETS } else { SHARED_NETS };
    let shares = (0..).zip(PERCENTS.into_iter().cycle());
    let large = shares.map(|(seed, percent)| within(&random_problem(seed, 40), percent));
    let large = large.filter(|problem| problem.net.functions().len() > 20).take(nets);
    let mut limited = 0;
    for (seed, problem) in (0..).zip([unit_chain(40, 12)].into_iter().chain(large)) {
        let run = |threads| {
            let threads = NonZeroUsize::new(threads);
            let budget = ScheduleBudget { work: Some(6_000), threads, ..ScheduleBudget::default() };
            let outcome = execute_scheduler(&Joint::default(), &problem, budget, seed);
            let marks = outcome.trajectory.iter().map(|mark| (mark.work, mark.seconds)).collect::<Vec<_>>();
            (outcome.best, outcome.end, outcome.work, outcome.shortfall, marks)
        };
        let alone = run(1);
        limited += usize::from(alone.1 == Ok(Stop::WorkLimit));
        for threads in [2, 3] {
            assert_eq!(run(threads), alone, "net {seed} on {threads} threads");
        }
    }
    assert!(limited * 2 > nets, "only {limited} of {nets} searches reach the annealing");
}

/// The clock counts its readings.
#[test]
fn joint_search_on_several_threads_ends_at_its_deadline() {
    let problem = unit_chain(60, 15);
    let seconds = AtomicU64::new(0);
    let clock = Clock::new(move || Duration::from_secs(seconds.fetch_add(1, Ordering::Relaxed)));
    let (wall, threads) = (Some(Duration::from_secs(4_000)), NonZeroUsize::new(3));
    let budget = ScheduleBudget { wall, clock, threads, ..ScheduleBudget::default() };
    let outcome = execute_scheduler(&Joint::default(), &problem, budget, 0);
    assert_eq!(outcome.end, Ok(Stop::Deadline));
    assert!(outcome.best.is_some_and(|best| best.height() <= problem.capacity));
}

/// A map without a second access has no fate to decide.
#[test]
fn nets_without_choices_are_scheduled() {
    let map = |name: &str| FeatureMap { name: name.to_owned(), bytes: Bytes::new(64) };
    let function =
        Function { inputs: vec![MapId::from_index(0)], output: MapId::from_index(1), ..Function::default() };
    let net = TrainingNet::new("one", 1, 0, vec![map("image"), map("out")], vec![function]).expect("a net");
    let problem = SchedulingProblem::new(net, small_machine());
    let base = problem.base().get();
    let run = |bytes| {
        let problem = problem.clone().with_capacity(Bytes::new(base + bytes));
        execute_scheduler(&Joint::default(), &problem, ScheduleBudget::default(), 0)
    };
    let (fits, short) = (run(200), run(100));
    assert_eq!(fits.end, Ok(Stop::Proved));
    assert!(short.best.is_none() && short.shortfall.is_some(), "{:?}", short.end);
    assert!(run(0).end.is_ok());
}
