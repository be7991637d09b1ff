//! The store returns instances, labels and plans exactly as they were stored.
#![cfg(feature = "parquet")]

use planlab_dsa::{
    Alignment, Arena, ArenaId, Buffer, BufferId, Bytes, Digest, InPlace, Instance, KeepApart, Label, Labels,
    LiveRange, Offset, Pause, Plan,
};
use planlab_results::{StoreError, load_instance, load_plan};

use crate::common::empty_store;

fn range(start: u32, end: u32) -> LiveRange {
    LiveRange::new(start, end).expect("not empty")
}

/// An instance with every feature.
fn rich() -> (Instance, Labels) {
    let buffer = |size, start, end| Buffer::new(Bytes::new(size), range(start, end));
    let window = Some(Bytes::new(8)..Bytes::new(16));
    let pauses = [Pause { steps: range(2, 3), window: None }, Pause { steps: range(4, 6), window }];
    let id = BufferId::new;
    let instance = Instance::builder()
        .buffer(buffer(64, 0, 9).with_align(Alignment::new(16).expect("positive")).with_pauses(pauses))
        .buffer(buffer(64, 0, 3).with_pin(Offset::new(128)))
        .buffer(buffer(32, 2, 5))
        .buffer(buffer(u64::from(u32::MAX) + 9, 7, 9).in_arena(ArenaId::new(1)))
        .buffer(buffer(7, 6, 8))
        .in_place([InPlace { input: id(1), output: id(2) }])
        .arenas([
            Arena::default(),
            Arena { name: "host \"2\"".to_owned(), capacity: Some(Bytes::new(u64::MAX)) },
        ])
        .apart([KeepApart { first: id(4), second: id(1) }, KeepApart { first: id(0), second: id(2) }])
        .build()
        .expect("valid");
    let mut labels = Labels::from_numbers(instance.len());
    labels.metadata = vec![("b".to_owned(), "1, \"2\"".to_owned()), ("a".to_owned(), String::new())];
    labels.buffers[2] = Label {
        name: "relu/ä".to_owned(),
        category: Some("activation".to_owned()),
        op: Some(String::new()),
        requested: Some(Bytes::new(31)),
        original_steps: Some((u64::MAX - 1, u64::MAX)),
        row: Some(3),
        hint: Some(0),
    };
    (instance, labels)
}

#[test]
fn instances_and_labels_come_back_with_everything() {
    let (dir, store) = empty_store();
    let plain = Instance::from_buffers(vec![Buffer::new(Bytes::new(1), range(0, 1))]).expect("valid");
    let empty = Instance::from_buffers(Vec::new()).expect("valid");
    let numbered = |instance: &Instance| Labels::from_numbers(instance.len());
    for (instance, labels) in [rich(), (plain.clone(), numbered(&plain)), (empty.clone(), numbered(&empty))] {
        let digest = store.put_instance(&instance, &labels).expect("kept");
        assert_eq!(digest, instance.digest());
        let (back, back_labels) = load_instance(dir.path(), digest).expect("loads");
        assert_eq!(back, instance);
        assert_eq!(back.digest(), digest);
        assert_eq!(back_labels, labels);
    }
}

#[test]
fn plans_come_back_with_their_hand_overs_in_order() {
    let (dir, store) = empty_store();
    let pair = |input, output| InPlace { input: BufferId::new(input), output: BufferId::new(output) };
    let offsets = vec![Offset::new(0), Offset::new(u64::MAX)];
    let plans = [
        Plan::default(),
        Plan::from_offsets(offsets.clone()),
        Plan { offsets: offsets.clone(), in_place: vec![pair(1, 0)] },
        Plan { offsets, in_place: vec![pair(5, 6), pair(1, 0), pair(3, 2)] },
    ];
    for plan in plans {
        let digest = store.put_plan(&plan).expect("kept");
        assert_eq!(load_plan(dir.path(), digest).expect("loads"), plan);
    }
}

#[test]
fn labels_of_another_instance_are_refused() {
    let (_dir, store) = empty_store();
    let error = store.put_instance(&rich().0, &Labels::from_numbers(2)).expect_err("refused");
    assert!(matches!(error, StoreError::Labels { labels: 2, buffers: 5 }), "{error}");
}

#[test]
fn a_file_under_a_false_name_is_found_out() {
    let (dir, store) = empty_store();
    let one = store.put_plan(&Plan::from_offsets([Offset::new(1)])).expect("kept");
    let other = Digest::of_bytes(b"other");
    let path = |digest| dir.path().join(format!("plans/{digest}.parquet"));
    std::fs::copy(path(one), path(other)).expect("copies");
    let error = load_plan(dir.path(), other).expect_err("refused");
    assert!(error.to_string().contains(&format!("its content has digest {one}, ")), "{error}");
    let instance = dir.path().join(format!("instances/{other}.parquet"));
    std::fs::copy(path(one), instance).expect("copies");
    let error = load_instance(dir.path(), other).expect_err("refused");
    assert!(error.to_string().contains("kind `instance`"), "{error}");
    assert!(matches!(load_instance(dir.path(), one), Err(StoreError::Io { .. })));
}
