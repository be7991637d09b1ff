//! Tests the bound on the time of an iteration: against exact optima, and against schedules that refuted an earlier
//! bound.

use planlab_dsa::testing::is_deep_run;
use planlab_dsa::{Budget, Bytes, execute};
use planlab_graph::{
    FeatureMap, Function, FunctionKind, Machine, MapId, Schedule, ScheduleOutcome, SchedulingProblem, Times,
    TrainingNet, Verified, compute_bound, execute_scheduler,
};
use planlab_solvers::placement::Portfolio;
use planlab_solvers::schedule::{
    Class, Lab, Policy, Prefetch, find_scheduler, lp_bound, scheduler_keys, schedulers,
};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::contract::limit_search;
use super::golden;
use super::nets::{fixture, small_machine};
use super::references::optimum::optimum_below;

/// The nets whose optimum is found.
const NETS: u64 = 40;
/// The parts of the memory for everything in which the small nets are scheduled.
pub(super) const PERCENTS: [u64; 4] = [85, 75, 65, 55];
/// Tolerance for sums of seconds in another order.
pub(super) const SAME: f64 = 1e-9;

/// The kinds of random nets.
#[derive(Clone, Copy)]
enum Shape {
    Chain,
    /// A chain in which functions also read older maps.
    Skips,
    /// Functions read any earlier maps; several outputs are losses.
    Graph,
}

/// A net of 4 to `most` maps with whole times, some 0.
pub(super) fn random_problem(seed: u64, most: usize) -> SchedulingProblem {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let shape = [Shape::Chain, Shape::Skips, Shape::Graph][rng.random_range(0..3)];
    let count = rng.random_range(4..=most);
    let map = |bytes| FeatureMap { name: String::new(), bytes: Bytes::new(bytes) };
    let mut maps: Vec<_> =
        (0..=usize::from(rng.random_bool(0.2))).map(|_| map(rng.random_range(1..5))).collect();
    let mut uses = vec![0; count];
    let mut functions = Vec::new();
    while maps.len() < count {
        let (function, bytes) = random_function(&mut rng, shape, &maps, &mut uses);
        maps.push(map(bytes));
        functions.push(function);
    }
    let net = TrainingNet::new("small", 1, 0, maps, functions).expect("a net");
    let times = |rng: &mut ChaCha8Rng, most: u32, count| -> Vec<f64> {
        (0..count).map(|_| f64::from(rng.random_range(0..=most))).collect()
    };
    let count = net.functions().len();
    let (forward, backward) = (times(&mut rng, 6, count), times(&mut rng, 8, count));
    let sums = times(&mut rng, 3, net.maps().len());
    let times = Times::new(&net, forward, backward, sums).expect("times");
    let mut rate = || 1.0 / [1e-12, 1.0, 2.0, 4.0, 8.0][rng.random_range(0..5)];
    let (copy_out, copy_in) = (rate(), rate());
    let machine = Machine { copy_out, copy_in, launch: 0.0, workspace: Bytes::ZERO, ..small_machine() };
    SchedulingProblem::new(net, machine).with_times(times)
}

/// The most uses of a map: the search numbers all sums of the parts of its gradient.
const USES: usize = 4;

