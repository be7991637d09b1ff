//! Tests every argument against brute force and exhaustive search.

use std::sync::Mutex;

use planlab_dsa::testing::{Shape, brute_force_within, corpus, instances, lowest_height};
use planlab_dsa::{Budget, Buffer, Bytes, Honours, Outcome, execute};
use proptest::prelude::*;

use super::*;
use crate::placement::testing::{scripted, test_buffer, test_descriptor};

/// The limit of brute force: about a second.
const MOST_PLACES: u64 = 500_000;

/// Applies every bound; returns the steps, and how the run ended.
fn run(instance: &Instance, effort: Effort, budget: Budget) -> (Vec<Step>, Outcome<'_>) {
    let honours = Honours {
        in_place: true,
        pins: true,
        alignment: true,
        arenas: true,
        apart: true,
        ..Honours::default()
    };
    let steps = Mutex::new(Vec::new());
    let prover = scripted(test_descriptor("prover", honours), |run| {
        prove_bounds(run, effort, &mut |step| steps.lock().expect("not poisoned").push(step))
    });
    let outcome = execute(&prover, instance, budget, 0);
    drop(prover);
    (steps.into_inner().expect("not poisoned"), outcome)
}

fn steps(instance: &Instance, effort: Effort) -> Vec<Step> {
    let (steps, outcome) = run(instance, effort, Budget::default());
    assert!(outcome.end.is_ok(), "{:?}", outcome.end);
    steps
}

/// Asserts that no bound is above the optimum with hand-overs, or that without, if it is known.
fn assert_below(instance: &Instance, effort: Effort, [any, without]: [Option<Bytes>; 2], name: &str) {
    for step in steps(instance, effort) {
        let optimum = if step.scope == Scope::Any { any } else { without };
        let is_fine = optimum.is_none_or(|optimum| step.value <= optimum);
        assert!(is_fine, "{name}: {step:?} above {optimum:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4_000))]

    #[test]
    fn no_bound_is_above_the_optimum(
        instance in prop_oneof![
            instances(Shape::plain_buffers()),
            instances(Shape::every_feature()),
            instances(Shape::plain_buffers().with_alignment(true).with_pins(true)),
            instances(Shape::plain_buffers().with_pauses(true).with_in_place(true).with_apart(true)),
        ],
    ) {
        if let Some(optima) = brute_force_within(&instance, MOST_PLACES) {
            assert_below(&instance, Effort::Thorough, optima, "random");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn never_above_the_optimum_of_more_plain_buffers(
        instance in instances(Shape::plain_buffers().with_max_buffers(12).with_max_size(9)),
    ) {
        let optimum = lowest_height(&instance, 200_000);
        if optimum.is_some() {
            assert_below(&instance, Effort::Thorough, [optimum; 2], "plain");
        }
    }
}

#[test]
fn never_above_the_optimum_of_the_corpus() {
    for case in corpus() {
        if case.instance.len() > 400 {
            continue;
        }
        assert_below(&case.instance, Effort::Quick, [case.optimum, case.without_hand_over], &case.name);
    }
}

/// Eight buffers whose load is 20 and whose optimum is 21, from step 100 on.
fn hard() -> Vec<Buffer> {
    let cases = corpus().into_iter();
    let mut plain = cases.filter(|case| case.name == "above-load-8-0");
    let case = plain.next().expect("in the corpus");
    assert_eq!((case.instance.load().bytes.get(), case.optimum), (20, Some(Bytes::new(21))));
    let later = |b: &Buffer| {
        let live = b.live;
        test_buffer(b.size.get(), live.start().get() + 100, live.end().get() + 100)
    };
    case.instance.buffers().iter().map(later).collect()
}

/// The hard buffers, small ones at other steps, and one of 100 bytes that is always live.
fn hidden(beside: u32) -> Instance {
    let mut buffers = hard();
    buffers.push(test_buffer(100, 0, 1000));
    buffers.extend((0..beside).map(|number| test_buffer(1, 200 + number, 202 + number)));
    Instance::from_buffers(buffers).expect("valid")
}

fn alone(argument: &dyn Argument, instance: &Instance) -> Option<u64> {
    let found = argument.prove_bound(instance, instance.load().bytes.get(), &mut |_| Ok(()));
    found.expect("no limit").map(|found| found.value)
}

#[test]
fn search_and_section_find_a_hard_core_among_others() {
    for beside in [0, 30, 600] {
        let instance = hidden(beside);
        assert_eq!(instance.load().bytes, Bytes::new(120));
        assert_eq!(alone(&window::Windows { nodes: 1_000, buffers: 64 }, &instance), Some(121), "{beside}");
        let tight = section::Tight { probing: 1 << 25, windows: 6 };
        assert_eq!(alone(&tight, &instance), Some(121), "{beside}");
    }
}

#[test]
fn pins_and_several_arenas_are_added_up() {
    let arena = |number| planlab_dsa::ArenaId::new(number);
    let second = hard().into_iter().map(|buffer| buffer.in_arena(arena(1)));
    let pinned = test_buffer(3, 0, 9).with_pin(planlab_dsa::Offset::new(30));
    let instance = Instance::builder()
        .buffers(hard())
        .buffers(second)
        .buffers([pinned.in_arena(arena(2))])
        .arenas([planlab_dsa::Arena::default(), planlab_dsa::Arena::default(), planlab_dsa::Arena::default()])
        .build()
        .expect("valid");
    let best = steps(&instance, Effort::Quick).iter().map(|step| step.value).max();
    assert_eq!(best, Some(Bytes::new(21 + 21 + 33)));
}

#[test]
fn limits_end_the_arguments_and_the_work_is_the_same_each_time() {
    let instance = level(30, 24, 30, &mut rand::SeedableRng::seed_from_u64(3));
    let results = |work| {
        let (steps, outcome) = run(&instance, Effort::Thorough, Budget { work, ..Budget::default() });
        (outcome.end, outcome.bound, steps.iter().map(|step| (step.value, step.work)).collect::<Vec<_>>())
    };
    let first = results(Some(20_000));
    assert_eq!(first.0, Ok(planlab_dsa::Stop::WorkLimit));
    assert_eq!(first, results(Some(20_000)));
}

/// Random buffers, and one more at each step that fills it up to the load.
fn level(count: u32, steps: u32, most: u64, rng: &mut rand_chacha::ChaCha8Rng) -> Instance {
    use rand::RngExt;
    let mut buffers = Vec::new();
    for _ in 0..count {
        let (a, b) = (rng.random_range(0..steps), rng.random_range(0..steps));
        buffers.push(test_buffer(rng.random_range(1..=most), a.min(b), a.max(b) + 1));
    }
    let loose = Instance::from_buffers(buffers.clone()).expect("valid");
    let load = loose.load().bytes.get();
    for step in 0..steps {
        let room = load - loose.load_curve().load_at(planlab_dsa::Step::new(step)).get();
        if room > 0 {
            buffers.push(test_buffer(room, step, step + 1));
        }
    }
    Instance::from_buffers(buffers).expect("valid")
}
