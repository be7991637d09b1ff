//! Tests of properties that every planner, or every planner of a kind, has on random instances.

use planlab_dsa::testing::{Shape, instances, oracle_height, scaled_and_shifted, test_buffer, test_instance};
use planlab_dsa::{
    Budget, Buffer, BufferId, Bytes, Guarantee, InPlace, Instance, LiveRange, Offset, PlanError, Planner,
    execute,
};
use planlab_solvers::placement::Order;
use planlab_solvers::{find_planner, registry};
use proptest::prelude::*;

/// All planners except the exact ones.
fn heuristics() -> impl Iterator<Item = Box<dyn Planner>> {
    registry().into_iter().filter(|planner| planner.descriptor().guarantee != Guarantee::Exact)
}

/// No limit, except for searches that would not end without one.
fn budget(planner: &dyn Planner) -> Budget {
    Budget { work: planner.descriptor().randomized.then_some(3_000), ..Budget::default() }
}

fn offsets(planner: &dyn Planner, instance: &Instance) -> Option<Vec<u64>> {
    let best = execute(planner, instance, budget(planner), 0).best?;
    Some(best.offsets().iter().map(|offset| offset.get()).collect())
}

fn check_valid(planner: &dyn Planner, instance: &Instance) -> Result<(), TestCaseError> {
    let key = planner.descriptor().key;
    let outcome = execute(planner, instance, budget(planner), 0);
    let refused = planner.descriptor().honours.first_refused_feature(instance);
    match (&outcome.end, refused) {
        (Err(PlanError::Unsupported(feature)), Some(refused)) if *feature == refused => return Ok(()),
        (Ok(_), None) => {}
        (end, _) => prop_assert!(false, "{}: {:?}, unsupported: {:?}", key, end, refused),
    }
    if let Some(best) = outcome.best {
        prop_assert_eq!(oracle_height(instance, best.as_plan()).ok(), Some(best.height()), "{}", key);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn no_plan_breaks_a_rule(
        instance in prop_oneof![
            instances(Shape::every_feature().with_max_buffers(24)),
            instances(
                Shape::plain_buffers().with_max_buffers(40).with_max_steps(25).with_pins(true).with_alignment(true).with_in_place(true),
            ),
        ],
    ) {
        for planner in heuristics() {
            check_valid(&planner, &instance)?;
        }
    }
}

proptest! {
    #[test]
    fn scaled_sizes_and_shifted_steps_give_the_same_plan(
        instance in instances(Shape::plain_buffers().with_max_buffers(40).with_max_steps(25).with_in_place(true)),
        factor in 2_u64..1000,
        shift in 1_u32..1000,
    ) {
        let other = scaled_and_shifted(&instance, factor, shift).expect("small");
        // The published rules may depend on the unit of the sizes.
        for planner in heuristics().filter(|planner| !planner.descriptor().key.ends_with("/published")) {
            let scaled = |offsets: Vec<u64>| offsets.into_iter().map(|offset| offset * factor).collect();
            let expected: Option<Vec<u64>> = offsets(&planner, &instance).map(scaled);
            prop_assert_eq!(offsets(&planner, &other), expected, "{}", planner.descriptor().key);
        }
    }

    #[test]
    fn greedy_plans_are_those_of_the_plain_loops(
        instance in instances(Shape::plain_buffers().with_max_buffers(60).with_max_steps(40).with_max_size(40).with_alignment(true)),
    ) {
        for order in Order::ALL {
            for (family, place) in [("first-fit", lowest as Rule), ("best-fit-gap", smallest_gap as Rule)] {
                let key = format!("{family}/{order}");
                let planner = find_planner(&key).expect("registered");
                let expected = plain(&instance, &order.sort_buffers(&instance), place);
                prop_assert_eq!(offsets(&planner, &instance), Some(expected), "{}", key);
            }
        }
        let by_size = find_planner("greedy-by-size").expect("registered");
        let expected = plain(&instance, &Order::Size.sort_buffers(&instance), smallest_gap);
        prop_assert_eq!(offsets(&by_size, &instance), Some(expected));
    }

    #[test]
    fn the_best_of_a_family_is_its_first_lowest_plan(
        instance in instances(Shape::plain_buffers().with_max_buffers(40).with_max_steps(25)),
    ) {
        for (family, parts) in BEST {
            let plan = |name: &str| {
                let planner = find_planner(&format!("{family}/{name}")).expect("registered");
                let best = execute(&planner, &instance, Budget::default(), 0).best.expect("a plan");
                (best.height(), best.offsets().to_vec())
            };
            let lowest = parts.iter().map(|name| plan(name)).min_by_key(|(height, _)| *height);
            prop_assert_eq!(Some(plan("best")), lowest, "{}", family);
        }
    }

    #[test]
    fn the_greedies_of_other_tools_are_their_published_loops(
        instance in instances(Shape::plain_buffers().with_max_buffers(60).with_max_steps(40).with_max_size(40).with_alignment(true)),
    ) {
        let cases: [(&str, Key, Rule); 6] = [
            ("tflite-arena", tflite_key, tflite_gap),
            ("tflm-greedy", tflm_key, lowest),
            ("tvm/by-size", |all, id| vec![!size(all, id), !conflicts(all, id)], top),
            ("tvm/by-conflicts", |all, id| vec![!conflicts(all, id), !size(all, id)], top),
            ("xla/temporal", |all, id| vec![!width(all, id), !size(all, id)], smallest_chunk),
            ("xla/spatial", |all, id| vec![!size(all, id), !width(all, id)], smallest_chunk),
        ];
        for (name, key, rule) in cases {
            let planner = find_planner(name).expect("registered");
            let mut order: Vec<BufferId> = instance.ids().collect();
            order.sort_by_key(|&id| key(&instance, id));
            let expected = plain(&instance, &order, rule);
            prop_assert_eq!(offsets(&planner, &instance), Some(expected), "{}", name);
        }
    }
}

/// Families whose best plan is the lowest of others, the first of equals.
const BEST: [(&str, &[&str]); 3] = [
    ("xla", &["spatial", "temporal"]),
    ("somas", &["many-objects", "single-object"]),
    (
        "oneflow",
        &[
            "mem-size-first-compact",
            "lifetime-first-compact",
            "time-line-compact",
            "mem-volume-first-compact",
            "mem-size-first-non-compact",
            "lifetime-first-non-compact",
            "time-line-non-compact",
            "mem-volume-first-non-compact",
        ],
    ),
];

/// The key by which buffers are taken, the smallest first.
type Key = fn(&Instance, BufferId) -> Vec<u64>;

fn size(instance: &Instance, id: BufferId) -> u64 {
    instance.buffer(id).size.get()
}

fn width(instance: &Instance, id: BufferId) -> u64 {
    instance.buffer(id).live.width().into()
}

fn conflicts(instance: &Instance, id: BufferId) -> u64 {
    let live = instance.buffer(id).live;
    instance.buffers().iter().map(|other| u64::from(other.live.overlaps(live))).sum()
}

fn tflite_key(instance: &Instance, id: BufferId) -> Vec<u64> {
    let live = instance.buffer(id).live;
    if instance.buffers().iter().all(|other| live.encloses(other.live)) {
        vec![0]
    } else {
        vec![1, !size(instance, id), live.start().get().into()]
    }
}

fn tflm_key(instance: &Instance, id: BufferId) -> Vec<u64> {
    vec![!size(instance, id), u64::from(!id.get())]
}

/// The offset of a buffer, given the overlapping ones in ascending order of offset.
type Rule = fn(&Buffer, &[(u64, u64)]) -> u64;

/// Places buffers in an order by scanning all placed buffers.
fn plain(instance: &Instance, order: &[BufferId], rule: Rule) -> Vec<u64> {
    let mut offsets: Vec<Option<u64>> = vec![None; instance.len()];
    for &id in order {
        let buffer = instance.buffer(id);
        let mut there: Vec<(u64, u64)> = instance
            .ids()
            .filter(|&other| instance.buffer(other).live.overlaps(buffer.live))
            .filter_map(|other| {
                let offset = offsets[other.index()]?;
                Some((offset, offset + instance.buffer(other).size.get()))
            })
            .collect();
        there.sort_unstable();
        offsets[id.index()] = Some(rule(buffer, &there));
    }
    offsets.into_iter().map(|offset| offset.expect("placed")).collect()
}

fn lowest(buffer: &Buffer, there: &[(u64, u64)]) -> u64 {
    let ends = there.iter().map(|&(_, end)| end).chain([0]);
    let aligned = ends.map(|end| buffer.align.round_up(end).expect("small"));
    let is_free =
        |&offset: &u64| there.iter().all(|&(low, high)| high <= offset || offset + buffer.size.get() <= low);
    aligned.filter(is_free).min().expect("above everything it is free")
}

fn smallest_gap(buffer: &Buffer, there: &[(u64, u64)]) -> u64 {
    best_gap(buffer, there, |low, below, _| (low - below, low - below))
}

fn tflite_gap(buffer: &Buffer, there: &[(u64, u64)]) -> u64 {
    best_gap(buffer, there, |low, below, offset| (low - offset, low - below))
}

fn smallest_chunk(buffer: &Buffer, there: &[(u64, u64)]) -> u64 {
    best_gap(buffer, there, |low, _, offset| (low - offset, low - offset))
}

/// The first gap that is smaller than the smallest before it. `measure` gets the next offset in use, the end below it
/// and the aligned offset between them; it returns the size to compare and the size to remember.
fn best_gap(buffer: &Buffer, there: &[(u64, u64)], measure: fn(u64, u64, u64) -> (u64, u64)) -> u64 {
    let (mut best, mut below) = (None, 0);
    for &(low, high) in there {
        let offset = buffer.align.round_up(below).expect("small");
        if offset + buffer.size.get() <= low {
            let (seen, kept) = measure(low, below, offset);
            if best.is_none_or(|(gap, _)| seen < gap) {
                best = Some((kept, offset));
            }
        }
        below = below.max(high);
    }
    best.map_or_else(|| buffer.align.round_up(below).expect("small"), |(_, offset)| offset)
}

fn top(buffer: &Buffer, there: &[(u64, u64)]) -> u64 {
    let end = there.iter().map(|&(_, end)| end).max().unwrap_or(0);
    buffer.align.round_up(end).expect("small")
}

/// Buffers by size, start and end.
type Rows = &'static [(u64, u32, u32)];

const TURNS: Rows = &[(4, 0, 2), (8, 1, 3), (4, 2, 4)];
const CHAIN: Rows = &[(16, 0, 2), (8, 1, 3), (64, 2, 4), (32, 3, 5), (8, 4, 6)];
const OPTIMAL: Rows = &[(3, 0, 2), (2, 1, 5), (2, 3, 6), (1, 4, 7)];
/// A load of 20, but no plan lower than 21.
const ABOVE_LOAD: Rows =
    &[(11, 0, 3), (6, 6, 8), (6, 1, 5), (3, 1, 4), (4, 3, 6), (7, 5, 7), (7, 3, 7), (12, 7, 8)];
/// Four buffers around a fifth.
const WHEEL: Rows = &[(2, 0, 2), (4, 2, 3), (2, 1, 3), (4, 0, 1), (2, 1, 2)];

#[test]
fn small_examples_have_their_known_heights() {
    let cases: [(&str, Rows, u64); 18] = [
        ("bump", &[(8, 0, 1), (4, 1, 2)], 12),
        ("greedy-by-breadth", TURNS, 12),
        ("greedy-by-size", TURNS, 12),
        ("boxing", TURNS, 12),
        ("mxnet-sharing", CHAIN, 96),
        ("patent-free-list", CHAIN, 96),
        ("shared-objects/by-breadth", CHAIN, 96),
        ("shared-objects/by-size", CHAIN, 104),
        ("shared-objects/in-order", CHAIN, 96),
        ("shared-objects/size-distance", CHAIN, 96),
        ("annealing", OPTIMAL, 5),
        ("hill-climb/tvm", OPTIMAL, 5),
        ("hill-climb/vela", OPTIMAL, 5),
        ("lns", OPTIMAL, 5),
        ("tabu", OPTIMAL, 5),
        ("portfolio", OPTIMAL, 5),
        ("exact", ABOVE_LOAD, 21),
        ("block-building", WHEEL, 6),
    ];
    for (key, rows, height) in cases {
        let instance = test_instance(rows);
        let outcome = execute(&find_planner(key).expect("registered"), &instance, Budget::default(), 0);
        assert_eq!(outcome.height(), Some(Bytes::new(height)), "{key}");
        assert!(outcome.is_optimal() || ![OPTIMAL, ABOVE_LOAD, WHEEL].contains(&rows), "{key}");
    }
}

#[test]
fn small_examples_have_their_known_offsets() {
    let cases: [(&str, Rows, &[u64]); 12] = [
        ("oneflow/lifetime-first-compact", &[(4, 0, 3), (2, 0, 1), (4, 0, 3), (3, 2, 3)], &[0, 8, 4, 8]),
        ("somas/many-objects", TURNS, &[8, 0, 8]),
        ("tflite-arena", &[(4, 0, 2), (8, 1, 3), (1, 0, 3)], &[9, 1, 0]),
        ("tflm-greedy", &[(4, 0, 2), (8, 1, 3), (4, 1, 4)], &[12, 0, 8]),
        // The last has 8 bytes of room below the third, and does not take them.
        ("tvm/by-size", &[(4, 0, 2), (8, 1, 3), (6, 2, 5), (2, 4, 6)], &[8, 0, 8, 14]),
        ("xla/temporal", &[(4, 0, 5), (8, 1, 3), (4, 2, 4)], &[0, 4, 12]),
        ("xla/spatial", &[(4, 0, 5), (8, 1, 3), (4, 2, 4)], &[8, 0, 12]),
        ("xla/best", &[(4, 0, 5), (8, 1, 3), (4, 2, 4)], &[8, 0, 12]),
        ("executorch", &[(8, 0, 2), (4, 2, 6), (3, 3, 5), (2, 1, 3)], &[0, 0, 4, 8]),
        ("executorch/closest", &[(8, 0, 2), (4, 1, 2), (5, 2, 3)], &[0, 8, 8]),
        ("best-fit", &[(4, 0, 2), (8, 1, 4), (4, 2, 4)], &[8, 0, 8]),
        ("best-fit/reference", &[(4, 0, 2), (8, 1, 4), (4, 2, 4)], &[8, 0, 8]),
    ];
    for (key, rows, expected) in cases {
        let found = offsets(&find_planner(key).expect("registered"), &test_instance(rows));
        assert_eq!(found.as_deref(), Some(expected), "{key}");
    }
}

#[test]
fn a_chain_of_hand_overs_stays_in_one_place() {
    let link = |start: u32| test_buffer(8, start, start + 2);
    let pairs = (0..5).map(|id| InPlace { input: BufferId::new(id), output: BufferId::new(id + 1) });
    let instance = Instance::builder().buffers((0..6).map(link)).in_place(pairs).build().expect("valid");
    assert_eq!(
        (instance.load().bytes, instance.load_without_in_place().bytes),
        (Bytes::new(8), Bytes::new(16))
    );
    for key in ["first-fit/start", "best-fit-gap/start"] {
        let best = execute(&find_planner(key).expect("registered"), &instance, Budget::default(), 0).best;
        let best = best.expect("a plan");
        assert_eq!((best.height(), best.in_place().len()), (Bytes::new(8), 5), "{key}");
    }
}

#[test]
fn a_paused_buffer_lends_its_place() {
    use planlab_dsa::Pause;
    let steps = LiveRange::new(2, 4).expect("not empty");
    let long =
        test_buffer(8, 0, 6).with_pauses([Pause { steps, window: Some(Bytes::new(0)..Bytes::new(2)) }]);
    let instance = Instance::from_buffers(vec![long, test_buffer(6, 2, 4)]).expect("valid");
    let first_fit = find_planner("first-fit/width").expect("registered");
    assert_eq!(offsets(&first_fit, &instance), Some(vec![0, 2]));
}

#[test]
fn pins_that_cannot_stand_together_leave_no_plan() {
    let pinned = |start: u32, offset: u64| test_buffer(4, start, start + 2).with_pin(Offset::new(offset));
    let pair = InPlace { input: BufferId::new(0), output: BufferId::new(1) };
    let instance = Instance::builder()
        .buffers([pinned(0, 0), pinned(1, 2)])
        .in_place([pair])
        .build()
        .expect("well formed");
    for planner in registry() {
        let outcome = execute(&planner, &instance, Budget::default(), 0);
        assert!(outcome.best.is_none(), "{}", planner.descriptor().key);
    }
}
