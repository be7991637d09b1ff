//! Compares load and bounds with plain sums, and with the least height by brute force.

use crate::common::{self, config};
use planlab_dsa::testing::{
    Shape, brute_force, brute_force_without_hand_over, first_fit, instances, lowest_height, oracle_height,
};
use planlab_dsa::{ArenaId, Bytes, Instance, Scope, Step, alignment_bound, initial_bound, pin_bound};
use proptest::prelude::*;

const FILE: &str = "tests/bounds.regressions";

/// Bytes in use at a step, summed over buffers; `relaxed` omits the first step of a buffer that may overwrite another.
fn in_use(instance: &Instance, arena: Option<ArenaId>, step: u32, relaxed: bool) -> u64 {
    let mut sum = 0;
    for (id, buffer) in instance.ids().zip(instance.buffers()) {
        let may_overwrite = instance.in_place().iter().any(|pair| pair.output == id);
        let skipped = relaxed && may_overwrite && buffer.live.start().get() == step;
        let elsewhere = arena.is_some_and(|arena| arena != buffer.arena);
        if skipped || elsewhere || !buffer.live.contains(Step::new(step)) {
            continue;
        }
        sum += match buffer.pauses.iter().find(|pause| pause.steps.contains(Step::new(step))) {
            None => buffer.size.get(),
            Some(pause) => pause.window.as_ref().map_or(0, |w| w.end.get() - w.start.get()),
        };
    }
    sum
}

fn summed_load(instance: &Instance, relaxed: bool) -> Bytes {
    let peak = |arena| {
        (0..instance.horizon().get())
            .map(|step| in_use(instance, Some(arena), step, relaxed))
            .max()
            .unwrap_or(0)
    };
    Bytes::new((0_u16..).map(ArenaId::new).zip(instance.arenas()).map(|(arena, _)| peak(arena)).sum())
}

/// A shape small enough for brute force, which tries every offset at a granularity of 1.
fn small(shape: Shape) -> Shape {
    shape.with_max_buffers(7).with_max_steps(8).with_max_size(6)
}

proptest! {
    #![proptest_config(config(3000, FILE))]

    #[test]
    fn the_load_is_the_sum_at_the_fullest_step(instance in instances(Shape::every_feature())) {
        prop_assert_eq!(instance.load().bytes, summed_load(&instance, true));
        prop_assert_eq!(instance.load_without_in_place().bytes, summed_load(&instance, false));
        let curve = instance.load_curve();
        for step in 0..=instance.horizon().get() + 1 {
            prop_assert_eq!(curve.load_at(Step::new(step)).get(), in_use(&instance, None, step, true));
        }
        prop_assert_eq!(curve.points().last().map_or(0, |point| point.1.get()), 0);
        if instance.arenas().len() == 1 {
            let fullest = (0..instance.horizon().get())
                .find(|&step| in_use(&instance, None, step, true) == instance.load().bytes.get());
            prop_assert_eq!(instance.load().step.get(), fullest.unwrap_or(0));
        }
    }

    #[test]
    fn every_instance_has_a_valid_plan(instance in instances(Shape::every_feature().with_arenas(false))) {
        let plan = first_fit(&instance, &[], instance.in_place());
        prop_assert_eq!(oracle_height(&instance, &plan).ok(), plan.height(&instance));
    }
}

/// No bound lies above the least height, with pins, alignments, hand-overs and pauses.
fn check_bounds(instance: &Instance) -> Result<(), TestCaseError> {
    let bound = initial_bound(instance);
    let any = brute_force(instance);
    let without = brute_force_without_hand_over(instance);
    prop_assert!(any.is_some(), "every instance of the strategy has a plan");
    prop_assert!(any <= without || without.is_none());
    for (scope, least) in [(Scope::Any, any), (Scope::NoHandOver, without)] {
        if let Some(least) = least {
            prop_assert!(
                bound.best_claim(scope).value <= least,
                "{:?} in scope {:?} above {}",
                bound,
                scope,
                least
            );
            prop_assert!(alignment_bound(instance, scope).is_none_or(|bound| bound <= least));
        }
    }
    prop_assert!(any.is_none_or(|least| instance.load().bytes <= least && pin_bound(instance) <= least));
    prop_assert!(without.is_none_or(|least| instance.load_without_in_place().bytes <= least));
    Ok(())
}

proptest! {
    #![proptest_config(config(2500, FILE))]

    #[test]
    fn no_bound_lies_above_the_optimum(instance in instances(small(Shape::every_feature()))) {
        check_bounds(&instance)?;
    }

    #[test]
    fn no_bound_lies_above_the_optimum_of_aligned_buffers_that_hand_over(
        instance in instances(small(Shape::plain_buffers().with_alignment(true).with_in_place(true)))
    ) {
        check_bounds(&instance)?;
    }

    #[test]
    fn two_exact_methods_agree_on_plain_buffers(instance in instances(small(Shape::plain_buffers()))) {
        prop_assert_eq!(lowest_height(&instance, 1_000_000), brute_force(&instance));
    }

    #[test]
    fn offsets_need_no_finer_grain_than_the_granularity(
        instance in instances(small(Shape::every_feature().with_arenas(false)).with_max_buffers(4)),
        factor in 1..4_u64
    ) {
        let coarse = common::scale(&instance, factor);
        let least = brute_force(&coarse);
        // One extra byte after all other buffers makes brute force try every offset and changes nothing else.
        let step = coarse.horizon().get();
        let fine = Instance::builder()
            .buffers(coarse.buffers().to_vec())
            .buffer(common::buffer(1, step, step + 1))
            .in_place(coarse.in_place().to_vec())
            .apart(coarse.keep_apart_pairs().to_vec())
            .build()
            .expect("one more is valid");
        prop_assert_eq!(fine.offset_granularity(), 1);
        prop_assert_eq!(brute_force(&fine), least.max(Some(Bytes::new(1))));
    }
}

#[test]
fn the_granularity_is_coarse_where_it_can_be() {
    let align = |bytes| planlab_dsa::Alignment::new(bytes).expect("positive");
    let rows: [(&[(u64, u64)], u64); 6] = [
        (&[], 1),
        (&[(512, 1), (1024, 1)], 512),
        (&[(1024, 512), (2048, 256)], 1024),
        (&[(6, 4), (12, 1)], 2),
        (&[(12, 24)], 12),
        (&[(12, 8), (12, 6)], 2),
    ];
    for (buffers, grain) in rows {
        let buffers = buffers.iter().map(|&(size, a)| common::buffer(size, 0, 1).with_align(align(a)));
        let instance = Instance::from_buffers(buffers.collect()).expect("valid");
        assert_eq!(instance.offset_granularity(), grain, "{instance:?}");
    }
}
