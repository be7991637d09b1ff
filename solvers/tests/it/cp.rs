//! Tests that the constraint planner proves small instances, with every switch on and off, and stops on request.
#![cfg(feature = "cp")]

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use planlab_dsa::testing::{lowest_height, pseudo_random, test_buffer};
use planlab_dsa::{
    Budget, Buffer, Bytes, CancelToken, Clock, Event, Evidence, Instance, Scope, Stop, execute,
    execute_observed,
};
use planlab_solvers::cp::{CpPumpkin, Switches};
use proptest::prelude::*;

use crate::above_load::{
    above_load, assert_proves, assert_proves_all, check_brute_force, run, small_instances,
};

/// All on, all off, all but one, one alone.
fn variants() -> Vec<(String, Switches)> {
    type Set = fn(Switches, bool) -> Switches;
    let switches: [(&str, Set); 8] = [
        ("load", Switches::with_load),
        ("drop", Switches::with_drop_settled),
        ("peel", Switches::with_peel),
        ("split", Switches::with_split),
        ("symmetry", Switches::with_symmetry),
        ("sections", Switches::with_sections),
        ("start", Switches::with_start),
        ("probe", Switches::with_probe),
    ];
    let mut all = vec![("all".to_owned(), Switches::all(true)), ("none".to_owned(), Switches::all(false))];
    for (name, set) in switches {
        all.push((format!("all but {name}"), set(Switches::all(true), false)));
        all.push((format!("{name} alone"), set(Switches::all(false), true)));
    }
    all
}

/// Pseudo-random buffers: `count` of them, up to `width` steps long.
fn made(count: u32, width: u64, seed: u64) -> Instance {
    let mut draw = pseudo_random(seed);
    let mut next = |below: u64| u32::try_from(draw(below)).expect("small");
    let buffers = (0..count).map(|_| {
        let (size, start, width) = (1 + next(100), next(u64::from(count)), 1 + next(width));
        test_buffer(size.into(), start, start + width)
    });
    Instance::from_buffers(buffers.collect()).expect("valid")
}

/// The instance with other sizes.
fn resized(instance: &Instance, size: impl Fn(u64) -> u64) -> Instance {
    let resize = |b: &Buffer| Buffer::new(Bytes::new(size(b.size.get())), b.live);
    Instance::from_buffers(instance.buffers().iter().map(resize).collect()).expect("valid")
}

/// Asserts that it finds what an exhaustive search finds, where that ends, and proves no more: at least `least` times.
fn assert_equals_exhaustive(instances: impl Iterator<Item = Instance>, least: usize, is_proved: bool) {
    let mut searched = 0;
    for (seed, instance) in instances.enumerate() {
        let Some(optimum) = lowest_height(&instance, 3_000_000) else { continue };
        let outcome = run(&CpPumpkin::default(), &instance);
        let bound = outcome.bound.best_claim(Scope::NoHandOver).value;
        assert!(outcome.end.is_ok() && bound <= optimum, "seed {seed}");
        assert_eq!(outcome.height(), Some(optimum), "seed {seed}");
        assert!(outcome.is_optimal() || !is_proved, "seed {seed}");
        searched += 1;
    }
    assert!(searched >= least, "only {searched} were searched to the end");
}

#[test]
fn it_proves_every_optimum_above_the_load() {
    assert_proves_all(&CpPumpkin::default(), Evidence::Cp);
}

#[test]
fn no_switch_changes_the_optimum() {
    for case in above_load(12) {
        for (name, switches) in variants() {
            assert_proves(&CpPumpkin::default().with_switches(switches), &case, &name);
        }
    }
}

#[test]
fn it_equals_an_exhaustive_search_of_fourteen_buffers() {
    assert_equals_exhaustive((0..40).map(|seed| made(14, 8, seed)), 20, true);
}

#[test]
fn a_search_over_400_buffers_ends_at_its_limit() {
    let instance = made(400, 300, 5);
    // A second passes at each look at the clock. Without a limit the search takes hours.
    let seconds = AtomicU64::new(0);
    let clock = Clock::new(move || Duration::from_secs(seconds.fetch_add(1, Ordering::Relaxed)));
    let budget = Budget { wall: Some(Duration::from_secs(50)), clock, ..Budget::default() };
    let outcome = execute(&CpPumpkin::default(), &instance, budget, 0);
    assert_eq!(outcome.end, Ok(Stop::Deadline));
    assert!(outcome.height().is_some());
}

#[test]
fn a_cancelled_run_ends_with_its_plan() {
    let instance = made(300, 200, 3);
    let cancel = CancelToken::default();
    let budget = Budget { cancel: cancel.clone(), ..Budget::default() };
    // The first plan cancels the run that found it.
    let outcome = execute_observed(&CpPumpkin::default(), &instance, budget, 0, move |event, _| {
        if matches!(event, Event::Incumbent(_)) {
            cancel.cancel();
        }
    });
    assert_eq!(outcome.end, Ok(Stop::Cancelled));
    assert!(outcome.height().is_some());
}

#[test]
fn sizes_that_its_numbers_do_not_hold_are_rounded_and_the_bound_holds() {
    for case in above_load(20) {
        let instance = resized(&case.instance, |size| size * 1_099_511_627_689 + 1);
        let outcome = run(&CpPumpkin::default(), &instance);
        assert!(outcome.end.is_ok(), "{}: {:?}", case.name, outcome.end);
        let optimum = case.optimum.expect("known").get() * 1_099_511_627_689;
        let (height, bound) =
            (outcome.height().expect("a plan").get(), outcome.bound.best_claim(Scope::NoHandOver));
        // A unit is less than 2^-28 of the height, and each of up to 20 sizes loses less than one.
        let lost = 20 * (height >> 28);
        assert!(height <= optimum + 20, "{}: {height} > {optimum}", case.name);
        assert!(bound.value.get() <= height && bound.value.get() >= optimum - lost, "{}", case.name);
        assert_eq!(bound.evidence, Evidence::Cp, "{}", case.name);
    }
}

#[test]
fn rounding_leaves_no_plan_out() {
    // Odd sizes of a few hundred millions, so that a unit is some bytes; the optimum by exhaustive search.
    let odd = |seed| resized(&made(10, 6, seed), |size| size * 30_000_019 + size % 7);
    assert_equals_exhaustive((0..12).map(odd), 6, false);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn it_equals_brute_force(instance in small_instances(), variant in 0..18_usize) {
        let (name, switches) = variants().swap_remove(variant);
        check_brute_force(&CpPumpkin::default().with_switches(switches), &instance, &name)?;
    }
}
