//! The errors of invalid instances, and their messages.

use crate::common::{apart, arena, buffer, pair, range};
use planlab_dsa::{
    Alignment, ArenaId, Buffer, BufferId, Bytes, Instance, InstanceBuilder, InstanceError, Offset, Pause,
    Step,
};

fn refused(builder: InstanceBuilder, error: &InstanceError) {
    assert_eq!(builder.build().as_ref(), Err(error));
}

fn refused_in_words(builder: InstanceBuilder, error: &InstanceError, words: &str) {
    refused(builder, error);
    assert_eq!(error.to_string(), words);
}

fn of(buffers: impl IntoIterator<Item = Buffer>) -> InstanceBuilder {
    Instance::builder().buffers(buffers)
}

fn pinned(size: u64, start: u32, end: u32, offset: u64) -> Buffer {
    buffer(size, start, end).with_pin(Offset::new(offset))
}

const fn id(id: u32) -> BufferId {
    BufferId::new(id)
}

#[test]
fn sizes() {
    let words = "buffer 1: its size is 0; a buffer has at least one byte";
    let error = InstanceError::ZeroSize { buffer: id(1) };
    refused_in_words(of([buffer(1, 0, 1), buffer(0, 0, 1)]), &error, words);

    let half = 1 << 63;
    assert!(of([buffer(half, 0, 1), buffer(half - 1, 2, 3)]).build().is_ok());
    let error = InstanceError::TotalOverflow { buffer: id(1) };
    let words = "buffer 1: with it the sizes (and their alignments) sum to more than 2^64 - 1 bytes";
    refused_in_words(of([buffer(half, 0, 1), buffer(half, 2, 3), buffer(1, 0, 1)]), &error, words);
    let align = Alignment::new(2).expect("positive");
    refused(of([buffer(half, 0, 1), buffer(half - 1, 2, 3).with_align(align)]), &error);
    // A buffer above the highest pin must fit as well.
    refused(of([pinned(1, 0, 1, half), buffer(half - 2, 2, 3)]), &error);
}

#[test]
fn pins() {
    let align = Alignment::new(8).expect("positive");
    let error = InstanceError::MisalignedPin { buffer: id(0), pin: Offset::new(12), align };
    let words = "buffer 0: pinned at offset 12, which is not a multiple of its alignment 8";
    refused_in_words(of([pinned(4, 0, 1, 12).with_align(align)]), &error, words);

    let top = u64::MAX - 3;
    let error = InstanceError::PinOverflow { buffer: id(0), pin: Offset::new(top) };
    let words = format!("buffer 0: pinned at offset {top}, its end lies past 2^64 - 1");
    refused_in_words(of([pinned(4, 0, 1, top)]), &error, &words);

    let error = InstanceError::PinConflict { first: id(0), second: id(2), step: Step::new(3) };
    let words = "buffers 0 and 2: both are pinned, and they overlap at step 3";
    refused_in_words(of([pinned(4, 0, 5, 0), buffer(4, 0, 5), pinned(4, 3, 6, 3)]), &error, words);
    assert!(of([pinned(4, 0, 3, 0), pinned(4, 3, 6, 3)]).build().is_ok());
}

#[test]
fn a_pinned_output_may_lie_in_its_input() {
    let buffers = || [pinned(4, 0, 2, 0), pinned(4, 1, 3, 0)];
    assert!(matches!(of(buffers()).build(), Err(InstanceError::PinConflict { .. })));
    assert!(of(buffers()).in_place([pair(0, 1)]).build().is_ok());
}

#[test]
fn pauses() {
    let pause = |start, end, window: Option<(u64, u64)>| Pause {
        steps: range(start, end),
        window: window.map(|(low, high)| Bytes::new(low)..Bytes::new(high)),
    };
    let unordered = "overlaps the pause before it, or is out of order";
    let rows = [
        (vec![pause(0, 3, None)], (0, 3), "does not lie inside the live range"),
        (vec![pause(7, 9, None)], (7, 9), "does not lie inside the live range"),
        (vec![pause(2, 4, None), pause(3, 5, None)], (3, 5), unordered),
        (vec![pause(4, 5, None), pause(2, 3, None)], (2, 3), unordered),
        (vec![pause(2, 3, Some((4, 4)))], (2, 3), "has an empty window, or one that leaves the buffer"),
        (vec![pause(2, 3, Some((0, 9)))], (2, 3), "has an empty window, or one that leaves the buffer"),
    ];
    for (pauses, (start, end), reason) in rows {
        let error = InstanceError::BadPause { buffer: id(0), steps: range(start, end), reason };
        let words = format!("buffer 0: pause [{start}, {end}) {reason}");
        refused_in_words(of([buffer(8, 1, 8).with_pauses(pauses)]), &error, &words);
    }
    let fine = [pause(1, 2, None), pause(2, 4, Some((0, 8))), pause(4, 8, None)];
    assert!(of([buffer(8, 1, 8).with_pauses(fine)]).build().is_ok());
}

