//! Tests that the MIP planners prove small instances, with every switch on and off.
#![cfg(feature = "mip")]

use planlab_dsa::Evidence;
use planlab_solvers::milp::{Mip, Strengthening};
use proptest::prelude::*;

use crate::above_load::{above_load, assert_proves, assert_proves_all, check_brute_force, small_instances};

#[test]
fn both_prove_twenty_optima_above_the_load() {
    for planner in [Mip::with_cbc(), Mip::with_highs()] {
        assert_proves_all(&planner, Evidence::Mip);
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
            for planner in [Mip::with_highs(), Mip::with_cbc()] {
                assert_proves(&planner.with_strengthening(switches), &case, name);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn both_equal_brute_force(instance in small_instances()) {
        for (planner, key) in [(Mip::with_cbc(), "cbc"), (Mip::with_highs(), "highs")] {
            check_brute_force(&planner, &instance, key)?;
        }
    }
}
