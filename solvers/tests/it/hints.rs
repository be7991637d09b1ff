//! Tests planners that start from hints: a good hint is used at once, and a bad one does no harm.

use std::sync::Arc;

use planlab_dsa::testing::{Shape, brute_force, guillotine_instance, instances, oracle_height, plans_for};
use planlab_dsa::{Budget, Bytes, Instance, Offset, Outcome, Planner, Stop, execute};
use planlab_solvers::{find_planner, registry};
use proptest::prelude::*;

type Hints = Arc<[Option<Offset>]>;

fn honouring() -> Vec<Box<dyn Planner>> {
    registry().into_iter().filter(|planner| planner.descriptor().honours.hint).collect()
}

fn run<'i>(planner: &dyn Planner, instance: &'i Instance, hints: Option<Hints>, work: u64) -> Outcome<'i> {
    execute(planner, instance, Budget { hints, work: Some(work), ..Budget::default() }, 3)
}

fn all(offsets: &[Offset]) -> Hints {
    offsets.iter().copied().map(Some).collect()
}

#[test]
fn three_planners_honour_hints() {
    let keys: Vec<String> = honouring().iter().map(|planner| planner.descriptor().key.into_owned()).collect();
    for key in ["exact", "portfolio", "lns"] {
        assert!(keys.iter().any(|known| known == key), "{key}: {keys:?}");
    }
}

#[test]
fn a_hint_that_is_the_optimum_ends_the_run_at_once() {
    let (instance, plan) = guillotine_instance(2_000, Bytes::new(1 << 20), 5);
    for planner in honouring() {
        let key = planner.descriptor().key;
        let without = run(&planner, &instance, None, 1);
        assert!(!without.is_optimal(), "{key}: one unit of work is enough without a hint");
        let with = run(&planner, &instance, Some(all(&plan.offsets)), 1);
        assert_eq!((with.end.clone(), with.height()), (Ok(Stop::Proved), Some(Bytes::new(1 << 20))), "{key}");
        assert_eq!(with.best.as_ref().map(|best| best.offsets()), Some(plan.offsets.as_slice()), "{key}");
    }
}

/// Hints of every kind: a plan, a part of one, nonsense.
fn with_hints(shape: Shape) -> impl Strategy<Value = (Instance, Hints)> {
    instances(shape).prop_flat_map(|instance| {
        let count = instance.len();
        let nonsense = prop::collection::vec(prop::option::of(prop_oneof![0..64_u64, any::<u64>()]), count);
        let kept = prop::collection::vec(prop::bool::weighted(0.8), count);
        let whole = prop::bool::ANY;
        let plan = plans_for(&instance);
        (Just(instance), plan, nonsense, kept, whole, prop::bool::ANY).prop_map(
            |(instance, plan, nonsense, kept, whole, is_plan)| {
                let hints: Hints = if is_plan {
                    let pairs = plan.offsets.iter().zip(kept);
                    pairs.map(|(&offset, kept)| (whole || kept).then_some(offset)).collect()
                } else {
                    nonsense.into_iter().map(|hint| hint.map(Offset::new)).collect()
                };
                (instance, hints)
            },
        )
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn whatever_the_hints_a_plan_is_valid((instance, hints) in with_hints(Shape::every_feature())) {
        for planner in honouring() {
            let key = planner.descriptor().key;
            if planner.descriptor().honours.first_refused_feature(&instance).is_some() {
                continue;
            }
            let outcome = run(&planner, &instance, Some(Arc::clone(&hints)), 3_000);
            prop_assert!(outcome.end.is_ok(), "{}: {:?}", key, outcome.end);
            if let Some(best) = &outcome.best {
                prop_assert_eq!(oracle_height(&instance, best.as_plan()).ok(), Some(best.height()), "{}", key);
                prop_assert!(best.height() >= outcome.bound.best_claim(outcome.scope).value, "{}", key);
            }
            let again = run(&planner, &instance, Some(Arc::clone(&hints)), 3_000);
            prop_assert_eq!(again.best, outcome.best, "{}", key);
        }
    }

    #[test]
    fn whatever_the_hints_the_optimum_is_found(
        (instance, hints) in with_hints(
            Shape::plain_buffers().with_max_buffers(7).with_pins(true).with_alignment(true).with_in_place(true),
        ),
    ) {
        let least = brute_force(&instance);
        for key in ["exact", "portfolio"] {
            let planner = find_planner(key).expect("registered");
            let budget = Budget { hints: Some(Arc::clone(&hints)), ..Budget::default() };
            let outcome = execute(&planner, &instance, budget, 0);
            prop_assert_eq!(outcome.height(), least, "{}", key);
            prop_assert!(least.is_none() || outcome.is_optimal(), "{}", key);
        }
    }

    #[test]
    fn a_valid_plan_is_the_worst_that_comes_of_it(
        (instance, plan) in instances(Shape::plain_buffers().with_max_buffers(20))
            .prop_flat_map(|instance| { let plan = plans_for(&instance); (Just(instance), plan) }),
    ) {
        let Ok(height) = instance.verify(plan.clone()).map(|plan| plan.height()) else { return Ok(()) };
        for planner in honouring() {
            let outcome = run(&planner, &instance, Some(all(&plan.offsets)), 1);
            prop_assert!(outcome.height().is_some_and(|found| found <= height), "{:?}", outcome.height());
        }
    }
}
