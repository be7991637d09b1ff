//! The random instances and plans cover every feature that they should.

use std::collections::BTreeMap;

use planlab_dsa::Instance;
use planlab_dsa::testing::{Shape, instances, plans_for};
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::TestRunner;

fn samples(shape: Shape, count: usize) -> Vec<Instance> {
    let mut runner = TestRunner::deterministic();
    let strategy = instances(shape);
    (0..count).map(|_| strategy.new_tree(&mut runner).expect("no rejects").current()).collect()
}

/// The number of instances with each feature.
fn features(instances: &[Instance]) -> BTreeMap<&'static str, usize> {
    let any = |has: &dyn Fn(&Instance) -> bool| instances.iter().filter(|instance| has(instance)).count();
    let buffers = |has: fn(&planlab_dsa::Buffer) -> bool| any(&move |i| i.buffers().iter().any(has));
    BTreeMap::from([
        ("pins", buffers(|b| b.pin.is_some())),
        ("alignment", buffers(|b| b.align.get() > 1)),
        ("pauses", buffers(|b| b.pauses.iter().any(|pause| pause.window.is_none()))),
        ("windows", buffers(|b| b.pauses.iter().any(|pause| pause.window.is_some()))),
        ("in-place", any(&|i| !i.in_place().is_empty())),
        ("arenas", any(&|i| i.arenas().len() > 1)),
        ("capacities", any(&|i| i.arenas().iter().any(|arena| arena.capacity.is_some()))),
        ("apart", any(&|i| !i.keep_apart_pairs().is_empty())),
    ])
}

#[test]
fn every_feature_appears_where_it_is_asked_for_and_only_there() {
    let all = features(&samples(Shape::every_feature(), 400));
    assert!(all.values().all(|&count| count >= 60), "{all:?}");
    let none = features(&samples(Shape::plain_buffers(), 400));
    assert!(none.values().all(|&count| count == 0), "{none:?}");
    let shapes = [
        (Shape::plain_buffers().with_pins(true), vec!["pins"]),
        (Shape::plain_buffers().with_alignment(true), vec!["alignment"]),
        (Shape::plain_buffers().with_pauses(true), vec!["pauses"]),
        (Shape::plain_buffers().with_windows(true), vec!["windows"]),
        (Shape::plain_buffers().with_in_place(true), vec!["in-place"]),
        (Shape::plain_buffers().with_arenas(true), vec!["arenas", "capacities"]),
        (Shape::plain_buffers().with_apart(true), vec!["apart"]),
    ];
    for (shape, expected) in shapes {
        let found = features(&samples(shape, 100));
        let present: Vec<&str> =
            found.iter().filter(|(_, count)| **count > 0).map(|(name, _)| *name).collect();
        assert_eq!(present, expected, "{shape:?}");
    }
}

#[test]
fn sizes_stay_within_the_shape() {
    let shape = Shape::every_feature().with_max_buffers(3).with_max_steps(4).with_max_size(5);
    for instance in samples(shape, 300) {
        assert!(instance.len() <= 3);
        assert!(instance.horizon().get() <= 5, "a follower may end one step later");
        assert!(instance.buffers().iter().all(|buffer| (1..=5).contains(&buffer.size.get())));
    }
}

#[test]
fn plans_are_right_nearly_right_and_wrong_in_every_way() {
    let mut runner = TestRunner::deterministic();
    let mut kinds = BTreeMap::<&'static str, usize>::new();
    for instance in samples(Shape::every_feature(), 400) {
        let strategy = plans_for(&instance);
        for _ in 0..10 {
            let plan = strategy.new_tree(&mut runner).expect("no rejects").current();
            let handed_over = !plan.in_place.is_empty();
            let kind = match instance.verify(plan) {
                Ok(_) if handed_over => "right, with hand-overs",
                Ok(_) => "right",
                Err(violation) => violation.kind(),
            };
            *kinds.entry(kind).or_default() += 1;
        }
    }
    let expected = [
        "right",
        "right, with hand-overs",
        "wrong-count",
        "overflow",
        "misaligned",
        "off-pin",
        "hand-over",
        "together",
        "overlap",
        "over-capacity",
    ];
    for kind in expected {
        assert!(kinds.get(kind).is_some_and(|&count| count >= 20), "{kind}: {kinds:?}");
    }
    assert_eq!(kinds.len(), expected.len(), "{kinds:?}");
    assert!(kinds["right"] >= 800, "{kinds:?}");
}
