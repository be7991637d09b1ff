//! Tests of what all searches here have in common.

use planlab_dsa::testing::{Shape, instances};
use planlab_dsa::{Budget, Bytes, Descriptor, Instance, Offset, Outcome, Planner, Run, execute};
use proptest::prelude::*;

use super::annealing::AnnealingSearch;
use super::decoding::{Model, Search, Walk};
use super::hill_climb::{tvm, vela};
use super::lns::LnsSearch;
use super::tabu::TabuSearch;
use super::{Annealing, HONOURS, HillClimbTvm, HillClimbVela, Lns, Tabu, start};
use crate::demands::can_stand;
use crate::placement::Order;
use crate::placement::greedy::{Fit, first_fit};
use crate::placement::testing::{
    in_place, pseudo_random, scripted, test_buffer, test_descriptor, test_instance,
};

fn planners() -> [Box<dyn Planner>; 5] {
    [Box::new(HillClimbTvm), Box::new(HillClimbVela), Box::new(Annealing), Box::new(Tabu), Box::new(Lns)]
}

fn run<'i>(planner: &dyn Planner, instance: &'i Instance, work: u64, seed: u64) -> Outcome<'i> {
    execute(planner, instance, Budget { work: Some(work), ..Budget::default() }, seed)
}

/// 60 buffers for which no greedy order reaches the load.
fn hard() -> Instance {
    let mut draw = pseudo_random(11);
    let row = |_| {
        let start = u32::try_from(draw(40)).expect("small");
        let end = start + 1 + u32::try_from(draw(12)).expect("small");
        (10 + draw(90), start, end)
    };
    test_instance(&(0..60).map(row).collect::<Vec<_>>())
}

fn best_greedy(instance: &Instance) -> Option<Bytes> {
    let heights =
        Order::ALL.map(|order| execute(&Fit::first_fit(order), instance, Budget::default(), 0).height());
    heights.into_iter().flatten().min()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn none_is_worse_than_its_start(
        instance in instances(Shape::plain_buffers().with_max_buffers(30).with_max_steps(20).with_alignment(true)),
        seed in any::<u64>(),
    ) {
        let greedy = best_greedy(&instance);
        for planner in &planners()[2..] {
            let height = run(planner, &instance, 20_000, seed).height();
            prop_assert!(height.is_some() && height <= greedy, "{}", planner.descriptor().key);
        }
        let starts = [start::by_size_and_overlaps(&instance), start::by_urgency(&instance)];
        for (planner, order) in planners().iter().zip(starts) {
            let offsets = first_fit(&instance, &order, &mut |_| Ok(())).expect("no limit");
            let plan = planlab_dsa::Plan::from_offsets(offsets.into_iter().map(Offset::new).collect::<Vec<_>>());
            let height = run(planner, &instance, 20_000, seed).height();
            prop_assert!(height.is_some() && height <= plan.height(&instance), "{}", planner.descriptor().key);
        }
    }
}

#[test]
fn each_beats_its_start_where_there_is_room() {
    let instance = hard();
    let greedy = best_greedy(&instance).expect("a plan");
    assert!(greedy > instance.load().bytes, "the instance is too easy for this test");
    for planner in &planners()[2..] {
        let height = run(planner, &instance, 500_000, 1).height().expect("a plan");
        assert!(height < greedy, "{}: {height} against {greedy}", planner.descriptor().key);
    }
}

#[test]
fn the_same_seed_gives_the_same_plan_and_seeds_change_plans() {
    let instance = hard();
    for planner in &planners() {
        let key = planner.descriptor().key;
        let plan = |seed| run(planner, &instance, 60_000, seed).best.map(|best| best.as_plan().clone());
        assert_eq!(plan(5), plan(5), "{key}");
        let all: Vec<_> = (0..8).map(plan).collect();
        assert!(all.iter().any(|other| *other != all[0]), "{key}: eight seeds, one plan");
    }
}

/// All searches in turns, each on a fork of one run.
fn turns() -> impl Planner {
    let descriptor = Descriptor { randomized: true, ..test_descriptor("turns", HONOURS) };
    scripted(descriptor, |run| {
        let Some(start) = start::best_start(run)? else { return Ok(()) };
        let Some(model) = Model::new(run.instance(), &mut |work| run.tick(work))? else { return Ok(()) };
        let model = std::sync::Arc::new(model);
        let walk = Walk::with_model(run, &model, &start);
        let mut searches: Vec<(Run<'_>, Box<dyn Search>)> = vec![
            (run.fork(), Box::new(AnnealingSearch::new(walk.clone()))),
            (run.fork(), Box::new(TabuSearch::new(walk.clone()))),
            (run.fork(), Box::new(tvm::Climb::new(walk.clone()))),
            (run.fork(), Box::new(vela::Climb::new(walk))),
            (run.fork(), Box::new(LnsSearch::new(run, model, &start))),
        ];
        while !searches.is_empty() {
            let mut at = 0;
            while let Some((fork, search)) = searches.get_mut(at) {
                if search.run_slice(fork, 5_000)? { at += 1 } else { drop(searches.swap_remove(at)) }
            }
        }
        Ok(())
    })
}

#[test]
fn searches_take_turns_on_one_run() {
    let instance = hard();
    let outcome = run(&turns(), &instance, 1_000_000, 3);
    assert!(outcome.end.is_ok(), "{:?}", outcome.end);
    assert!(outcome.height() < best_greedy(&instance));
    let plan = |outcome: Outcome<'_>| outcome.best.map(|best| best.as_plan().clone());
    let again = run(&turns(), &instance, 1_000_000, 3);
    assert_eq!(plan(outcome), plan(again));
}

#[test]
fn pins_that_need_a_hand_over_leave_no_plan() {
    let pinned = |start: u32| test_buffer(4, start, start + 2).with_pin(Offset::new(0));
    let builder = Instance::builder().buffers([pinned(0), pinned(1)]).in_place([in_place(0, 1)]);
    let instance = builder.build().expect("well formed");
    assert!(!can_stand(&instance));
    for planner in &planners() {
        assert!(run(planner, &instance, 1_000, 0).best.is_none());
    }
}
