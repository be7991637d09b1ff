//! The search alone, without a start and without other bounds, against brute force.

use planlab_dsa::testing::{Shape, brute_force_within, corpus, deep_config, instances, lowest_height};
use planlab_dsa::{
    Budget, Buffer, BufferId, Bytes, Descriptor, Honours, InPlace, Instance, LiveRange, Pause, Planner, Stop,
    execute,
};
use proptest::prelude::*;

use crate::feasibility::Problem;
use crate::placement::greedy::Fit;
use crate::placement::testing::{in_place, pseudo_random, scripted, test_buffer};
use crate::placement::{Order, Portfolio};

use super::minimise::{Task, minimise_height};
use super::{Exact, precedence};

fn search_alone() -> impl Planner {
    let descriptor = Exact.descriptor();
    let honours = Honours { in_place: false, ..descriptor.honours };
    scripted(Descriptor { honours, ..descriptor }, |run| {
        Task::peeled_from(run, 0).map_or(Ok(()), |task| minimise_height(run, &task))
    })
}

fn precedences_alone() -> impl Planner {
    scripted(Exact.descriptor(), |run| precedence::minimise_by_precedence(run, &mut |_, _| Ok(())))
}

/// The proven optimum, or `None` if no plan was found; any other outcome fails.
fn optimum(planner: &dyn Planner, instance: &Instance) -> Option<u64> {
    let outcome = execute(planner, instance, Budget { work: Some(50_000_000), ..Budget::default() }, 7);
    assert!(matches!(outcome.end, Ok(Stop::Proved | Stop::Finished)), "{:?}: {instance:?}", outcome.end);
    assert!(outcome.height().is_none() || outcome.is_optimal(), "{instance:?}");
    outcome.height().map(Bytes::get)
}

/// The least height with hand-overs and without; `None` if brute force would take more than a second.
fn lowest(instance: &Instance) -> Option<[Option<u64>; 2]> {
    brute_force_within(instance, 500_000).map(|both| both.map(|height| height.map(Bytes::get)))
}

proptest! {
    #![proptest_config(deep_config(2_000))]

    #[test]
    fn a_bare_search_has_the_optimum_without_hand_overs(
        instance in prop_oneof![
            instances(Shape::plain_buffers()),
            instances(Shape::plain_buffers().with_alignment(true).with_pins(true)),
            instances(Shape::plain_buffers().with_pauses(true).with_apart(true).with_pins(true).with_alignment(true)),
        ],
    ) {
        if let (Some([_, known]), true) = (lowest(&instance), Problem::new(&instance).is_some()) {
            prop_assert_eq!(optimum(&search_alone(), &instance), known);
        }
    }

    #[test]
    fn hand_overs_and_windows(
        instance in instances(Shape::every_feature().with_arenas(false).with_max_buffers(7)),
    ) {
        if let Some([known, _]) = lowest(&instance) {
            prop_assert_eq!(optimum(&precedences_alone(), &instance), known);
        }
    }
}

proptest! {
    #![proptest_config(deep_config(200))]

    #[test]
    fn larger_plain_instances(
        instance in instances(Shape::plain_buffers().with_max_buffers(13).with_max_size(9)),
    ) {
        if let Some(known) = lowest_height(&instance, 2_000_000) {
            prop_assert_eq!(optimum(&search_alone(), &instance), Some(known.get()));
        }
    }
}

/// A capacity below the optimum is infeasible and the optimum is feasible, never the other way round.
#[test]
fn capacities_around_the_optimum() {
    for case in corpus() {
        let instance = &case.instance;
        let (Some(known), true) = (case.optimum, instance.len() <= 30 && instance.in_place().is_empty())
        else {
            continue;
        };
        for planner in [&Exact as &dyn Planner, &Portfolio] {
            if planner.descriptor().honours.first_refused_feature(instance).is_some() || known == Bytes::ZERO
            {
                continue;
            }
            let end = |bytes: u64| {
                let target = Some(Bytes::new(bytes));
                execute(planner, instance, Budget { target, work: Some(50_000_000), ..Budget::default() }, 7)
                    .end
            };
            assert_eq!(end(known.get() - 1), Ok(Stop::Infeasible), "{}", case.name);
            let met = end(known.get());
            assert!(matches!(met, Ok(Stop::Proved | Stop::TargetReached)), "{}: {met:?}", case.name);
        }
    }
}