/// Additions have up to three inputs, equal ones too, and maps that a backward pass would need.
fn random_function(
    rng: &mut ChaCha8Rng,
    shape: Shape,
    maps: &[FeatureMap],
    uses: &mut [usize],
) -> (Function, u64) {
    let newest = maps.len() - 1;
    let mut inputs = match shape {
        Shape::Chain | Shape::Skips => vec![newest],
        Shape::Graph => vec![rng.random_range(0..=newest)],
    };
    while !matches!(shape, Shape::Chain) && inputs.len() < 3 && rng.random_bool(0.5) {
        inputs.push(rng.random_range(0..=newest));
    }
    let bytes = |map: usize| maps[map].bytes.get();
    if rng.random_bool(0.5) {
        let first = bytes(inputs[0]);
        inputs.retain(|&map| bytes(map) == first);
    }
    let is_sum =
        inputs.len() > 1 && inputs.iter().all(|&map| bytes(map) == bytes(inputs[0])) && rng.random_bool(0.8);
    if !is_sum {
        inputs.sort_unstable();
        inputs.dedup();
    }
    inputs.retain(|&map| {
        uses[map] += 1;
        uses[map] <= USES
    });
    if inputs.is_empty() {
        inputs.push(newest);
        uses[newest] += 1;
    }
    let kind = if is_sum { FunctionKind::Add } else { FunctionKind::Other };
    let mut needs: Vec<usize> = inputs.iter().copied().chain([maps.len()]).collect();
    needs.retain(|_| rng.random_bool(if is_sum { 0.1 } else { 0.4 }));
    needs.dedup();
    let size = if is_sum { bytes(inputs[0]) } else { rng.random_range(1..5) };
    let ids = |maps: &[usize]| maps.iter().map(|&map| MapId::from_index(map)).collect();
    let output = MapId::from_index(maps.len());
    let function = Function { kind, inputs: ids(&inputs), output, needs: ids(&needs), ..Function::default() };
    (function, size)
}

/// The problem in a share of the memory that it takes if everything is kept.
pub(super) fn within(problem: &SchedulingProblem, percent: u64) -> SchedulingProblem {
    let lab = Lab::new(problem, Policy::Discard, Prefetch::AsRoomPermits);
    let most = lab.peak_bytes(&lab.all_in_class(Class::Keep)).get();
    problem.clone().with_capacity(Bytes::new(most * percent / 100))
}

/// The higher bound.
fn bound(problem: &SchedulingProblem) -> f64 {
    let compute = compute_bound(problem).seconds;
    lp_bound(problem).map_or(compute, |bound| bound.seconds.max(compute))
}

fn run(problem: &SchedulingProblem, key: &str) -> ScheduleOutcome {
    golden::run(problem, &find_scheduler(key).expect("a scheduler"))
}

/// The search would find a schedule below the bound. Each net has one of the capacities, and a bound that is only the time
/// of computing is searched for in one net of 40. A deep run searches all nets at all capacities.
#[test]
fn bound_of_small_nets_is_at_most_the_optimum() {
    let is_deep = is_deep_run();
    let (mut raised, mut searched) = (0, 0);
    for seed in 0..2000 {
        let problem = random_problem(seed, 6);
        for (place, percent) in PERCENTS.into_iter().enumerate() {
            let problem = within(&problem, percent);
            let least = bound(&problem);
            let is_raised = least > compute_bound(&problem).seconds;
            raised += u32::from(is_raised);
            let is_chosen = seed % 4 == place as u64 && (is_raised || seed % 40 < 4);
            if is_deep || is_chosen {
                searched += 1;
                let faster = optimum_below(&problem, least * (1.0 - SAME));
                assert_eq!(faster, None, "seed {seed} at {percent} %: below {least}");
            }
        }
    }
    println!("{raised} bounds above the time of computing; {searched} searched");
    assert!(raised > 400, "only {raised}");
}

/// The search notices a bound that is a fiftieth too high.
#[test]
fn bound_above_the_optimum_is_noticed() {
    let mut noticed = 0;
    for seed in 0..400 {
        let problem = random_problem(seed, 6);
        for problem in PERCENTS.map(|percent| within(&problem, percent)) {
            let Some(bound) = lp_bound(&problem) else { continue };
            noticed += u32::from(optimum_below(&problem, bound.seconds * 1.02).is_some());
        }
    }
    println!("{noticed} noticed");
    assert!(noticed > 0);
}

