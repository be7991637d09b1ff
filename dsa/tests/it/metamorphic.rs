//! Renaming buffers, reversing time, scaling sizes and shifting steps keep the results.

use crate::common::{config, planned, relabel, relabel_plan, reverse, scale, scale_plan, shift};
use planlab_dsa::testing::{Shape, brute_force, instances};
use planlab_dsa::{
    Bytes, Digest, Instance, Plan, Scope, Violation, alignment_bound, initial_bound, pin_bound,
};
use proptest::prelude::*;

const FILE: &str = "tests/metamorphic.regressions";

/// The indices of the alignment bounds among the measures.
const ALIGNMENT: [usize; 2] = [3, 4];

/// Loads and bounds, in bytes.
fn measures(instance: &Instance) -> [Option<u64>; 7] {
    let bound = initial_bound(instance);
    [
        Some(instance.load().bytes),
        Some(instance.load_without_in_place().bytes),
        Some(pin_bound(instance)),
        alignment_bound(instance, Scope::NoHandOver),
        alignment_bound(instance, Scope::Any),
        Some(bound.best_claim(Scope::Any).value),
        Some(bound.best_claim(Scope::NoHandOver).value),
    ]
    .map(|bytes| bytes.map(Bytes::get))
}

fn verdict(instance: &Instance, plan: &Plan) -> Result<u64, &'static str> {
    let verified = instance.verify(plan.clone());
    verified.map(|verified| verified.height().get()).map_err(|violation| violation.kind())
}

fn shuffled() -> impl Strategy<Value = (Instance, Plan, Vec<usize>)> {
    planned(Shape::every_feature()).prop_flat_map(|(instance, plan)| {
        let order: Vec<usize> = (0..instance.len()).collect();
        (Just(instance), Just(plan), Just(order).prop_shuffle())
    })
}

proptest! {
    #![proptest_config(config(1500, FILE))]

    #[test]
    fn names_do_not_matter((instance, plan, order) in shuffled()) {
        let other = relabel(&instance, &order);
        prop_assert_eq!(measures(&other), measures(&instance));
        prop_assert_eq!(other.load_curve(), instance.load_curve());
        prop_assert_eq!(other.offset_granularity(), instance.offset_granularity());
        if plan.offsets.len() == instance.len() {
            let renamed = relabel_plan(&plan, &order);
            // The order of the buffers may determine which broken rule is reported first.
            prop_assert_eq!(verdict(&other, &renamed).ok(), verdict(&instance, &plan).ok());
        }
    }

    #[test]
    fn time_may_run_backwards((instance, plan) in planned(Shape::every_feature().with_in_place(false))) {
        let other = reverse(&instance);
        prop_assert_eq!(measures(&other), measures(&instance));
        prop_assert_eq!(verdict(&other, &plan), verdict(&instance, &plan));
    }

    #[test]
    fn bytes_scale((instance, plan) in planned(Shape::every_feature()), factor in 2..1000_u64) {
        let other = scale(&instance, factor);
        let (expected, mut scaled) = (measures(&instance).map(|m| m.map(|b| b * factor)), measures(&other));
        for bound in ALIGNMENT.into_iter().filter(|&bound| expected[bound].is_none()) {
            // Once every size is a multiple of the factor, so is every alignment: the bound repeats the load.
            scaled[bound] = None;
        }
        prop_assert_eq!(scaled, expected);
        let fits = plan.offsets.iter().all(|offset| offset.get() < 1 << 40);
        if fits {
            let verdict = verdict(&instance, &plan).map(|height| height * factor);
            prop_assert_eq!(self::verdict(&other, &scale_plan(&plan, factor)), verdict);
        }
    }

    #[test]
    fn steps_shift((instance, plan) in planned(Shape::every_feature()), by in 1..u32::MAX - 64) {
        let other = shift(&instance, by);
        prop_assert_eq!(measures(&other), measures(&instance));
        prop_assert_eq!(verdict(&other, &plan), verdict(&instance, &plan));
        if instance.load().bytes > Bytes::ZERO {
            prop_assert_eq!(other.load().step.get(), instance.load().step.get() + by);
        }
        match (instance.verify(plan.clone()), other.verify(plan)) {
            (Err(Violation::Overlap { first, second, .. }), Err(violation)) => {
                prop_assert_eq!(violation.buffers(), [first, second]);
            }
            (here, there) => prop_assert_eq!(here.is_ok(), there.is_ok()),
        }
    }

    #[test]
    fn the_optimum_survives_it_all(
        instance in instances(Shape::every_feature().with_in_place(false).with_max_buffers(5).with_max_size(6)),
        factor in 2..9_u64
    ) {
        let least = brute_force(&instance);
        prop_assert_eq!(brute_force(&reverse(&instance)), least);
        prop_assert_eq!(brute_force(&shift(&instance, 77)), least);
        let scaled = brute_force(&scale(&instance, factor));
        prop_assert_eq!(scaled, least.map(|bytes| Bytes::new(bytes.get() * factor)));
    }

    #[test]
    fn the_digest_tells_instances_and_plans_apart((instance, plan, order) in shuffled()) {
        let digest = instance.digest();
        prop_assert_eq!(instance.clone().digest(), digest);
        for other in [relabel(&instance, &order), shift(&instance, 1), scale(&instance, 2)] {
            prop_assert_eq!(other.digest() == digest, other == instance);
        }
        if plan.offsets.len() == instance.len() {
            let renamed = relabel_plan(&plan, &order);
            prop_assert_eq!(Digest::of_plan(&renamed) == Digest::of_plan(&plan), renamed == plan);
        }
    }
}
