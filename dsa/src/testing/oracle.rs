//! A second opinion on plans: checks every pair of buffers at every critical step.
//!
//! A *critical* step is the start or end of a live range or a pause, or the step after a hand-over. Nothing changes
//! between two neighbouring critical steps, so a pair overlaps at some step exactly if it does at a critical one.
//!
//! # Complexity
//!
//! O(n^2 p) for n buffers with up to p pauses each.

use std::ops::Range;

use crate::{ArenaId, Buffer, BufferId, Bytes, InPlace, Instance, KeepApart, Plan};

/// A fault that the oracle finds in a plan.
#[expect(missing_docs, reason = "the fields are named in the messages")]
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
    /// The number of offsets is not the number of buffers.
    #[error("{got} offsets for {expected} buffers")]
    Count { expected: usize, got: usize },
    /// An end past 2^64 - 1, or heights of arenas whose sum is larger.
    #[error("an end past 2^64 - 1 (buffer {0:?})")]
    Overflow(Option<BufferId>),
    /// An offset that is not a multiple of the alignment.
    #[error("buffer {0} is not aligned")]
    Misaligned(BufferId),
    /// A pinned buffer at another offset.
    #[error("buffer {0} is not where it is pinned")]
    OffPin(BufferId),
    /// A hand-over that is not allowed.
    #[error("buffer {} may not take the place of buffer {}", .0.output, .0.input)]
    HandOver(InPlace),
    /// Two buffers that must be kept apart share an address.
    #[error("buffers {} and {} are not apart", .0.first, .0.second)]
    Together(KeepApart),
    /// Two buffers, the lower id first, share an address; `step` is the first at which they do.
    #[error("buffers {first} and {second} overlap at step {step}")]
    Overlap { first: BufferId, second: BufferId, step: u32 },
    /// An arena that exceeds its capacity.
    #[error("arena {0} is over its capacity")]
    OverCapacity(ArenaId),
}

/// The height of a plan, if it is valid.
///
/// # Errors
///
/// One of the [`plan_faults`] of an invalid plan.
pub fn oracle_height(instance: &Instance, plan: &Plan) -> Result<Bytes, Fault> {
    match plan_faults(instance, plan).into_iter().next() {
        Some(fault) => Err(fault),
        None => match u64::try_from(arena_heights(instance, plan).into_iter().sum::<u128>()) {
            Ok(height) => Ok(Bytes::new(height)),
            Err(_) => Err(Fault::Overflow(None)),
        },
    }
}

/// All faults of a plan; for each overlapping pair, its first step.
#[must_use]
pub fn plan_faults(instance: &Instance, plan: &Plan) -> Vec<Fault> {
    let (expected, got) = (instance.len(), plan.offsets.len());
    if expected != got {
        return vec![Fault::Count { expected, got }];
    }
    let judge = Judge { instance, plan };
    let mut found = Vec::new();
    for id in instance.ids() {
        found.extend(judge.faults_alone(id));
    }
    found.extend(
        plan.in_place.iter().filter(|&&pair| !judge.permits_hand_over(pair)).map(|&p| Fault::HandOver(p)),
    );
    found.extend(
        instance
            .keep_apart_pairs()
            .iter()
            .filter(|&&pair| judge.share_address(pair))
            .map(|&p| Fault::Together(p)),
    );
    for second in instance.ids() {
        for first in (0..second.get()).map(BufferId::new) {
            if let Some(step) = judge.first_shared_step(first, second) {
                found.push(Fault::Overlap { first, second, step });
            }
        }
    }
    found.extend(over_capacity(instance, plan));
    found
}

/// The highest end in each arena.
fn arena_heights(instance: &Instance, plan: &Plan) -> Vec<u128> {
    let of = |arena| {
        let inside = instance.buffers().iter().zip(&plan.offsets).filter(|(b, _)| b.arena.index() == arena);
        inside.map(|(b, offset)| u128::from(offset.get()) + u128::from(b.size.get())).max().unwrap_or(0)
    };
    (0..instance.arenas().len()).map(of).collect()
}

fn over_capacity(instance: &Instance, plan: &Plan) -> Vec<Fault> {
    let mut found = Vec::new();
    let heights = arena_heights(instance, plan);
    for ((arena, height), number) in instance.arenas().iter().zip(&heights).zip(0..) {
        if arena.capacity.is_some_and(|capacity| u128::from(capacity.get()) < *height) {
            found.push(Fault::OverCapacity(ArenaId::new(number)));
        }
    }
    if heights.iter().sum::<u128>() > u128::from(u64::MAX) && heights.len() > 1 {
        found.push(Fault::Overflow(None));
    }
    found
}

struct Judge<'a> {
    instance: &'a Instance,
    plan: &'a Plan,
}

