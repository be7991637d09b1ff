//! What the tests of the solvers of mathematical models share.

use std::time::Duration;

use planlab_dsa::testing::{Case, Shape, brute_force_without_hand_over, corpus, instances};
use planlab_dsa::{Budget, Evidence, Instance, Outcome, Planner, Scope, execute};
use proptest::prelude::*;

pub(crate) fn run<'i>(planner: &dyn Planner, instance: &'i Instance) -> Outcome<'i> {
    // Proofs take seconds; the limit ends a search that hangs.
    let wall = Some(Duration::from_secs(3600));
    execute(planner, instance, Budget { wall, ..Budget::default() }, 0)
}

/// Asserts that a planner proves every optimum above the load, by its own evidence.
pub(crate) fn assert_proves_all(planner: &dyn Planner, evidence: Evidence) {
    let cases: Vec<Case> = above_load(20).collect();
    assert!(cases.len() >= 20);
    for case in &cases {
        let claim = assert_proves(planner, case, "default").bound.best_claim(Scope::NoHandOver);
        assert_eq!(claim.evidence, evidence, "{} {}", planner.descriptor().key, case.name);
    }
}

/// Asserts that a planner with some switches proves the optimum of a case.
pub(crate) fn assert_proves<'c>(planner: &dyn Planner, case: &'c Case, switches: &str) -> Outcome<'c> {
    let outcome = run(planner, &case.instance);
    let name = format!("{}, {switches}, {}", planner.descriptor().key, case.name);
    assert_eq!(outcome.height(), case.optimum, "{name}");
    assert!(outcome.is_optimal(), "{name}");
    outcome
}

/// Small instances of every feature but hand-overs.
pub(crate) fn small_instances() -> impl Strategy<Value = Instance> {
    instances(Shape::every_feature().with_in_place(false).with_max_buffers(6).with_max_steps(6))
}

/// Checks that a planner proves the optimum that brute force finds.
pub(crate) fn check_brute_force(
    planner: &dyn Planner,
    instance: &Instance,
    what: &str,
) -> Result<(), TestCaseError> {
    let outcome = run(planner, instance);
    let optimum = brute_force_without_hand_over(instance);
    prop_assert_eq!(outcome.height(), optimum, "{}: {:?}", what, outcome.end);
    prop_assert!(outcome.is_optimal(), "{}: {:?}", what, outcome.end);
    Ok(())
}

pub(crate) fn above_load(most: usize) -> impl Iterator<Item = Case> {
    let plain = move |case: &Case| case.instance.in_place().is_empty() && case.instance.len() <= most;
    let above = |case: &Case| case.optimum.is_some_and(|optimum| optimum > case.instance.load().bytes);
    corpus().into_iter().filter(move |case| case.name.starts_with("above-load") && plain(case) && above(case))
}
