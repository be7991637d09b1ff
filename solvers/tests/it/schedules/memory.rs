//! Tests the bound on the memory of every schedule: against searches of all schedules, and what runs make of it.

use planlab_dsa::testing::is_deep_run;
use planlab_dsa::{Bytes, Stop};
use planlab_graph::{
    FunctionKind, Machine, MapId, MemoryBound, ScheduleBudget, ScheduleEvidence, SchedulingProblem, Task,
    Times, TrainingNet, bound_memory, execute_scheduler,
};
use planlab_solvers::schedule::{Exact, schedulers};

use super::bounds::{problem_of, random_problem};
use super::references::optimum::optimum_below;

/// The problem if its events take no time: only memory counts.
fn without_times(problem: SchedulingProblem) -> SchedulingProblem {
    let (functions, maps) = (problem.net.functions().len(), problem.net.maps().len());
    let zeros = |count: usize| vec![0.0; count];
    let times =
        Times::new(&problem.net, zeros(functions), zeros(functions), zeros(maps)).expect("times of 0 s");
    let machine = Machine { copy_out: 1e12, copy_in: 1e12, ..problem.machine.clone() };
    SchedulingProblem { machine, times, ..problem }
}

/// Whether some schedule takes at most this many bytes.
fn fits_within(problem: &SchedulingProblem, bytes: u64) -> bool {
    optimum_below(&problem.clone().with_capacity(Bytes::new(bytes)), f64::INFINITY).is_some()
}

/// Whether some map has several readers, so that a gradient may wait.
fn has_shared_map(problem: &SchedulingProblem) -> bool {
    let net = &problem.net;
    let reads = |map: MapId| net.functions().iter().filter(|function| function.inputs.contains(&map)).count();
    net.map_ids().any(|map| net.has_gradient(map) && reads(map) > 1)
}

/// Whether the bound counts a gradient beside what a backward pass itself reads and writes.
fn counts_waiting_gradient(problem: &SchedulingProblem, bound: &MemoryBound) -> bool {
    let Some(Task::Backward(id)) = bound.task else { return false };
    let net = &problem.net;
    let function = net.function(id);
    let mut needs = function.needs.clone();
    needs.sort_unstable();
    needs.dedup();
    needs.extend(net.last_use(function.output).map(|_| function.output));
    needs.extend(function.inputs.iter().filter(|&&input| net.has_gradient(input)));
    let own: u64 = needs.iter().map(|&map| net.map(map).bytes.get()).sum();
    bound.bytes.get() > problem.base().get() + own
}

/// Most of these nets need no more than the bound.
#[test]
fn bound_on_memory_of_small_nets_is_at_most_the_optimum() {
    let (count, most) = if is_deep_run() { (300, 7) } else { (16, 6) };
    let shared = (0..).map(|seed| (seed, random_problem(seed, most))).filter(|(_, net)| has_shared_map(net));
    let (mut met, mut waiting) = (0, 0);
    for (seed, problem) in shared.take(count) {
        let problem = without_times(problem);
        let bound = bound_memory(&problem);
        let least = bound.bytes.get();
        assert!(!fits_within(&problem, least - 1), "seed {seed}: a schedule takes less than {least} bytes");
        met += usize::from(fits_within(&problem, least));
        waiting += usize::from(counts_waiting_gradient(&problem, &bound));
    }
    println!("{met} of {count} bounds are met; in {waiting}, a gradient waits");
    assert!(met * 2 > count && waiting * 20 > count, "{met} met, {waiting} waiting, of {count}");
}

/// The problem if a function with several inputs is no addition, and its output takes `bytes`.
fn with_product(problem: SchedulingProblem, function: usize, bytes: u64) -> SchedulingProblem {
    let mut functions = problem.net.functions().to_vec();
    functions[function].kind = FunctionKind::Other;
    let mut maps = problem.net.maps().to_vec();
    maps[functions[function].output.index()].bytes = Bytes::new(bytes);
    let net = TrainingNet::new("product", 1, 0, maps, functions).expect("a net");
    without_times(SchedulingProblem { net, ..problem })
}

