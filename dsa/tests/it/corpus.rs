//! Checks the corpus: searches find every optimum again, and every adversary still defeats its heuristic.

use planlab_dsa::testing::{
    Case, brute_force, brute_force_without_hand_over, corpus, guillotine_instance, is_plain, lowest_height,
};
use planlab_dsa::{Bytes, Scope, initial_bound};

#[path = "../../examples/make_testdata/greedy.rs"]
mod greedy;

/// Placements within which the search proves every optimum of a plain case.
const NODES: u64 = 2_000_000;

fn named(name: &str) -> Case {
    corpus().into_iter().find(|case| case.name == name).unwrap_or_else(|| panic!("no case `{name}`"))
}

#[test]
fn every_case_has_a_name_of_its_own_a_reason_and_an_optimum() {
    let cases = corpus();
    let mut names: Vec<&str> = cases.iter().map(|case| case.name.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), cases.len());
    for case in &cases {
        assert!(!case.why.is_empty(), "{}", case.name);
        assert!(case.optimum <= case.without_hand_over, "{}", case.name);
        assert!(case.optimum.is_some(), "{}", case.name);
    }
}

#[test]
fn brute_force_finds_every_small_optimum() {
    let small = |case: &&Case| case.instance.len() <= 8 && case.instance.total_size() < Bytes::new(1 << 13);
    let cases = corpus();
    let mut count = 0;
    for case in cases.iter().filter(small) {
        assert_eq!(brute_force(&case.instance), case.optimum, "{}", case.name);
        assert_eq!(brute_force_without_hand_over(&case.instance), case.without_hand_over, "{}", case.name);
        count += 1;
    }
    assert!(count >= 30, "only {count} cases are small");
}

#[test]
fn branch_and_bound_proves_every_plain_optimum() {
    let cases = corpus();
    let small: Vec<&Case> =
        cases.iter().filter(|case| is_plain(&case.instance) && case.instance.len() <= 20).collect();
    assert!(small.len() >= 20, "only {} cases", small.len());
    for case in small {
        assert_eq!(lowest_height(&case.instance, NODES), case.optimum, "{}", case.name);
    }
}

#[test]
fn twenty_instances_and_more_have_their_optimum_above_the_load() {
    let cases = corpus();
    let above = |case: &&Case| {
        case.name.starts_with("above-load")
            && case.optimum > Some(case.instance.load().bytes)
            && is_plain(&case.instance)
    };
    let sizes: Vec<usize> = cases.iter().filter(above).map(|case| case.instance.len()).collect();
    assert!(sizes.len() >= 20, "{sizes:?}");
    assert!(sizes.iter().all(|&size| size <= 20) && sizes.contains(&20) && sizes.contains(&8));
}

#[test]
fn no_case_has_an_optimum_below_its_bound() {
    for case in corpus() {
        let bound = initial_bound(&case.instance);
        assert!(case.optimum >= Some(bound.best_claim(Scope::Any).value), "{}", case.name);
        assert!(case.without_hand_over >= Some(bound.best_claim(Scope::NoHandOver).value), "{}", case.name);
    }
}

#[test]
fn cut_rectangles_are_as_the_file_says_and_their_plan_is_valid() {
    for (buffers, seed) in [(10, 1), (100, 2), (1000, 3), (10_000, 4)] {
        let case = named(&format!("guillotine-{buffers}"));
        let (instance, plan) = guillotine_instance(buffers, Bytes::new(1 << 20), seed);
        assert_eq!(case.instance, instance);
        let height = instance.verify(plan).map(|verified| verified.height());
        assert_eq!(height.ok(), case.optimum);
        assert_eq!(Some(instance.load().bytes), case.optimum);
    }
}

#[test]
fn each_greedy_is_beaten_by_its_adversary() {
    for (key, heuristic) in greedy::ALL {
        let case = named(&format!("worst-{}", key.replace('/', "-")));
        let (height, optimum) = (heuristic(&case.instance), case.optimum.expect("known"));
        assert!(height.get() * 10 >= optimum.get() * 15, "{key}: {height} against {optimum}");
    }
}
