//! The verifier's report on each kind of invalid plan: buffers, steps and message.

use crate::common::{apart, arena, buffer, offsets, pair, range};
use planlab_dsa::{
    Alignment, ArenaId, BufferId, Bytes, Instance, InstanceBuilder, Offset, Pause, Plan, Violation,
};

fn build(builder: InstanceBuilder) -> Instance {
    builder.build().expect("valid")
}

/// The violation's kind, buffers, steps and message.
fn verdict(instance: &Instance, plan: Plan) -> (&'static str, Vec<u32>, Option<(u32, u32)>, String) {
    let violation = instance.verify(plan).expect_err("the plan is wrong");
    let buffers = violation.buffers().into_iter().map(BufferId::get).collect();
    (violation.kind(), buffers, violation.steps().map(Into::into), violation.to_string())
}

#[test]
fn wrong_counts() {
    let instance = build(Instance::builder().buffers([buffer(4, 0, 1), buffer(4, 0, 1)]));
    for (plan, got) in [(offsets(&[]), 0), (offsets(&[0]), 1), (offsets(&[0, 4, 8]), 3)] {
        let words = format!("the plan has {got} offsets, but the instance has 2 buffers");
        assert_eq!(verdict(&instance, plan), ("wrong-count", vec![], None, words));
    }
}

#[test]
fn offsets_near_two_to_the_64() {
    let instance = build(Instance::builder().buffers([buffer(4, 0, 1), buffer(4, 0, 1)]));
    let top = u64::MAX - 4;
    assert_eq!(instance.verify(offsets(&[0, top])).map(|plan| plan.height()), Ok(Bytes::new(u64::MAX)));
    let words = format!("buffer 1 at offset {}: its end lies past 2^64 - 1", top + 1);
    assert_eq!(verdict(&instance, offsets(&[0, top + 1])), ("overflow", vec![1], None, words));
    assert_eq!(verdict(&instance, offsets(&[u64::MAX, 0])).0, "overflow");
}

#[test]
fn heights_of_arenas_that_sum_past_two_to_the_64() {
    let second = buffer(4, 0, 1).in_arena(ArenaId::new(1));
    let builder = Instance::builder().buffers([buffer(4, 0, 1), second]);
    let instance = build(builder.arenas([arena(None), arena(None)]));
    let half = 1 << 63;
    assert_eq!(verdict(&instance, offsets(&[half - 4, half - 4])).1, [1]);
    assert!(instance.verify(offsets(&[half - 4, half - 5])).is_ok());
}

#[test]
fn misaligned_and_off_the_pin() {
    let align = Alignment::new(8).expect("positive");
    let pinned = buffer(4, 0, 1).with_pin(Offset::new(16));
    let instance = build(Instance::builder().buffers([buffer(4, 0, 1).with_align(align), pinned]));
    assert!(instance.verify(offsets(&[8, 16])).is_ok());
    let words = "buffer 0 at offset 12: not a multiple of its alignment 8".to_owned();
    assert_eq!(verdict(&instance, offsets(&[12, 16])), ("misaligned", vec![0], None, words));
    let words = "buffer 1 at offset 0: it is pinned at 16".to_owned();
    assert_eq!(verdict(&instance, offsets(&[8, 0])), ("off-pin", vec![1], None, words));
}

#[test]
fn overlaps_name_the_steps_and_addresses_that_are_shared() {
    let instance = build(Instance::builder().buffers([buffer(8, 0, 5), buffer(6, 3, 9), buffer(4, 4, 6)]));
    let words = "buffers 0 and 1 overlap at steps [3, 5), addresses [6, 8)".to_owned();
    assert_eq!(verdict(&instance, offsets(&[0, 6, 20])), ("overlap", vec![0, 1], Some((3, 5)), words));
    // The verifier reports the overlap at step 3 before the one at step 4.
    assert_eq!(verdict(&instance, offsets(&[0, 2, 2])).1, [0, 1]);
    assert_eq!(verdict(&instance, offsets(&[0, 20, 7])).2, Some((4, 5)));
    assert_eq!(verdict(&instance, offsets(&[0, 8, 8])).2, Some((4, 6)));
}

#[test]
fn overlaps_of_windows_are_those_of_the_parts_in_use() {
    let pause = |window| Pause { steps: range(2, 4), window };
    let window = Some(Bytes::new(4)..Bytes::new(6));
    let sleeper = buffer(10, 0, 6).with_pauses([pause(window)]);
    let instance = build(Instance::builder().buffers([sleeper, buffer(4, 2, 4)]));
    assert!(instance.verify(offsets(&[0, 0])).is_ok());
    let words = "buffers 0 and 1 overlap at steps [2, 4), addresses [5, 6)".to_owned();
    assert_eq!(verdict(&instance, offsets(&[0, 5])), ("overlap", vec![0, 1], Some((2, 4)), words));
    let sleeper = buffer(10, 0, 6).with_pauses([pause(None)]);
    let instance = build(Instance::builder().buffers([sleeper, buffer(4, 3, 5)]));
    assert_eq!(verdict(&instance, offsets(&[0, 3])).2, Some((4, 5)));
}