/// The addition x2 + x1 = x3 joins three maps. While x4's backward pass runs, the part of x3 from the last function waits.
#[test]
fn bound_counts_one_gradient_of_the_maps_that_an_addition_joins() {
    let inputs: [&[usize]; 5] = [&[0], &[1], &[2, 1], &[3], &[4, 3]];
    let needs: [&[usize]; 5] = [&[1], &[1, 2], &[], &[4], &[3, 5]];
    let mut problem = with_product(problem_of(&inputs, &[1, 3, 3, 3, 3, 3], &[1.0; 6], 12), 4, 1);
    let mut functions = problem.net.functions().to_vec();
    for (function, needs) in functions.iter_mut().zip(needs) {
        function.needs = needs.iter().map(|&map| MapId::from_index(map)).collect();
    }
    problem.net = TrainingNet::new("joined", 1, 0, problem.net.maps().to_vec(), functions).expect("a net");
    assert_eq!(bound_memory(&problem).bytes.get(), 12);
    assert!(fits_within(&problem, 12) && !fits_within(&problem, 11));
}

/// The addition x1 + x2 = x3 joins three maps. x4 follows x1 alone, and leads only to a reader of x2.
#[test]
fn bound_counts_a_gradient_that_waits_for_another_map_of_its_group() {
    let inputs: [&[usize]; 6] = [&[0], &[0], &[1, 2], &[1], &[4, 2], &[3]];
    let problem = problem_of(&inputs, &[1, 3, 3, 3, 3, 3, 1], &[1.0; 7], 16);
    let mut problem = with_product(problem, 4, 1);
    let mut maps = problem.net.maps().to_vec();
    maps[4].bytes = Bytes::new(10);
    problem.net = TrainingNet::new("joined", 1, 0, maps, problem.net.functions().to_vec()).expect("a net");
    assert_eq!(bound_memory(&problem).bytes.get(), 16);
    assert!(fits_within(&problem, 16) && !fits_within(&problem, 15));
}

#[test]
fn bound_counts_the_gradient_that_waits_and_no_absorbed_one() {
    // x (map 1) -> 12 bytes -> y, and x + y: x's part waits while y's branch is passed.
    let waiting: [&[usize]; 5] = [&[0], &[1], &[2], &[1, 3], &[4]];
    // The same one function later: the 12 bytes are made of x's whole gradient.
    let absorbed: [&[usize]; 5] = [&[0], &[1], &[2], &[2, 3], &[4]];
    for (inputs, bytes, least) in [(waiting, [1, 4, 12, 4, 4, 1], 20), (absorbed, [1, 12, 4, 4, 4, 1], 16)] {
        let problem = problem_of(&inputs, &bytes, &[1.0; 6], least);
        assert_eq!(bound_memory(&problem).bytes.get(), least);
        assert!(fits_within(&problem, least) && !fits_within(&problem, least - 1), "{least} bytes");
    }
}

#[test]
fn every_scheduler_ends_at_once_below_the_bound() {
    let problem = problem_of(&[&[0], &[1], &[2]], &[1, 4, 4, 1], &[1.0; 4], 7);
    for scheduler in schedulers() {
        let key = scheduler.descriptor().key;
        let outcome = execute_scheduler(&scheduler, &problem, ScheduleBudget::default(), 0);
        assert_eq!((outcome.end, outcome.work), (Ok(Stop::Infeasible), 0), "{key}");
        assert_eq!(outcome.least_memory, bound_memory(&problem), "{key}");
        let reason = outcome.shortfall.expect("a reason");
        assert!(
            reason.starts_with("out of memory: every schedule needs at least 8 bytes"),
            "{key}: {reason}"
        );
    }
}

/// Of two maps that two additions read, the gradients need more than any event: only the search shows it.
#[test]
fn exhausted_search_proves_that_no_schedule_fits() {
    let inputs: [&[usize]; 5] = [&[0], &[0], &[1, 2], &[1, 2], &[3]];
    let within = |capacity| problem_of(&inputs, &[1, 4, 4, 4, 4, 1], &[1.0; 6], capacity);
    let run = |problem: SchedulingProblem| {
        execute_scheduler(&Exact::default(), &problem, ScheduleBudget::default(), 0)
    };
    assert!(fits_within(&within(16), 16) && !fits_within(&within(15), 15));
    let outcome = run(within(15));
    assert_eq!((outcome.end, outcome.best), (Ok(Stop::Infeasible), None));
    assert_eq!(Some(outcome.least_memory), MemoryBound::above_searched(Bytes::new(15)));
    assert_eq!(
        outcome.shortfall.as_deref(),
        Some("out of memory: a search of all schedules found none in 15 bytes")
    );
    let compute = bound_memory(&within(15));
    assert_eq!((compute.bytes.get(), compute.evidence), (12, ScheduleEvidence::Compute));
    assert!(run(within(1000)).best.is_some());
}
