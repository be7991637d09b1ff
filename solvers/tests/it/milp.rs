//! Tests that the MIP planners prove small instances, with every switch on and off.
#![cfg(feature = "mip")]

use planlab_dsa::testing::{Case, Shape, brute_force_without_hand_over, instances};
use planlab_dsa::{Evidence, Planner, Scope};
use planlab_solvers::milp::{Mip, Strengthening};
use proptest::prelude::*;

use crate::above_load::{above_load, run};

#[test]
fn both_prove_twenty_optima_above_the_load() {
    let planners: [&dyn Planner; 2] = [&Mip::with_cbc(), &Mip::with_highs()];
    let cases: Vec<Case> = above_load(20).collect();
    assert!(cases.len() >= 20);
    for case in &cases {
        for planner in planners {
            let outcome = run(planner, &case.instance);
            let key = planner.descriptor().key;
            let claim = outcome.bound.best_claim(Scope::NoHandOver);
            assert_eq!(
                (outcome.height(), claim.evidence),
                (case.optimum, Evidence::Mip),
                "{key} {}",
                case.name
            );
            assert!(outcome.is_optimal(), "{key} {}", case.name);
        }
    }
}

#[test]
fn no_switch_changes_the_optimum() {
    let on = Strengthening::default();
    let off = Strengthening::all(false);
    let variants = [
        ("published", off),
        ("all but load", on.with_load(false)),
        ("all but tight", on.with_tight_big_m(false)),
        ("all but scale", on.with_scale(false)),
        ("all but drop", on.with_drop_settled(false)),
        ("all but peel", on.with_peel(false)),
        ("all but split", on.with_split(false)),
        ("all but symmetry", on.with_symmetry(false)),
        ("all but start", on.with_start(false)),
        ("all but whole height", on.with_whole_height(false)),
        ("all but stacks", on.with_stacks(false)),
        ("load alone", off.with_load(true)),
        ("tight alone", off.with_tight_big_m(true)),
        ("peel alone", off.with_peel(true)),
        ("split alone", off.with_split(true)),
        ("symmetry alone", off.with_symmetry(true)),
        ("start alone", off.with_start(true)),
        ("stacks alone", off.with_stacks(true)),
    ];
    for case in above_load(9) {
        for (name, switches) in variants {
            let highs = Mip::with_highs().with_strengthening(switches);
            let cbc = Mip::with_cbc().with_strengthening(switches);
            let planners: [&dyn Planner; 2] = [&highs, &cbc];
            for planner in planners {
                let outcome = run(planner, &case.instance);
                let key = planner.descriptor().key;
                assert_eq!(outcome.height(), case.optimum, "{key}, {name}, {}", case.name);
                assert!(outcome.is_optimal(), "{key}, {name}, {}", case.name);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn both_equal_brute_force(
        instance in instances(
            Shape::every_feature().with_in_place(false).with_max_buffers(6).with_max_steps(6),
        ),
    ) {
        let optimum = brute_force_without_hand_over(&instance);
        let planners: [&dyn Planner; 2] = [&Mip::with_cbc(), &Mip::with_highs()];
        for planner in planners {
            let outcome = run(planner, &instance);
            prop_assert_eq!(outcome.height(), optimum, "{}: {:?}", planner.descriptor().key, outcome.end);
            prop_assert!(outcome.is_optimal(), "{}: {:?}", planner.descriptor().key, outcome.end);
        }
    }
}
