//! Tests several arenas and capacities: exact planners against brute force, and the rules for all planners.

use planlab_dsa::testing::{
    Shape, brute_force, brute_force_without_hand_over, deep_config, instances, oracle_height,
};
use planlab_dsa::{Arena, Budget, Bytes, Instance, Planner, Stop, execute};
use planlab_solvers::find_planner;
use proptest::prelude::*;

/// Planners without a proof of the optimum.
const SEARCHES: [&str; 6] =
    ["hill-climb/tvm", "hill-climb/vela", "annealing", "tabu", "lns", "first-fit/size"];
/// The instance with other capacities: eighths of all bytes of the arena; no capacity above 8.
fn with_capacities(instance: &Instance, eighths: &[u64]) -> Instance {
    let mut totals = vec![0; instance.arenas().len()];
    for buffer in instance.buffers() {
        totals[buffer.arena.index()] += buffer.size.get();
    }
    let arenas = totals.iter().zip(eighths).map(|(&total, &part)| Arena {
        name: String::new(),
        capacity: (part <= 8).then(|| Bytes::new((total * part).div_ceil(8))),
    });
    Instance::builder()
        .buffers(instance.buffers().iter().cloned())
        .arenas(arenas)
        .in_place(instance.in_place().iter().copied())
        .apart(instance.keep_apart_pairs().iter().copied())
        .build()
        .expect("only capacities differ")
}

/// Instances with tight capacities: some have a plan, others have none.
fn tight(shape: Shape) -> impl Strategy<Value = Instance> {
    let eighths = prop::collection::vec(2..=10_u64, 3);
    (instances(shape.with_arenas(true)), eighths)
        .prop_map(|(instance, eighths)| with_capacities(&instance, &eighths))
}

/// The planner proves the optimum, or that there is no plan.
fn check_exact(key: &str, instance: &Instance) -> Result<(), TestCaseError> {
    let planner = find_planner(key).expect("registered");
    let budget = Budget { work: Some(50_000_000), ..Budget::default() };
    let outcome = execute(&planner, instance, budget, 7);
    let least = brute_force(instance);
    prop_assert_eq!(outcome.height(), least, "{}: {:?}", key, outcome.end);
    match least {
        Some(_) => prop_assert!(outcome.is_optimal(), "{}: {:?}", key, outcome.end),
        None => prop_assert_eq!(outcome.end, Ok(Stop::Infeasible), "{}", key),
    }
    Ok(())
}

proptest! {
    #![proptest_config(deep_config(5_000))]

    #[test]
    fn exact_search_has_the_optimum_over_all_arenas_or_none_fits(
        instance in prop_oneof![
            instances(Shape::every_feature().with_max_buffers(8)),
            tight(Shape::every_feature().with_max_buffers(8)),
        ],
    ) {
        check_exact("exact", &instance)?;
    }
}

proptest! {
    #![proptest_config(deep_config(500))]

    #[test]
    fn so_does_the_portfolio(
        instance in tight(Shape::plain_buffers().with_pins(true).with_alignment(true).with_in_place(true).with_apart(true)),
    ) {
        check_exact("portfolio", &instance)?;
    }
}

proptest! {
    #[test]
    fn no_search_breaks_a_capacity(instance in tight(Shape::every_feature().with_max_buffers(8)), seed in 0..4_u64) {
        let least = [brute_force(&instance), brute_force_without_hand_over(&instance)];
        for key in SEARCHES {
            let planner = find_planner(key).expect("registered");
            let budget = || Budget { work: Some(20_000), ..Budget::default() };
            let outcome = execute(&planner, &instance, budget(), seed);
            prop_assert!(outcome.end.is_ok(), "{}: {:?}", key, outcome.end);
            prop_assert!(outcome.end != Ok(Stop::Infeasible) || least[0].is_none(), "{}", key);
            if let Some(best) = &outcome.best {
                prop_assert_eq!(oracle_height(&instance, best.as_plan()).ok(), Some(best.height()), "{}", key);
                let least = if planner.descriptor().honours.in_place { least[0] } else { least[1] };
                prop_assert!(least.is_some_and(|least| least <= best.height()), "{}", key);
            }
            let again = execute(&planner, &instance, budget(), seed);
            prop_assert_eq!(again.best, outcome.best, "{}", key);
        }
    }
}
