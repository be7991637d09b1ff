//! Tests that the constraint planner proves small instances, with every switch on and off, and stops on request.
#![cfg(feature = "cp")]

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use planlab_dsa::testing::{Case, Shape, brute_force_without_hand_over, instances, lowest_height};
use planlab_dsa::{
    Budget, Buffer, Bytes, CancelToken, Clock, Event, Evidence, Instance, LiveRange, Scope, Stop, execute,
    execute_observed,
};
use planlab_solvers::cp::{CpPumpkin, Switches};
use proptest::prelude::*;

use crate::above_load::{above_load, run};

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
    let mut state = seed;
    let mut next = |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        u32::try_from((state >> 33) % below).expect("small")
    };
    let buffers = (0..count).map(|_| {
        let (size, start, width) = (1 + next(100), next(u64::from(count)), 1 + next(width));
        Buffer::new(Bytes::new(size.into()), LiveRange::new(start, start + width).expect("not empty"))
    });
    Instance::from_buffers(buffers.collect()).expect("valid")
}

#[test]
fn it_proves_every_optimum_above_the_load() {
    let cases: Vec<Case> = above_load(20).collect();
    assert!(cases.len() >= 20);
    for case in &cases {
        let outcome = run(&CpPumpkin::default(), &case.instance);
        let claim = outcome.bound.best_claim(Scope::NoHandOver);
        assert_eq!((outcome.height(), claim.evidence), (case.optimum, Evidence::Cp), "{}", case.name);
        assert!(outcome.is_optimal(), "{}", case.name);
    }
}

#[test]
fn no_switch_changes_the_optimum() {
    for case in above_load(12) {
        for (name, switches) in variants() {
            let outcome = run(&CpPumpkin::default().with_switches(switches), &case.instance);
            assert_eq!(outcome.height(), case.optimum, "{name}, {}", case.name);
            assert!(outcome.is_optimal(), "{name}, {}", case.name);
        }
    }
}

#[test]
fn it_equals_an_exhaustive_search_of_fourteen_buffers() {
    let mut proved = 0;
    for seed in 0..40 {
        let instance = made(14, 8, seed);
        let Some(optimum) = lowest_height(&instance, 3_000_000) else { continue };
        let outcome = run(&CpPumpkin::default(), &instance);
        assert_eq!(outcome.height(), Some(optimum), "seed {seed}");
        assert!(outcome.is_optimal(), "seed {seed}");
        proved += 1;
    }
    assert!(proved >= 20, "only {proved} were searched to the end");
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
        let enlarge = |size: Bytes| Bytes::new(size.get() * 1_099_511_627_689 + 1);
        let buffers = case.instance.buffers().iter().map(|b| Buffer::new(enlarge(b.size), b.live));
        let instance = Instance::from_buffers(buffers.collect()).expect("valid");
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
    let mut proved = 0;
    for seed in 0..12 {
        let small = made(10, 6, seed);
        let buffers = small
            .buffers()
            .iter()
            .map(|b| Buffer::new(Bytes::new(b.size.get() * 30_000_019 + b.size.get() % 7), b.live));
        let instance = Instance::from_buffers(buffers.collect()).expect("valid");
        let Some(optimum) = lowest_height(&instance, 3_000_000) else { continue };
        let outcome = run(&CpPumpkin::default(), &instance);
        assert!(
            outcome.end.is_ok() && outcome.bound.best_claim(Scope::NoHandOver).value <= optimum,
            "seed {seed}"
        );
        assert_eq!(outcome.height(), Some(optimum), "seed {seed}");
        proved += 1;
    }
    assert!(proved >= 6, "only {proved} were searched to the end");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn it_equals_brute_force(
        instance in instances(
            Shape::every_feature().with_in_place(false).with_max_buffers(6).with_max_steps(6),
        ),
        variant in 0..18_usize,
    ) {
        let optimum = brute_force_without_hand_over(&instance);
        let (name, switches) = variants().swap_remove(variant);
        let outcome = run(&CpPumpkin::default().with_switches(switches), &instance);
        prop_assert_eq!(outcome.height(), optimum, "{}: {:?}", name, outcome.end);
        prop_assert!(outcome.is_optimal(), "{}: {:?}", name, outcome.end);
    }
}
