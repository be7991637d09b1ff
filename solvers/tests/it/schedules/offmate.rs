//! Tests OffMate's program on small chains at several rates of the link against exact optima.

use planlab_dsa::Bytes;
use planlab_graph::{FeatureMap, Function, Machine, MapId, SchedulingProblem, Times, TrainingNet};
use planlab_solvers::schedule::find_scheduler;

use super::bounds::SAME;
use super::golden::run;
use super::nets::small_machine;
use super::references::optimum::optimum_below;

/// The seconds of a copy of a byte, with which no copy is worth its time.
const DEAD_LINK: f64 = 1024.0;

/// The bytes of the maps of chains, and capacities below what everything takes.
const CHAINS: [(&[u64], &[u64]); 5] = [
    (&[1; 5], &[4]),
    (&[1; 6], &[4, 5]),
    (&[1, 2, 1, 3, 1], &[7, 8]),
    (&[2, 1, 3, 2, 2, 1], &[10, 11]),
    (&[1, 3, 1, 2, 3, 1], &[8, 9, 10, 11]),
];

/// A chain whose forward passes take 1 to 3 seconds and whose backward passes take 1 or 2, and read the input of their
/// function.
fn chain_of(bytes: &[u64], copy_seconds: f64) -> SchedulingProblem {
    let map = |&bytes: &u64| FeatureMap { name: String::new(), bytes: Bytes::new(bytes) };
    let function = |index: usize| {
        let [input, output] = [index, index + 1].map(MapId::from_index);
        Function { inputs: vec![input], output, needs: vec![input], ..Function::default() }
    };
    let count = bytes.len() - 1;
    let functions = (0..count).map(function).collect();
    let net = TrainingNet::new("chain", 1, 0, bytes.iter().map(map).collect(), functions).expect("a net");
    let forward = [1.0, 2.0, 3.0].into_iter().cycle().take(count).collect();
    let backward = [2.0, 1.0].into_iter().cycle().take(count).collect();
    let times = Times::new(&net, forward, backward, vec![0.0; bytes.len()]).expect("times");
    let (copy_out, copy_in) = (1.0 / copy_seconds, 1.0 / copy_seconds);
    let machine = Machine { copy_out, copy_in, launch: 0.0, workspace: Bytes::ZERO, ..small_machine() };
    SchedulingProblem::new(net, machine).with_times(times)
}

/// The seconds of the schedule, and the optimum. Panics if the schedule takes less.
fn compare_to_optimum(problem: &SchedulingProblem, what: &str) -> (f64, f64) {
    let outcome = run(problem, &find_scheduler("offmate").expect("a scheduler"));
    let seconds = outcome.best.unwrap_or_else(|| panic!("{what}: {:?}", outcome.shortfall)).seconds();
    let least = optimum_below(problem, seconds * (1.0 + SAME) + SAME);
    (seconds, least.unwrap_or_else(|| panic!("{what}: {seconds} s is too fast")).into())
}

#[test]
fn schedules_of_small_chains_take_at_least_the_optimum() {
    let (mut tried, mut met) = (0, 0);
    for (bytes, capacities) in CHAINS {
        for copy_seconds in [1.0, 2.0, DEAD_LINK] {
            for &capacity in capacities {
                let problem = chain_of(bytes, copy_seconds).with_capacity(Bytes::new(capacity));
                let what = format!("{bytes:?} in {capacity}, {copy_seconds} s a byte");
                let (seconds, least) = compare_to_optimum(&problem, &what);
                let is_optimal = seconds <= least * (1.0 + SAME);
                // Without copies, the program has every schedule of a chain.
                assert!(is_optimal || copy_seconds < DEAD_LINK, "{what}: {seconds} s, not {least} s");
                tried += 1;
                met += u32::from(is_optimal);
            }
        }
    }
    println!("{met} of {tried} schedules are optimal");
    assert!(met * 2 > tried, "{met} of {tried} schedules are optimal");
}
