//! What every planner that honours pins and arenas has to look at.

use planlab_dsa::{Buffer, BufferId, InPlace, Instance, LiveRange, Offset};

/// The hand-overs that the pinned buffers need among themselves; `None` where they cannot all stand
/// where they are pinned, so that there is no plan at all.
///
/// An instance is accepted when pinned buffers overlap at the first step of an output at most: a hand-over
/// may explain that. Kept-apart pairs are not looked at when an instance is built.
pub(crate) fn pinned_hand_overs(instance: &Instance) -> Option<Vec<InPlace>> {
    let pinned = |pair: [&Buffer; 2]| pair.iter().all(|buffer| buffer.pin.is_some());
    let apart = instance.apart().iter().map(|p| [instance.buffer(p.first), instance.buffer(p.second)]);
    if apart.filter(|&pair| pinned(pair)).any(|[a, b]| share_an_address(a, b)) {
        return None;
    }
    let mut hand_overs = Vec::new();
    for &pair in instance.in_place() {
        let (input, output) = (instance.buffer(pair.input), instance.buffer(pair.output));
        if pinned([input, output]) && encloses(input, output) && is_free(&hand_overs, pair) {
            hand_overs.push(pair);
        }
    }
    let outputs = instance.in_place().iter().map(|pair| pair.output);
    let explained = outputs.filter(|&id| instance.buffer(id).pin.is_some()).all(|id| {
        hand_overs.iter().any(|pair| pair.output == id) || stands_alone(instance, instance.buffer(id))
    });
    explained.then_some(hand_overs)
}

fn is_free(hand_overs: &[InPlace], pair: InPlace) -> bool {
    hand_overs.iter().all(|other| other.input != pair.input && other.output != pair.output)
        && first_input(hand_overs, pair.input) != pair.output
}

/// The buffer whose place a chain of hand-overs began with.
fn first_input(hand_overs: &[InPlace], mut id: BufferId) -> BufferId {
    while let Some(pair) = hand_overs.iter().find(|pair| pair.output == id) {
        id = pair.input;
    }
    id
}

fn span(buffer: &Buffer) -> Option<(u64, u64)> {
    let pin = buffer.pin?;
    Some((pin.get(), pin.end(buffer.size)?.get()))
}

fn share_an_address(a: &Buffer, b: &Buffer) -> bool {
    matches!((span(a), span(b)), (Some((low, end)), Some((other, other_end))) if low < other_end && other < end)
}

fn encloses(input: &Buffer, output: &Buffer) -> bool {
    matches!((span(input), span(output)), (Some((a, a_end)), Some((b, b_end))) if a <= b && b_end <= a_end)
}

/// Whether no other pinned buffer is where a pinned output is, at its first step.
fn stands_alone(instance: &Instance, output: &Buffer) -> bool {
    let step = output.live.start().get();
    let first = LiveRange::new(step, step + 1).expect("one step");
    instance.buffers().iter().all(|other| {
        std::ptr::eq(other, output)
            || other.arena != output.arena
            || !other.live.overlaps(first)
            || !pieces_meet(other, output, first)
    })
}

fn pieces_meet(a: &Buffer, b: &Buffer, steps: LiveRange) -> bool {
    let (Some(a_pin), Some(b_pin)) = (a.pin, b.pin) else { return false };
    a.pieces().filter(|piece| piece.steps.overlaps(steps)).any(|p| {
        b.pieces().filter(|piece| piece.steps.overlaps(steps)).any(|q| {
            let (low, end) = (a_pin.get() + p.window.start.get(), a_pin.get() + p.window.end.get());
            let (other, other_end) = (b_pin.get() + q.window.start.get(), b_pin.get() + q.window.end.get());
            low < other_end && other < end
        })
    })
}

/// Whether every arena with a capacity holds what the offsets put into it.
pub(crate) fn fits_arenas(instance: &Instance, offsets: &[Offset]) -> bool {
    instance.buffers().iter().zip(offsets).all(|(buffer, offset)| {
        let capacity = instance.arenas()[buffer.arena.index()].capacity;
        capacity.is_none_or(|capacity| offset.get() + buffer.size.get() <= capacity.get())
    })
}