#[test]
fn a_portfolio_is_never_worse_than_its_greedy_planners() {
    for case in corpus() {
        if Portfolio.descriptor().honours.first_refused_feature(&case.instance).is_some() {
            continue;
        }
        let budget = || Budget { work: Some(200_000), ..Budget::default() };
        let mine = execute(&Portfolio, &case.instance, budget(), 7).height();
        for order in Order::ALL {
            let theirs = execute(&Fit::first_fit(order), &case.instance, budget(), 7).height();
            assert!(theirs.is_none() || mine <= theirs, "{}: {mine:?} {theirs:?}", case.name);
        }
    }
}

/// Windows are treated as whole buffers, so that large instances with them are planned in time.
#[test]
fn many_buffers_with_a_window_keep_the_limits() {
    let mut draw = pseudo_random(5);
    let mut buffers: Vec<Buffer> = (0..3_000_u32).map(|at| test_buffer(1 + draw(90), at, at + 9)).collect();
    let steps = LiveRange::new(3, 5).expect("not empty");
    let window = Some(Bytes::ZERO..Bytes::new(1));
    buffers[0] = buffers[0].clone().with_pauses(vec![Pause { steps, window }]);
    buffers[0].size = Bytes::new(50);
    let instance = Instance::from_buffers(buffers).expect("valid");
    let outcome = execute(&Exact, &instance, Budget { work: Some(3_000_000), ..Budget::default() }, 7);
    assert!(outcome.height().is_some() && outcome.end.is_ok(), "{:?}", outcome.end);
}

/// A chain of pairs that may each work in place: as tall as one buffer, or as two.
#[test]
fn a_long_chain_in_place_is_as_tall_as_one_buffer() {
    let instance = Instance::builder()
        .buffers((0..40).map(|at| test_buffer(64, at, at + 2)))
        .in_place((0..39).map(|at| in_place(at, at + 1)))
        .build()
        .expect("valid");
    for planner in [&Exact as &dyn Planner, &Portfolio] {
        let outcome = execute(planner, &instance, Budget { work: Some(1_000_000), ..Budget::default() }, 7);
        assert_eq!(outcome.height(), Some(Bytes::new(64)), "{}", planner.descriptor().key);
        assert!(outcome.is_optimal());
    }
}

/// Plans of merged buffers are valid plans of the original: no offer is invalid, no proof wrong. Nothing but a proof or a
/// limit ends the search.
#[test]
fn hand_overs_of_larger_instances_are_searched_to_the_limit() {
    let mut draw = pseudo_random(3);
    for case in 0..60_u32 {
        let (count, steps) = if case % 3 == 0 { (90, 36) } else { (30, 12) };
        let buffers: Vec<Buffer> = (0..count)
            .map(|_| {
                let start = u32::try_from(draw(steps)).expect("small");
                let width = 1 + u32::try_from(draw(5)).expect("small");
                test_buffer(4 + 4 * draw(3), start, start + width)
            })
            .collect();
        let mut builder = Instance::builder();
        for (input, a) in buffers.iter().enumerate() {
            for (output, b) in buffers.iter().enumerate() {
                if input != output && a.live.end().get() == b.live.start().get() + 1 && b.size <= a.size {
                    let id = BufferId::from_index;
                    builder = builder.in_place([InPlace { input: id(input), output: id(output) }]);
                }
            }
        }
        let instance = builder.buffers(buffers).build().expect("valid");
        for (planner, work) in [(&Exact as &dyn Planner, 100_000), (&Portfolio, 500_000)] {
            let budget = Budget { work: Some(work), ..Budget::default() };
            let outcome = execute(planner, &instance, budget, 7);
            let is_over = matches!(outcome.end, Ok(Stop::Proved | Stop::WorkLimit));
            assert!(is_over, "{} {:?}", planner.descriptor().key, outcome.end);
            assert!(outcome.height() >= Some(instance.load().bytes));
        }
    }
}

#[test]
fn known_optima_are_proved() {
    for case in corpus() {
        let instance = &case.instance;
        let (Some(known), true) = (case.optimum, instance.len() <= 100) else { continue };
        if Exact.descriptor().honours.first_refused_feature(instance).is_none() {
            assert_eq!(optimum(&Exact, instance), Some(known.get()), "{}", case.name);
        }
    }
}