#[test]
fn names_of_buffers_that_are_not_there() {
    let two = || of([buffer(4, 0, 2), buffer(4, 1, 3)]);
    let error = InstanceError::UnknownBuffer { what: "an in-place permission", buffer: id(2), count: 2 };
    let words = "an in-place permission names buffer 2, but there are only 2 buffers";
    refused_in_words(two().in_place([pair(0, 2)]), &error, words);
    let error = InstanceError::UnknownBuffer { what: "a keep-apart pair", buffer: id(7), count: 2 };
    refused(two().apart([apart(7, 1)]), &error);
    let error = InstanceError::UnknownArena { buffer: id(0), arena: ArenaId::new(1), count: 1 };
    let words = "buffer 0: it lies in arena 1, but there are only 1 arenas";
    refused_in_words(of([buffer(4, 0, 2).in_arena(ArenaId::new(1))]), &error, words);
}

#[test]
fn permissions_that_can_never_be_used() {
    let asleep = Pause { steps: range(1, 2), window: None };
    let far = buffer(4, 1, 4).in_arena(ArenaId::new(1));
    let paused = "one of them is paused at the step of the hand-over";
    let rows = [
        ([buffer(4, 0, 2), buffer(4, 2, 4)], (0, 1), "its first step is not the other's last"),
        ([buffer(4, 0, 3), buffer(4, 1, 4)], (0, 1), "its first step is not the other's last"),
        ([buffer(4, 0, 2), buffer(4, 1, 4)], (0, 0), "they are one buffer"),
        ([buffer(4, 0, 2), buffer(5, 1, 4)], (0, 1), "it is larger"),
        ([buffer(4, 0, 2), far], (0, 1), "they lie in different arenas"),
        ([buffer(4, 0, 2), buffer(4, 1, 4).with_pauses([asleep.clone()])], (0, 1), paused),
        ([buffer(4, 0, 2).with_pauses([asleep]), buffer(4, 1, 4)], (0, 1), paused),
    ];
    for (buffers, (input, output), reason) in rows {
        let permission = pair(input, output);
        let builder = of(buffers).arenas([arena(None), arena(None)]).in_place([permission]);
        let words = format!("buffer {output} may not overwrite buffer {input}: {reason}");
        refused_in_words(builder, &InstanceError::BadInPlace { permission, reason }, &words);
    }
}

#[test]
fn pairs_that_cannot_be_kept_apart() {
    let far = buffer(4, 0, 2).in_arena(ArenaId::new(1));
    let rows = [
        ([buffer(4, 0, 2), buffer(4, 1, 4)], (1, 1), "they are one buffer"),
        ([buffer(4, 0, 2), far], (0, 1), "they lie in different arenas"),
        ([pinned(4, 0, 2, 0), pinned(4, 2, 4, 3)], (0, 1), "both are pinned, and they share an address"),
    ];
    for (buffers, (first, second), reason) in rows {
        let pair = apart(first, second);
        let builder = of(buffers).arenas([arena(None), arena(None)]).apart([pair]);
        let words = format!("buffers {first} and {second} cannot be kept apart: {reason}");
        refused_in_words(builder, &InstanceError::BadPair { pair, reason }, &words);
    }
    assert!(of([pinned(4, 0, 2, 0), pinned(4, 2, 4, 4)]).apart([apart(0, 1)]).build().is_ok());
}

#[test]
fn permissions_are_sorted_and_said_once() {
    let buffers = [buffer(4, 0, 2), buffer(4, 1, 3), buffer(4, 2, 4)];
    let instance = of(buffers).in_place([pair(1, 2), pair(0, 1), pair(1, 2)]).build().expect("valid");
    assert_eq!(instance.in_place(), [pair(0, 1), pair(1, 2)]);
    assert_eq!(instance.arenas().len(), 1);
}

#[test]
fn counts_that_ids_cannot_number() {
    let many = |count| vec![arena(None); count];
    let most = Instance::builder().arenas(many((1 << 16) - 1)).build();
    assert!(most.is_ok_and(|it| it.load().bytes == Bytes::ZERO));
    refused(Instance::builder().arenas(many(1 << 16)), &InstanceError::TooManyArenas { count: 65_536 });
    // A test cannot hold 2^32 buffers, so only the message is checked.
    let words = InstanceError::TooMany { count: 1 << 32 }.to_string();
    assert_eq!(words, "4294967296 buffers are more than an instance can hold (4294967295)");
}

#[test]
fn pairs_that_are_the_same_are_one() {
    let digest = |pairs: &[(u32, u32)]| {
        let pairs = pairs.iter().map(|&(first, second)| apart(first, second));
        let builder = of([buffer(1, 0, 1), buffer(1, 1, 2), buffer(1, 2, 3)]).apart(pairs);
        builder.build().expect("valid").digest()
    };
    assert_eq!(digest(&[(2, 1), (0, 2), (1, 2)]), digest(&[(0, 2), (1, 2)]));
    assert_ne!(digest(&[(0, 2)]), digest(&[(0, 1)]));
}