/// Map 0 is an input, each other map is made from these maps. Every pass takes 1 second. Backward passes read only
/// gradients.
pub(super) fn problem_of(
    inputs: &[&[usize]],
    bytes: &[u64],
    sums: &[f64],
    capacity: u64,
) -> SchedulingProblem {
    let maps = bytes.iter().map(|&bytes| FeatureMap { name: String::new(), bytes: Bytes::new(bytes) });
    let function = |(index, inputs): (usize, &&[usize])| Function {
        kind: if inputs.len() > 1 { FunctionKind::Add } else { FunctionKind::Other },
        inputs: inputs.iter().map(|&map| MapId::from_index(map)).collect(),
        output: MapId::from_index(index + 1),
        ..Function::default()
    };
    let functions: Vec<_> = inputs.iter().enumerate().map(function).collect();
    let ones = vec![1.0; functions.len()];
    let net = TrainingNet::new("by hand", 1, 0, maps.collect(), functions).expect("a net");
    let times = Times::new(&net, ones.clone(), ones, sums.to_vec()).expect("times");
    let machine = refuter("equal_parts", 1.0, capacity).machine;
    SchedulingProblem::new(net, machine).with_times(times)
}

/// p goes to x and y, y's pass makes q of it, and x has p + q: p is gone when x's pass writes the 12 bytes.
#[test]
fn gradient_that_sums_have_absorbed_is_freed() {
    let residual: [&[usize]; 5] = [&[0], &[1], &[2], &[2, 3], &[4]];
    let bytes = [1, 12, 4, 4, 4, 1];
    let least = |capacity| optimum_below(&problem_of(&residual, &bytes, &[1.0; 6], capacity), f64::INFINITY);
    // 5 functions and 4 backward passes, and a sum.
    assert_eq!((least(16), least(15)), (Some(10), None));
}

#[test]
fn optimum_reads_a_value_twice_and_sums_for_any_map() {
    let problem = refuter("equal_parts", 1.0, 1_000_000);
    assert_eq!(optimum_below(&problem, f64::INFINITY), Some(27));
    // p + p + q, and p + q to share: q may be added to p + p, or p to p + q.
    let shared: [&[usize]; 5] = [&[0], &[1, 1], &[2], &[1], &[4]];
    let least = |capacity| optimum_below(&problem_of(&shared, &[4; 6], &[1.0; 6], capacity), f64::INFINITY);
    assert_eq!(least(1000), Some(11));
    // The two gradients of x and of the input are the same sum, which takes no time for the input.
    let inputs: [&[usize]; 6] = [&[0], &[0, 1], &[2], &[0, 1], &[4], &[5]];
    let problem = problem_of(&inputs, &[4; 7], &[0.0, 9.0, 9.0, 9.0, 9.0, 9.0, 9.0], 1000);
    assert_eq!(optimum_below(&problem, f64::INFINITY), Some(10));
}

/// The other side: valid schedules do not beat the search, and some equal it. One search is enough for the schedules of a
/// net.
#[test]
fn schedules_of_small_nets_take_at_least_the_optimum() {
    let (mut tried, mut met) = (0, 0);
    for seed in 0..NETS {
        let problem = within(&random_problem(seed, 5), 85);
        let mut found = Vec::new();
        for scheduler in schedulers() {
            let key = scheduler.descriptor().key;
            let outcome = execute_scheduler(&scheduler, &problem, limit_search(&key, 5_000), 0);
            assert!(outcome.end.is_ok(), "seed {seed}, {key}: {:?}", outcome.end);
            found.extend(outcome.best.map(|best| (best.seconds(), key)));
        }
        found.sort_by(|one, other| one.0.total_cmp(&other.0));
        let Some((fastest, key)) = found.first() else { continue };
        let least = optimum_below(&problem, fastest * (1.0 + SAME) + SAME);
        let least = least.unwrap_or_else(|| panic!("seed {seed}, {key}: {fastest} s is too fast"));
        tried += found.len();
        met += found.iter().filter(|(seconds, _)| f64::from(least) >= seconds * (1.0 - SAME)).count();
    }
    println!("{met} of {tried} schedules are optimal");
    assert!(met > 50, "only {met}");
}

/// A net on a machine with this link.
fn refuter(name: &str, link: f64, capacity: u64) -> SchedulingProblem {
    let machine = Machine {
        flops: 1e12,
        memory: 1e12,
        launch: 1e-6,
        capacity: Bytes::new(capacity),
        workspace: Bytes::ZERO,
        ..small_machine().with_link(link)
    };
    let text = fixture(&format!("refuters/{name}.jsonl.zst"));
    SchedulingProblem::read_jsonl(name, &text, Some(machine)).expect("a problem")
}