#[test]
fn hand_overs_that_are_not_allowed() {
    let rows =
        [(8, 0, 2), (8, 1, 3), (4, 1, 3), (8, 2, 4)].map(|(size, start, end)| buffer(size, start, end));
    let permissions = [pair(0, 1), pair(0, 2), pair(1, 3), pair(2, 3)];
    let permissions = permissions.into_iter().filter(|p| *p != pair(2, 3));
    let instance = build(Instance::builder().buffers(rows).in_place(permissions));
    let with = |all: &[u64], in_place: &[(u32, u32)]| {
        let in_place = in_place.iter().map(|&(input, output)| pair(input, output)).collect();
        Plan { in_place, ..offsets(all) }
    };
    assert!(instance.verify(with(&[0, 0, 8, 0], &[(0, 1), (1, 3)])).is_ok());
    let rows = [
        (with(&[0, 8, 16, 8], &[(3, 0)]), (3, 0), 0, "the instance does not permit it"),
        (with(&[0, 8, 16, 8], &[(0, 9)]), (0, 9), 0, "the instance does not permit it"),
        (with(&[0, 0, 4, 0], &[(0, 1), (0, 2)]), (0, 2), 1, "the input's place was taken already"),
        (with(&[0, 0, 8, 0], &[(0, 1), (0, 1)]), (0, 1), 1, "the input's place was taken already"),
        (with(&[0, 4, 16, 0], &[(0, 1)]), (0, 1), 1, "its bytes do not lie inside the input's"),
        (with(&[0, 16, 6, 0], &[(0, 2)]), (0, 2), 1, "its bytes do not lie inside the input's"),
    ];
    for (plan, (input, output), step, reason) in rows {
        let words = format!("buffer {output} takes the place of buffer {input}: {reason}");
        let expected = ("hand-over", vec![input, output], Some((step, step + 1)), words);
        assert_eq!(verdict(&instance, plan), expected);
    }
}

#[test]
fn a_place_is_taken_by_one_and_given_by_one() {
    let instance = build(
        Instance::builder()
            .buffers([buffer(8, 0, 2), buffer(8, 0, 2), buffer(8, 1, 3)])
            .in_place([pair(0, 2), pair(1, 2)]),
    );
    let plan = Plan { in_place: vec![pair(0, 2), pair(1, 2)], ..offsets(&[0, 8, 0]) };
    assert!(verdict(&instance, plan).3.ends_with("the output has a place already"));
}

#[test]
fn a_circle_of_hand_overs_holds_no_place() {
    let momentary = || buffer(4, 1, 2);
    let instance = build(
        Instance::builder().buffers([momentary(), momentary(), momentary(), buffer(4, 0, 3)]).in_place([
            pair(0, 1),
            pair(1, 2),
            pair(2, 0),
        ]),
    );
    let circle = Plan { in_place: vec![pair(0, 1), pair(1, 2), pair(2, 0)], ..offsets(&[0, 0, 0, 0]) };
    let (kind, buffers, steps, words) = verdict(&instance, circle);
    assert_eq!((kind, buffers, steps), ("hand-over", vec![2, 0], Some((1, 2))));
    assert!(words.ends_with("the place comes back to where it was"), "{words}");
    let chain = Plan { in_place: vec![pair(1, 2), pair(0, 1)], ..offsets(&[0, 0, 0, 4]) };
    assert!(instance.verify(chain).is_ok());
    let chain = Plan { in_place: vec![pair(1, 2), pair(0, 1)], ..offsets(&[0, 0, 0, 0]) };
    assert_eq!(verdict(&instance, chain).1, [3, 0]);
}

#[test]
fn the_hand_over_covers_one_step_only() {
    let builder = Instance::builder().buffers([buffer(8, 0, 2), buffer(8, 1, 4), buffer(8, 2, 3)]);
    let instance = build(builder.in_place([pair(0, 1)]));
    let plan = |third| Plan { in_place: vec![pair(0, 1)], ..offsets(&[0, 0, third]) };
    assert!(instance.verify(plan(8)).is_ok());
    assert_eq!(verdict(&instance, plan(0)).2, Some((2, 3)));
    // A hand-over that the plan does not list is an overlap.
    assert_eq!(verdict(&instance, offsets(&[0, 0, 8])).2, Some((1, 2)));
}

#[test]
fn kept_apart_and_capacities() {
    let builder = Instance::builder().buffers([buffer(8, 0, 2), buffer(8, 4, 6), buffer(6, 0, 2)]);
    let instance = build(builder.apart([apart(0, 1)]).arenas([arena(Some(20))]));
    assert!(instance.verify(offsets(&[0, 8, 8])).is_ok());
    let words = "buffers 0 and 1 share an address, but must be kept apart".to_owned();
    assert_eq!(verdict(&instance, offsets(&[0, 7, 8])), ("together", vec![0, 1], None, words));
    let words = "arena 0 needs 21 bytes, but its capacity is 20".to_owned();
    assert_eq!(verdict(&instance, offsets(&[0, 8, 15])), ("over-capacity", vec![], None, words));
    let expected =
        Violation::OverCapacity { arena: ArenaId::new(0), height: Bytes::new(21), capacity: Bytes::new(20) };
    assert_eq!(instance.verify(offsets(&[0, 8, 15])), Err(expected));
}

#[test]
fn what_is_checked_first_is_said_first() {
    let align = Alignment::new(4).expect("positive");
    let first = buffer(8, 0, 2).with_align(align);
    let builder = Instance::builder().buffers([first, buffer(8, 1, 3), buffer(8, 1, 3)]);
    let instance = build(builder.in_place([pair(0, 1)]).apart([apart(1, 2)]).arenas([arena(Some(24))]));
    let handed = |all: &[u64]| Plan { in_place: vec![pair(0, 1)], ..offsets(all) };
    let rows = [
        (handed(&[2, 0]), "wrong-count"),
        (handed(&[2, u64::MAX, 0]), "misaligned"),
        (handed(&[0, 4, 4]), "hand-over"),
        (handed(&[0, 0, 4]), "together"),
        (offsets(&[0, 24, 4]), "overlap"),
        (offsets(&[0, 24, 8]), "over-capacity"),
    ];
    for (plan, kind) in rows {
        assert_eq!(verdict(&instance, plan).0, kind);
    }
}
