//! Tests small chains on a machine whose link is too slow for copies: `rotor` against an exhaustive search, and the searches
//! of all schedules against both.

use planlab_dsa::Bytes;
use planlab_dsa::testing::is_deep_run;
use planlab_graph::{
    FeatureMap, Function, Machine, MapId, ScheduleBudget, ScheduleOutcome, SchedulingProblem, Times,
    TrainingNet, execute_scheduler,
};
use planlab_solvers::schedule::find_scheduler;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::bounds::{SAME, within};
use super::nets::small_machine;
use super::references::recomputation::least_recomputed_seconds;

/// The seconds of a copy of a byte.
pub(super) const COPY_SECONDS: f64 = 1024.0;

/// A chain of at most five functions that differ in time and memory. All backward passes read the input of their function,
/// some the output, too.
pub(super) fn random_chain(rng: &mut ChaCha8Rng) -> SchedulingProblem {
    let count = rng.random_range(2..=5);
    let map = |bytes| FeatureMap { name: String::new(), bytes: Bytes::new(bytes) };
    let maps = (0..=count).map(|_| map(rng.random_range(1..=4))).collect();
    let function = |index: usize| {
        let [input, output] = [index, index + 1].map(MapId::from_index);
        let needs = if rng.random_bool(0.5) { vec![input, output] } else { vec![input] };
        Function { inputs: vec![input], output, needs, ..Function::default() }
    };
    let functions = (0..count).map(function).collect();
    let net = TrainingNet::new("chain", 1, 0, maps, functions).expect("a net");
    let mut seconds = || -> Vec<f64> { (0..count).map(|_| f64::from(rng.random_range(1..=5_u8))).collect() };
    let times = Times::new(&net, seconds(), seconds(), vec![0.0; count + 1]).expect("times");
    let rate = 1.0 / COPY_SECONDS;
    let machine =
        Machine { copy_out: rate, copy_in: rate, launch: 0.0, workspace: Bytes::ZERO, ..small_machine() };
    let problem = SchedulingProblem::new(net, machine).with_times(times);
    within(&problem, rng.random_range(70..=100))
}

/// The seconds of a scheduler's schedule if its offsets fit; infinite without one.
fn seconds_that_fit(problem: &SchedulingProblem, outcome: &ScheduleOutcome) -> f64 {
    assert!(outcome.end.is_ok(), "{:?}", outcome.end);
    let best = outcome.best.as_ref().filter(|best| best.height() <= problem.capacity);
    best.map_or(f64::INFINITY, |best| best.seconds())
}

/// A scheduler's run in at most this much work.
fn run(problem: &SchedulingProblem, key: &str, work: Option<u64>) -> ScheduleOutcome {
    let scheduler = find_scheduler(key).expect("a scheduler");
    execute_scheduler(&scheduler, problem, ScheduleBudget { work, ..ScheduleBudget::default() }, 0)
}

/// Some chains have the joint search; in a deep run all of them, without a limit. The fastest iteration in bytes need not
/// have offsets that fit: `exact` may then be above the optimum, but its bound is the optimum.
#[test]
fn searches_are_no_slower_than_rotor_on_small_chains() {
    let (joint_every, joint_work) = if is_deep_run() { (1, None) } else { (5, Some(20_000)) };
    let (mut fitting, mut of_rotor, mut of_exact) = (0, 0, 0);
    for seed in 0..700 {
        let problem = random_chain(&mut ChaCha8Rng::seed_from_u64(seed));
        // If no schedule works without copies, the fastest has one, which takes longer than any schedule without.
        let recomputed = least_recomputed_seconds(&problem);
        let least = recomputed.unwrap_or(COPY_SECONDS);
        let exact = run(&problem, "exact", None);
        let [rotor_seconds, exact_seconds] =
            [&run(&problem, "rotor", None), &exact].map(|outcome| seconds_that_fit(&problem, outcome));
        let best = rotor_seconds.min(exact_seconds);
        assert!(best >= least * (1.0 - SAME), "seed {seed}: {best} below {least}");
        if recomputed.is_none() {
            continue;
        }
        let bound = exact.bound.seconds;
        assert!((bound - least).abs() <= SAME * least, "seed {seed}: a bound of {bound}, not {least}");
        if seed % joint_every == 0 {
            let joint_seconds = seconds_that_fit(&problem, &run(&problem, "joint", joint_work));
            assert!(joint_seconds >= least * (1.0 - SAME), "seed {seed}: {joint_seconds} below {least}");
            assert!(joint_seconds <= rotor_seconds * (1.0 + SAME), "seed {seed}: rotor is faster");
        }
        fitting += 1;
        of_rotor += u32::from(rotor_seconds <= least * (1.0 + SAME));
        of_exact += u32::from(exact_seconds <= least * (1.0 + SAME));
    }
    let what = format!("{fitting} chains fit; rotor finds the optimum of {of_rotor}, exact of {of_exact}");
    println!("{what}");
    assert!(fitting >= 200 && of_rotor * 3 >= fitting && of_exact * 5 >= fitting * 3, "{what}");
}
