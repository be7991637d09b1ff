//! The search alone, without a start and without other bounds, against brute force.

use planlab_dsa::testing::{
    Shape, brute_force, brute_force_without_hand_over, corpus, exhaustive, instances,
};
use planlab_dsa::{Budget, Descriptor, Halt, Honours, Instance, Planner, Run, Stop, execute};
use proptest::prelude::*;

use super::kernel::Problem;
use super::minimise::{Task, minimise};
use super::{Exact, Pruning, precedence};

/// The search and nothing else.
struct Bare(Pruning);

/// The other search and nothing else.
struct BarePrecedence;

fn all(planner: &Exact) -> Descriptor {
    Descriptor {
        honours: Honours { in_place: false, ..planner.descriptor().honours },
        ..planner.descriptor()
    }
}

impl Planner for Bare {
    fn descriptor(&self) -> Descriptor {
        all(&Exact::default())
    }

    fn plan(&self, run: &mut Run<'_>) -> Result<(), Halt> {
        match Task::new(run, self.0) {
            Some(task) => minimise(run, &task),
            None => Ok(()),
        }
    }
}

impl Planner for BarePrecedence {
    fn descriptor(&self) -> Descriptor {
        Exact::default().descriptor()
    }

    fn plan(&self, run: &mut Run<'_>) -> Result<(), Halt> {
        precedence::minimise(run)
    }
}

/// The proven optimum, or that no plan was found; anything else fails.
fn optimum(planner: &dyn Planner, instance: &Instance) -> Option<u64> {
    let outcome = execute(planner, instance, Budget { work: Some(50_000_000), ..Budget::default() }, 7);
    assert!(matches!(outcome.end, Ok(Stop::Proved | Stop::Finished)), "{:?}: {instance:?}", outcome.end);
    assert!(outcome.height().is_none() || outcome.is_optimal(), "{instance:?}");
    outcome.height().map(planlab_dsa::Bytes::get)
}

fn of(instance: &Instance, brute: fn(&Instance) -> Option<planlab_dsa::Bytes>) -> Option<u64> {
    brute(instance).map(planlab_dsa::Bytes::get)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn plain_instances(instance in instances(Shape::plain()), bits in 0_u32..1 << Pruning::COUNT) {
        let known = of(&instance, brute_force);
        prop_assert_eq!(optimum(&Bare(Pruning::from_bits(bits)), &instance), known);
    }

    #[test]
    fn alignment_and_pins(
        instance in instances(Shape::plain().with_alignment(true).with_pins(true)),
        bits in 0_u32..1 << Pruning::COUNT,
    ) {
        let known = of(&instance, brute_force);
        prop_assert_eq!(optimum(&Bare(Pruning::from_bits(bits)), &instance), known);
    }

    #[test]
    fn pauses_and_pairs(
        instance in instances(Shape::plain().with_pauses(true).with_apart(true).with_pins(true).with_alignment(true)),
        bits in 0_u32..1 << Pruning::COUNT,
    ) {
        let known = of(&instance, brute_force_without_hand_over);
        if Problem::new(&instance, &[]).is_some() {
            prop_assert_eq!(optimum(&Bare(Pruning::from_bits(bits)), &instance), known);
        }
    }

    #[test]
    fn hand_overs_and_windows(
        instance in instances(Shape::everything().with_arenas(false).with_max_buffers(7)),
    ) {
        prop_assert_eq!(optimum(&BarePrecedence, &instance), of(&instance, brute_force));
    }

    #[test]
    fn everything_with_a_start(
        instance in instances(Shape::everything().with_arenas(false)),
        bits in 0_u32..1 << Pruning::COUNT,
    ) {
        let known = of(&instance, brute_force);
        prop_assert_eq!(optimum(&Exact::new(Pruning::from_bits(bits)), &instance), known);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn larger_plain_instances(
        instance in instances(Shape::plain().with_max_buffers(13).with_max_size(9)),
    ) {
        if let Some(known) = exhaustive(&instance, 2_000_000) {
            prop_assert_eq!(optimum(&Bare(Pruning::default()), &instance), Some(known.get()));
        }
    }
}

#[test]
fn known_optima_are_proved() {
    for case in corpus() {
        let instance = &case.instance;
        let (Some(known), true) = (case.optimum, instance.len() <= 100) else { continue };
        if Exact::default().descriptor().honours.refuses(instance).is_none() {
            assert_eq!(optimum(&Exact::default(), instance), Some(known.get()), "{}", case.name);
        }
    }
}
