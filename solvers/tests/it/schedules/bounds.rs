//! Tests the bound on the time of an iteration: against exact optima, and against schedules that refuted an earlier
//! bound.

use planlab_dsa::Bytes;
use planlab_graph::{
    FeatureMap, Function, FunctionKind, Machine, MapId, Schedule, ScheduleBudget, ScheduleOutcome,
    SchedulingProblem, Times, TrainingNet, Verified, Work, compute_bound, execute_scheduler,
};
use planlab_solvers::schedule::{Class, Lab, Policy, Prefetch, lp_bound, scheduler, schedulers};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::nets::fixture;
use super::optimum::optimum_below;

/// The nets whose optimum is found.
const NETS: u64 = 40;
const QUICK: [&str; 11] = [
    "in-core",
    "swap-all/unscheduled",
    "swap-all",
    "swap-opt",
    "superneurons",
    "superneurons/retain",
    "checkpoints/chen",
    "checkpoints/memonger",
    "checkpoints/patent",
    "checkpoints/patent/scored",
    "checkpoints/patent/swap",
];
/// Tolerance for sums of seconds in another order.
const SAME: f64 = 1e-9;

/// The kinds of random nets.
#[derive(Clone, Copy)]
enum Shape {
    Chain,
    /// A chain in which functions also read older maps.
    Skips,
    /// Functions read any earlier maps; several outputs are losses.
    Graph,
}

/// A net of 4 to 6 maps with whole times.
fn random_problem(seed: u64, most: usize) -> SchedulingProblem {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let shape = [Shape::Chain, Shape::Skips, Shape::Graph][rng.random_range(0..3)];
    let count = rng.random_range(4..=most);
    let map = |bytes| FeatureMap { name: String::new(), bytes: Bytes::new(bytes) };
    let mut maps = vec![map(rng.random_range(1..5))];
    let mut functions = Vec::new();
    while maps.len() < count {
        let (function, bytes) = random_function(&mut rng, shape, &maps);
        maps.push(map(bytes));
        functions.push(function);
    }
    let net = TrainingNet::new("small", 1, 0, maps, functions).expect("a net");
    let times = |rng: &mut ChaCha8Rng, most: u32, count| -> Vec<f64> {
        (0..count).map(|_| f64::from(rng.random_range(1..=most))).collect()
    };
    let count = net.functions().len();
    let (forward, backward) = (times(&mut rng, 6, count), times(&mut rng, 8, count));
    let sums = times(&mut rng, 2, net.maps().len());
    let times = Times::new(&net, forward, backward, sums).expect("times");
    let machine = Machine {
        name: "small".to_owned(),
        copy_out: 1.0 / f64::from(rng.random_range(1..4)),
        copy_in: 1.0 / f64::from(rng.random_range(1..4)),
        flops: 1.0,
        memory: 1.0,
        launch: 0.0,
        capacity: Bytes::new(1 << 20),
        bytes_per_parameter: 0,
        large_batch_slowdown: 1.0,
        workspace: Bytes::ZERO,
    };
    SchedulingProblem::new(net, machine).with_times(times)
}

fn random_function(rng: &mut ChaCha8Rng, shape: Shape, maps: &[FeatureMap]) -> (Function, u64) {
    let newest = maps.len() - 1;
    let mut inputs = match shape {
        Shape::Chain | Shape::Skips => vec![newest],
        Shape::Graph => vec![rng.random_range(0..=newest)],
    };
    let other = rng.random_range(0..=newest);
    if !matches!(shape, Shape::Chain) && rng.random_bool(0.5) && !inputs.contains(&other) {
        inputs.push(other);
    }
    let bytes = |map: usize| maps[map].bytes.get();
    let is_sum = inputs.len() == 2 && bytes(inputs[0]) == bytes(inputs[1]) && rng.random_bool(0.7);
    let kind = if is_sum { FunctionKind::Add } else { FunctionKind::Other };
    let mut needs: Vec<usize> = inputs.iter().copied().chain([maps.len()]).collect();
    needs.retain(|_| !is_sum && rng.random_bool(0.4));
    let size = if is_sum { bytes(inputs[0]) } else { rng.random_range(1..5) };
    let ids = |maps: &[usize]| maps.iter().map(|&map| MapId::from_index(map)).collect();
    let function = Function {
        name: String::new(),
        kind,
        inputs: ids(&inputs),
        output: MapId::from_index(maps.len()),
        needs: ids(&needs),
        forward: Work::default(),
        backward: Work::default(),
    };
    (function, size)
}

/// The problem in a share of the memory that it takes if everything is kept.
fn within(problem: &SchedulingProblem, percent: u64) -> SchedulingProblem {
    let lab = Lab::new(problem, Policy::Discard, Prefetch::AsRoomPermits);
    let most = lab.peak(&lab.all(Class::Keep)).get();
    problem.clone().with_capacity(Bytes::new(most * percent / 100))
}

/// The higher bound.
fn bound(problem: &SchedulingProblem) -> f64 {
    let compute = compute_bound(problem).seconds;
    lp_bound(problem).map_or(compute, |bound| bound.seconds.max(compute))
}

fn run(problem: &SchedulingProblem, key: &str) -> ScheduleOutcome {
    let scheduler = scheduler(key).expect("a scheduler");
    let outcome = execute_scheduler(&scheduler, problem, ScheduleBudget::default(), 0);
    assert!(outcome.end.is_ok(), "{key}: {:?}", outcome.end);
    outcome
}