impl Judge<'_> {
    fn faults_alone(&self, id: BufferId) -> Vec<Fault> {
        let (buffer, offset) = (self.instance.buffer(id), self.plan.offsets[id.index()].get());
        let rules = [
            (self.address_span(id).end > u128::from(u64::MAX), Fault::Overflow(Some(id))),
            (offset % buffer.align.get() != 0, Fault::Misaligned(id)),
            (buffer.pin.is_some_and(|pin| pin.get() != offset), Fault::OffPin(id)),
        ];
        rules.into_iter().filter(|(broken, _)| *broken).map(|(_, fault)| fault).collect()
    }

    /// All addresses of a buffer.
    fn address_span(&self, id: BufferId) -> Range<u128> {
        let offset = u128::from(self.plan.offsets[id.index()].get());
        offset..offset + u128::from(self.instance.buffer(id).size.get())
    }

    fn permits_hand_over(&self, pair: InPlace) -> bool {
        let InPlace { input, output } = pair;
        let same = |other: &&InPlace| other.input == input || other.output == output;
        if !self.instance.in_place().contains(&pair) || self.plan.in_place.iter().filter(same).count() > 1 {
            return false;
        }
        let (outer, inner) = (self.address_span(input), self.address_span(output));
        let (a, b) = (self.instance.buffer(input), self.instance.buffer(output));
        let step = b.live.start().get();
        let whole = |buffer: &Buffer| in_use(buffer, step) == Some(0..buffer.size.get());
        a.live.end().get() == step + 1
            && whole(a)
            && whole(b)
            && outer.start <= inner.start
            && inner.end <= outer.end
            && !self.in_circle(input)
    }

    /// Whether the buffer's place is handed on in a circle back to it.
    fn in_circle(&self, id: BufferId) -> bool {
        let mut at = id;
        for _ in 0..self.instance.len() {
            match self.plan.in_place.iter().find(|pair| pair.input == at) {
                Some(pair) => at = pair.output,
                None => return false,
            }
            if at == id {
                return true;
            }
        }
        true
    }

    fn share_address(&self, pair: KeepApart) -> bool {
        let (a, b) = (self.address_span(pair.first), self.address_span(pair.second));
        a.start < b.end && b.start < a.end
    }

    fn first_shared_step(&self, a: BufferId, b: BufferId) -> Option<u32> {
        if self.instance.buffer(a).arena != self.instance.buffer(b).arena {
            return None;
        }
        let mut steps = [self.critical_steps(a), self.critical_steps(b)].concat();
        steps.sort_unstable();
        steps.into_iter().find(|&step| match (self.addresses_at(a, step), self.addresses_at(b, step)) {
            (Some(a), Some(b)) => a.start < b.end && b.start < a.end,
            _ => false,
        })
    }

    /// The addresses that a buffer holds at a step. At a hand-over's first step the output lies inside the input, so
    /// the input stands for both.
    fn addresses_at(&self, id: BufferId, step: u32) -> Option<Range<u128>> {
        let buffer = self.instance.buffer(id);
        let takes_over = self.plan.in_place.iter().any(|pair| pair.output == id);
        if takes_over && step == buffer.live.start().get() {
            return None;
        }
        let used = in_use(buffer, step)?;
        let offset = self.address_span(id).start;
        Some(offset + u128::from(used.start)..offset + u128::from(used.end))
    }

    fn critical_steps(&self, id: BufferId) -> Vec<u32> {
        let buffer = self.instance.buffer(id);
        let start = buffer.live.start().get();
        // The range contains `start`, so `start + 1` is at most its end and does not overflow.
        let mut steps = vec![start, start + 1, buffer.live.end().get()];
        for pause in &buffer.pauses {
            steps.extend([pause.steps.start().get(), pause.steps.end().get()]);
        }
        steps
    }
}

/// The bytes of a buffer in use at a step, relative to its offset.
fn in_use(buffer: &Buffer, step: u32) -> Option<Range<u64>> {
    if step < buffer.live.start().get() || buffer.live.end().get() <= step {
        return None;
    }
    for pause in &buffer.pauses {
        if pause.steps.start().get() <= step && step < pause.steps.end().get() {
            return pause.window.as_ref().map(|window| window.start.get()..window.end.get());
        }
    }
    Some(0..buffer.size.get())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Offset;
    use crate::testing::test_buffer as buffer;

    fn faults(instance: &Instance, offsets: &[u64], in_place: &[InPlace]) -> Vec<Fault> {
        let offsets = offsets.iter().map(|&offset| Offset::new(offset)).collect();
        plan_faults(instance, &Plan { offsets, in_place: in_place.to_vec() })
    }

    #[test]
    fn a_circle_of_hand_overs_covers_nothing() {
        let pair = |input, output| InPlace { input: BufferId::new(input), output: BufferId::new(output) };
        let both = [pair(0, 1), pair(1, 0)];
        let instance = Instance::builder()
            .buffers([buffer(4, 0, 1), buffer(4, 0, 1), buffer(4, 0, 1)])
            .in_place(both)
            .build()
            .expect("valid");
        assert!(faults(&instance, &[0, 0, 4], &both[..1]).is_empty());
        assert_eq!(faults(&instance, &[0, 0, 0], &both), both.map(Fault::HandOver));
    }
}
