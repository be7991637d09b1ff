//! Tests searches of all schedules that end early: their bounds and schedules against optima by other programs.

use planlab_graph::{
    ScheduleBudget, ScheduleEvidence, ScheduleOutcome, SchedulingProblem, execute_scheduler,
};
use planlab_solvers::schedule::Exact;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use super::bounds::{PERCENTS, SAME, random_problem, within};
use super::chains::{COPY_SECONDS, random_chain};
use super::references::optimum::optimum_below;
use super::references::recomputation::least_recomputed_seconds;

/// The states after which searches end.
const STATES: [usize; 4] = [0, 10, 100, 1_000];

fn run_cut_off(problem: &SchedulingProblem) -> [ScheduleOutcome; 4] {
    STATES.map(|states| {
        let exact = Exact::default().with_states(states);
        let outcome = execute_scheduler(&exact, problem, ScheduleBudget::default(), 0);
        assert!(outcome.end.is_ok(), "{:?}", outcome.end);
        outcome
    })
}

/// The seconds of the schedule of a search; infinite without one.
fn seconds_of(outcome: &ScheduleOutcome) -> f64 {
    outcome.best.as_ref().map_or(f64::INFINITY, |best| best.seconds())
}

/// Checks bounds and schedules. Returns the number of bounds that come from the search.
fn check_against_optimum(outcomes: &[ScheduleOutcome; 4], least: f64, what: &str) -> usize {
    for (outcome, states) in outcomes.iter().zip(STATES) {
        let bound = outcome.bound;
        assert!(!bound.is_refuted_by(least), "{what}, {states} states: {bound:?}, {least} s are possible");
        let seconds = seconds_of(outcome);
        assert!(seconds >= least * (1.0 - SAME), "{what}, {states} states: {seconds} s, at least {least} s");
    }
    outcomes.iter().filter(|outcome| outcome.bound.evidence == ScheduleEvidence::Search).count()
}

#[test]
fn search_of_a_small_net_that_is_cut_off_is_right() {
    let (mut fitting, mut searched) = (0, 0);
    for (seed, percent) in (0..100).zip(PERCENTS.into_iter().cycle()) {
        let problem = within(&random_problem(seed, 6), percent);
        let outcomes = run_cut_off(&problem);
        let fastest = outcomes.iter().map(seconds_of).fold(f64::INFINITY, f64::min);
        let Some(least) = optimum_below(&problem, fastest * (1.0 + SAME) + SAME) else {
            assert!(fastest.is_infinite(), "seed {seed}: {fastest} s is too fast");
            continue;
        };
        fitting += 1;
        searched += check_against_optimum(&outcomes, least.into(), &format!("seed {seed} at {percent} %"));
    }
    println!("{fitting} nets fit; {searched} bounds come from the search");
    assert!(fitting > 40 && searched > 10, "{fitting} nets fit; {searched} bounds come from the search");
}

#[test]
fn search_of_a_small_chain_that_is_cut_off_is_right() {
    let (mut fitting, mut searched) = (0, 0);
    for seed in 0..150 {
        let problem = random_chain(&mut ChaCha8Rng::seed_from_u64(seed));
        let outcomes = run_cut_off(&problem);
        let Some(least) = least_recomputed_seconds(&problem) else {
            let has_copy = |outcome: &ScheduleOutcome| seconds_of(outcome) >= COPY_SECONDS;
            assert!(outcomes.iter().all(has_copy), "seed {seed}");
            continue;
        };
        fitting += 1;
        searched += check_against_optimum(&outcomes, least, &format!("seed {seed}"));
    }
    println!("{fitting} chains fit; {searched} bounds come from the search");
    assert!(fitting > 30 && searched > 10, "{fitting} chains fit; {searched} bounds come from the search");
}
