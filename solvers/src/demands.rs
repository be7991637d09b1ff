//! What an instance asks for: pins and the hand-overs that they need, windows, pairs to keep apart, capacities.

use planlab_dsa::{BufferId, InPlace, Instance, Offset, Plan};

/// The hand-overs that the pinned buffers need among themselves; `None` if they cannot all stay at their pins, so that
/// there is no plan at all.
///
/// An instance is accepted only if pinned buffers overlap at no more than the first step of an output: a hand-over may
/// explain that.
pub(crate) fn pinned_hand_overs(instance: &Instance) -> Option<Vec<InPlace>> {
    let is_pinned = |id: BufferId| instance.buffer(id).pin.is_some();
    if !instance.in_place().iter().any(|pair| is_pinned(pair.output)) {
        return Some(Vec::new());
    }
    let hand_overs = hand_overs_between(instance, |id| instance.buffer(id).pin);
    are_pins_valid(instance, &hand_overs).then_some(hand_overs)
}

/// Whether the pinned buffers can all stay in place without a hand-over.
pub(crate) fn can_stand(instance: &Instance) -> bool {
    pinned_hand_overs(instance).is_some_and(|pairs| pairs.is_empty())
}

/// Whether a buffer keeps a window in use during a pause.
pub(crate) fn has_windows(instance: &Instance) -> bool {
    instance.buffers().iter().flat_map(|buffer| &buffer.pauses).any(|pause| pause.window.is_some())
}

/// Whether each buffer is to be kept apart from another.
pub(crate) fn is_kept_apart(instance: &Instance) -> Vec<bool> {
    let mut is_apart = vec![false; instance.len()];
    for id in instance.keep_apart_pairs().iter().flat_map(|pair| [pair.first, pair.second]) {
        is_apart[id.index()] = true;
    }
    is_apart
}

/// The hand-overs that the offsets need: an output that lies within its input takes its place.
pub(crate) fn hand_overs_at(instance: &Instance, offsets: &[Offset]) -> Vec<InPlace> {
    hand_overs_between(instance, |id| Some(offsets[id.index()]))
}

/// The same among the buffers that have an offset.
fn hand_overs_between(instance: &Instance, offset: impl Fn(BufferId) -> Option<Offset>) -> Vec<InPlace> {
    let span = |id: BufferId| {
        let offset = offset(id)?;
        Some((offset.get(), offset.end_of(instance.buffer(id).size)?.get()))
    };
    let lies_within = |pair: &&InPlace| match (span(pair.input), span(pair.output)) {
        (Some((a, a_end)), Some((b, b_end))) => a <= b && b_end <= a_end,
        _ => false,
    };
    let mut chains = Chains::new(instance.len());
    instance.in_place().iter().filter(lies_within).for_each(|&pair| chains.add_pair(pair));
    chains.hand_overs()
}

/// Hand-overs in which each buffer is at most once an input and at most once an output, without cycles.
struct Chains {
    input_of: Vec<Option<BufferId>>,
    is_input: Vec<bool>,
}

impl Chains {
    fn new(count: usize) -> Self {
        Self { input_of: vec![None; count], is_input: vec![false; count] }
    }

    fn add_pair(&mut self, pair: InPlace) {
        let is_free = !self.is_input[pair.input.index()] && self.input_of[pair.output.index()].is_none();
        if is_free && self.first_of_chain(pair.input) != pair.output {
            self.is_input[pair.input.index()] = true;
            self.input_of[pair.output.index()] = Some(pair.input);
        }
    }

    fn first_of_chain(&self, mut id: BufferId) -> BufferId {
        while let Some(input) = self.input_of[id.index()] {
            id = input;
        }
        id
    }

    fn hand_overs(&self) -> Vec<InPlace> {
        let outputs = self.input_of.iter().zip(0..);
        outputs
            .filter_map(|(input, id)| Some(InPlace { input: (*input)?, output: BufferId::new(id) }))
            .collect()
    }
}

/// Whether the pinned buffers alone form a valid plan.
fn are_pins_valid(instance: &Instance, hand_overs: &[InPlace]) -> bool {
    let pinned: Vec<BufferId> = instance.ids().filter(|&id| instance.buffer(id).pin.is_some()).collect();
    let rename = |id: BufferId| pinned.binary_search(&id).ok().map(BufferId::from_index);
    let rename_pair =
        |pair: &InPlace| Some(InPlace { input: rename(pair.input)?, output: rename(pair.output)? });
    let alone = Instance::builder()
        .buffers(pinned.iter().map(|&id| instance.buffer(id).clone()))
        .in_place(instance.in_place().iter().filter_map(rename_pair))
        .arenas(instance.arenas().to_vec())
        .build();
    let offsets: Vec<Offset> = pinned.iter().filter_map(|&id| instance.buffer(id).pin).collect();
    let plan = Plan { offsets, in_place: hand_overs.iter().filter_map(rename_pair).collect() };
    alone.is_ok_and(|alone| alone.verify(plan).is_ok())
}

/// Whether every arena with a capacity holds the buffers placed in it.
pub(crate) fn fits_arenas(instance: &Instance, offsets: &[Offset]) -> bool {
    instance.buffers().iter().zip(offsets).all(|(buffer, offset)| {
        let capacity = instance.arenas()[buffer.arena.index()].capacity;
        capacity.is_none_or(|capacity| offset.get() + buffer.size.get() <= capacity.get())
    })
}

#[cfg(test)]
mod tests {
    use planlab_dsa::Buffer;

    use super::*;
    use crate::placement::testing::{in_place, test_buffer};

    fn pinned(size: u64, start: u32, end: u32, pin: u64) -> Buffer {
        test_buffer(size, start, end).with_pin(Offset::new(pin))
    }

    fn needed(buffers: Vec<Buffer>, pairs: &[(u32, u32)]) -> Option<Vec<(u32, u32)>> {
        let pairs = pairs.iter().map(|&(input, output)| in_place(input, output));
        let instance = Instance::builder().buffers(buffers).in_place(pairs).build();
        let found = pinned_hand_overs(&instance.expect("well formed"))?;
        Some(found.iter().map(|pair| (pair.input.get(), pair.output.get())).collect())
    }

    #[test]
    fn a_pinned_output_takes_the_place_of_the_pinned_input_around_it() {
        for (place, pin, expected) in
            [("inside", 4, Some(vec![(0, 1)])), ("elsewhere", 8, Some(vec![])), ("across the edge", 6, None)]
        {
            let two = vec![pinned(8, 0, 2, 0), pinned(4, 1, 3, pin)];
            assert_eq!(needed(two, &[(0, 1)]), expected, "{place}");
        }
    }

    #[test]
    fn one_step_buffers_that_may_overwrite_each_other_do_not_go_in_circles() {
        let two = vec![pinned(4, 0, 1, 0), pinned(4, 0, 1, 0)];
        assert_eq!(needed(two, &[(0, 1), (1, 0)]), Some(vec![(0, 1)]));
    }
}