/// Schedules that keep maps which no backward pass reads, run backward passes before forward passes, or read one value
/// twice in a sum. Earlier bounds were above their times.
#[test]
fn schedules_of_all_kinds_are_above_the_bound() {
    for (name, link, capacity, seconds) in [
        ("inter2", 1e6, 150_000_000, "1.831000"),
        ("trickD3", 1.0, 240_000_000_003, "0.858000"),
        ("rnd_dag_1", 5e9, 150_000_000, "0.075000"),
        ("rt_growing24", 1e6, 187_000_000, "1.462000"),
        ("equal_parts", 1.0, 1_000_000, "27.000000"),
        ("shared_sums", 1.0, 25_010_010, "2100.006000"),
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
            let key = scheduler.descriptor().key;
            let outcome = execute_scheduler(&scheduler, &problem, limit_search(&key, 30_000), 0);
            assert!(!outcome.bound.is_refuted_by(found.seconds()), "{name}, {key}: a false bound");
            let Some(gap) = outcome.best_gap() else { continue };
            let slower = outcome.best.is_some_and(|best| best.seconds() > found.seconds() * (1.0 + SAME));
            assert!(
                gap >= 0.0 && !(slower && gap == 0.0),
                "{name}, {key}: no gap, but there is a faster one"
            );
        }
    }
}

/// Whether the portfolio finds offsets inside the capacity.
fn can_be_placed(problem: &SchedulingProblem, schedule: &Verified) -> bool {
    let room = Bytes::new(problem.capacity.get() - schedule.schedule().base.get());
    let budget = Budget { target: Some(room), work: Some(500_000), ..Budget::default() };
    let instance = schedule.placement_problem().expect("few bytes");
    execute(&Portfolio, &instance, budget, 0).height().is_some_and(|height| height <= room)
}

/// The beginnings of the keys of schedulers that choose among other schedules than one class for each map.
const OTHER_CHOICES: [&str; 12] = [
    "pooch/discard/for-power9",
    "capuchin",
    "checkmate",
    "coop",
    "dtr",
    "exact",
    "moccasin",
    "offmate",
    "pofo",
    "pytorch/",
    "revolve",
    "rotor",
];

/// What other schedulers for this machine offer counts if it can be placed. The joint search is no slower than any, and the
/// search over classes no slower than any that has no more choices than it.
#[test]
fn searches_are_no_slower_than_other_schedulers() {
    for (name, link, capacity) in [
        ("trickA", 1e7, 120_000_000),
        ("trickA", 1e7, 130_000_000),
        ("trickA", 1e7, 180_500_000),
        ("trickD3", 1.0, 240_000_000_003),
        ("rt_growing24", 1e6, 187_000_000),
        ("rt_growing24", 1e6, 300_000_000),
    ] {
        let problem = refuter(name, link, capacity);
        let seconds = |key: &str| run(&problem, key).best.map_or(f64::INFINITY, |best| best.seconds());
        let [joint, local] = ["joint", "local-search"].map(seconds);
        println!("{name} in {capacity}: joint {joint:.6}, local-search {local:.6}");
        assert!(joint <= local * (1.0 + SAME), "{name} in {capacity}: local-search is faster");
        for key in scheduler_keys().iter().filter(|key| !["local-search", "joint"].contains(&&key[..])) {
            let Some(other) = run(&problem, key).best.filter(|best| can_be_placed(&problem, best)) else {
                continue;
            };
            println!("{name} in {capacity}: {key} {:.6}", other.seconds());
            let other = other.seconds() * (1.0 + SAME);
            assert!(joint <= other, "{name} in {capacity}: {key} is faster than the joint search");
            let decides_more = OTHER_CHOICES.iter().any(|start| key.starts_with(start));
            assert!(decides_more || local <= other, "{name} in {capacity}: {key} is faster");
        }
    }
}
