//! A simple valid plan for any instance.

use std::ops::Range;

use crate::{Arena, BufferId, InPlace, Instance, KeepApart, Offset, Plan};

use super::oracle::oracle_height;

/// Places the pinned buffers, then the others in the given order (omitted ones last, by id), each at the lowest offset
/// without an overlap. A buffer takes another's place if `permissions` (a subset of the instance's) allows it and it
/// fits. The plan lists these pairs.
///
/// Ignores the capacities of the arenas, and does not resolve pins that only a hand-over excuses; every other instance
/// gets a valid plan. O(n^3).
#[must_use]
pub fn first_fit(instance: &Instance, order: &[BufferId], permissions: &[InPlace]) -> Plan {
    let mut plan = Plan::from_offsets(vec![Offset::default(); instance.len()]);
    let pinned = instance.ids().filter(|&id| instance.buffer(id).pin.is_some());
    let mut placed: Vec<BufferId> = Vec::new();
    for id in pinned.chain(order.iter().copied()).chain(instance.ids()) {
        if placed.contains(&id) {
            continue;
        }
        let pairs = permissions.iter().filter(|pair| pair.output == id && placed.contains(&pair.input));
        let taken = pairs.copied().find(|&pair| take_over(instance, &mut plan, &placed, pair));
        if taken.is_none() {
            plan.offsets[id.index()] = lowest_offset(instance, &plan, &placed, id);
        }
        placed.push(id);
    }
    plan
}

/// Puts the output into the input's place if that place stays free.
fn take_over(instance: &Instance, plan: &mut Plan, placed: &[BufferId], pair: InPlace) -> bool {
    let InPlace { input, output } = pair;
    let buffer = instance.buffer(output);
    let Some(offset) = buffer.align.round_up(plan.offsets[input.index()].get()) else { return false };
    if buffer.pin.is_some_and(|pin| pin.get() != offset) {
        return false;
    }
    let before = plan.clone();
    plan.offsets[output.index()] = Offset::new(offset);
    plan.in_place.push(pair);
    let all = [placed, &[output]].concat();
    let fits = is_valid_for(instance, plan, &all);
    if !fits {
        *plan = before;
    }
    fits
}

/// Whether the plan is valid for the instance restricted to `some` buffers.
fn is_valid_for(instance: &Instance, plan: &Plan, some: &[BufferId]) -> bool {
    let place = |id: BufferId| some.iter().position(|&other| other == id).map(BufferId::from_index);
    let renamed = |pair: &InPlace| Some(InPlace { input: place(pair.input)?, output: place(pair.output)? });
    let apart = instance.keep_apart_pairs().iter().filter_map(|pair| {
        let (first, second) = (place(pair.first)?, place(pair.second)?);
        Some(KeepApart { first, second })
    });
    let part = Instance::builder()
        .buffers(some.iter().map(|&id| instance.buffer(id).clone()))
        .in_place(instance.in_place().iter().filter_map(renamed))
        .arenas(instance.arenas().iter().map(|arena| Arena { capacity: None, ..arena.clone() }))
        .apart(apart)
        .build()
        .expect("part of a valid instance");
    let offsets = some.iter().map(|&id| plan.offsets[id.index()]).collect();
    let in_place = plan.in_place.iter().filter_map(renamed).collect();
    oracle_height(&part, &Plan { offsets, in_place }).is_ok()
}

fn lowest_offset(instance: &Instance, plan: &Plan, placed: &[BufferId], id: BufferId) -> Offset {
    let buffer = instance.buffer(id);
    if let Some(pin) = buffer.pin {
        return pin;
    }
    let mut blocked: Vec<Range<i128>> = Vec::new();
    for &other in placed {
        blocked.extend(blocked_by(instance, other, plan.offsets[other.index()], id));
    }
    let mut offset = 0;
    while let Some(range) = blocked.iter().find(|range| range.contains(&i128::from(offset))) {
        let above = u64::try_from(range.end).expect("it holds a non-negative number");
        offset = buffer.align.round_up(above).expect("totals of an instance fit 64 bits");
    }
    Offset::new(offset)
}

/// The offsets at which a buffer overlaps `other`, placed at `place`.
fn blocked_by(instance: &Instance, other: BufferId, place: Offset, id: BufferId) -> Vec<Range<i128>> {
    let (there, buffer) = (instance.buffer(other), instance.buffer(id));
    if there.arena != buffer.arena {
        return Vec::new();
    }
    let start = i128::from(place.get());
    let between = |low: u64, high: u64, window: Range<u64>| {
        start + i128::from(low) - i128::from(window.end) + 1
            ..start + i128::from(high) - i128::from(window.start)
    };
    let mut blocked = Vec::new();
    for old in there.active_pieces() {
        for new in buffer.active_pieces().filter(|new| new.steps.overlaps(old.steps)) {
            let window = new.window.start.get()..new.window.end.get();
            blocked.push(between(old.window.start.get(), old.window.end.get(), window));
        }
    }
    let is_apart = |pair: &KeepApart| [(id, other), (other, id)].contains(&(pair.first, pair.second));
    if instance.keep_apart_pairs().iter().any(is_apart) {
        blocked.push(between(0, there.size.get(), 0..buffer.size.get()));
    }
    blocked
}
