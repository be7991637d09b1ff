//! Tests the bound on the memory of every schedule: against searches of all schedules, and what runs make of it.

use planlab_dsa::testing::is_deep_run;
use planlab_dsa::{Bytes, Stop};
use planlab_graph::{
    Machine, MemoryBound, ScheduleBudget, ScheduleEvidence, SchedulingProblem, Times, bound_memory,
    execute_scheduler,
};
use planlab_solvers::schedule::{Exact, schedulers};

use super::bounds::{problem_of, random_problem};
use super::references::optimum::optimum_below;

/// A random net whose events take no time: only memory counts.
fn untimed_problem(seed: u64) -> SchedulingProblem {
    let problem = random_problem(seed, if is_deep_run() { 6 } else { 5 });
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

/// Nearly all of these nets need no more than the bound; every chain is one of them.
#[test]
fn bound_on_memory_of_small_nets_is_at_most_the_optimum() {
    let nets = if is_deep_run() { 1000 } else { 100 };
    let mut met = 0;
    for seed in 0..nets {
        let problem = untimed_problem(seed);
        let least = bound_memory(&problem).bytes.get();
        assert!(!fits_within(&problem, least - 1), "seed {seed}: a schedule takes less than {least} bytes");
        met += u64::from(fits_within(&problem, least));
    }
    println!("{met} of {nets} bounds are met");
    assert!(met * 10 > nets * 9, "only {met} of {nets}");
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
    assert_eq!(outcome.least_memory, MemoryBound::above_searched(Bytes::new(15)));
    assert_eq!(
        outcome.shortfall.as_deref(),
        Some("out of memory: a search of all schedules found none in 15 bytes")
    );
    let compute = bound_memory(&within(15));
    assert_eq!((compute.bytes.get(), compute.evidence), (12, ScheduleEvidence::Compute));
    assert!(run(within(1000)).best.is_some());
}
