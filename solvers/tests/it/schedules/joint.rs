//! Tests the joint search on small nets: against other schedulers, and against exact optima.

use planlab_dsa::testing::is_deep_run;
use planlab_dsa::{Bytes, Stop};
use planlab_graph::{
    FeatureMap, Function, MapId, ScheduleBudget, SchedulingProblem, TrainingNet, execute_scheduler,
};
use planlab_solvers::schedule::{Joint, find_scheduler, scheduler_keys};

use super::bounds::{PERCENTS, SAME, random_problem, within};
use super::nets::small_machine;
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