/// The search would find a schedule below the bound. A bound that is only the time of computing is searched for in one net
/// of 40, or in all nets if the environment contains `PLANLAB_TEST_DEEP`.
#[test]
fn bound_of_small_nets_is_at_most_the_optimum() {
    let every = if std::env::var_os("PLANLAB_TEST_DEEP").is_some() { 1 } else { 40 };
    let mut raised = 0;
    for seed in 0..2000 {
        let problem = random_problem(seed, 6);
        for percent in [95, 85, 75, 65] {
            let problem = within(&problem, percent);
            let least = bound(&problem);
            let is_raised = least > compute_bound(&problem).seconds;
            raised += u32::from(is_raised);
            if is_raised || seed % every == 0 {
                let faster = optimum_below(&problem, least * (1.0 - SAME));
                assert_eq!(faster, None, "seed {seed} at {percent} %: below {least}");
            }
        }
    }
    println!("{raised} bounds above the time of computing");
    assert!(raised > 40, "only {raised}");
}

/// The other side: valid schedules do not beat the search, and some equal it.
#[test]
fn schedules_of_small_nets_take_at_least_the_optimum() {
    let (mut tried, mut met) = (0, 0);
    for seed in 0..NETS {
        let problem = within(&random_problem(seed, 5), 85);
        for scheduler in schedulers() {
            let outcome = execute_scheduler(&scheduler, &problem, ScheduleBudget::default(), 0);
            let key = scheduler.descriptor().key;
            assert!(outcome.end.is_ok(), "seed {seed}, {key}: {:?}", outcome.end);
            let Some(found) = outcome.best else { continue };
            let faster = optimum_below(&problem, found.seconds() * (1.0 + SAME) + SAME);
            let best =
                faster.unwrap_or_else(|| panic!("seed {seed}, {key}: {} is too fast", found.seconds()));
            tried += 1;
            met += u32::from(f64::from(best) >= found.seconds() * (1.0 - SAME));
        }
    }
    println!("{met} of {tried} schedules are optimal");
    assert!(met > 50, "only {met}");
}

/// A net whose file has the times, on a machine with this link.
fn refuter(name: &str, link: f64, capacity: u64) -> SchedulingProblem {
    let machine = Machine::built_in("x86-pcie3").expect("built in").with_link(link);
    let machine = Machine { bytes_per_parameter: 0, workspace: Bytes::ZERO, ..machine };
    let text = fixture(&format!("refuters/{name}.jsonl.zst"));
    let problem = SchedulingProblem::read_jsonl(name, &text, Some(machine)).expect("a problem");
    problem.with_capacity(Bytes::new(capacity))
}

/// Schedules that keep maps which no backward pass reads, or run backward passes before forward passes. An earlier
/// bound was above their times.
#[test]
fn schedules_of_all_kinds_are_above_the_bound() {
    for (name, link, capacity, seconds) in [
        ("inter2", 1e6, 150_000_000, "1.831000"),
        ("trickD3", 1.0, 240_000_000_003, "0.858000"),
        ("rnd_dag_1", 5e9, 150_000_000, "0.075000"),
        ("rt_growing24", 1e6, 187_000_000, "1.462000"),
    ] {
        let problem = refuter(name, link, capacity);
        let text = fixture(&format!("refuters/{name}-schedule.jsonl.zst"));
        let schedule = Schedule::read_jsonl(name, &text).expect("a schedule");
        let found = Verified::new(&problem, schedule).expect("valid");
        assert_eq!(format!("{:.6}", found.seconds()), seconds, "{name}");
        let least = bound(&problem);
        println!("{name}: {least:.6} s of {seconds}");
        assert!(least <= found.seconds() * (1.0 + SAME), "{name}: {least} above {seconds}");
        for scheduler in schedulers() {
            let outcome = execute_scheduler(&scheduler, &problem, ScheduleBudget::default(), 0);
            let Some(gap) = outcome.gap() else { continue };
            let slower = outcome.best.is_some_and(|best| best.seconds() > found.seconds() * (1.0 + SAME));
            let key = scheduler.descriptor().key;
            assert!(
                gap >= 0.0 && !(slower && gap == 0.0),
                "{name}, {key}: no gap, but there is a faster one"
            );
        }
    }
}

/// Local search starts from the best of what the quick schedulers find.
#[test]
fn local_search_is_no_slower_than_quick_schedulers() {
    for (name, link, capacity) in [
        ("trickA", 1e7, 120_000_000),
        ("trickA", 1e7, 130_000_000),
        ("trickD3", 1.0, 240_000_000_003),
        ("rt_growing24", 1e6, 187_000_000),
        ("rt_growing24", 1e6, 300_000_000),
    ] {
        let problem = refuter(name, link, capacity);
        let found = run(&problem, "local-search").best.map_or(f64::INFINITY, |best| best.seconds());
        for key in QUICK {
            let Some(quick) = run(&problem, key).best.filter(|best| best.height() <= problem.capacity) else {
                continue;
            };
            println!("{name} in {capacity}: {key} {:.6}, local-search {found:.6}", quick.seconds());
            assert!(found <= quick.seconds() * (1.0 + SAME), "{name} in {capacity}: {key} is faster");
        }
    }
}
