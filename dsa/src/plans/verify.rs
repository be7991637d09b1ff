//! The verifier: every rule of an instance, checked on a plan.
//!
//! A buffer that takes another's place in a hand-over counts one step later in the [sweep](crate::problem::sweep): at its
//! first step its bytes lie inside the other's, which are still active.
//!
//! # Complexity
//!
//! O(n log n) time and O(n) memory for n pieces.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::problem::sweep::{Overlap, first_overlap, rectangles};
use crate::{ArenaId, BufferId, Bytes, InPlace, Instance, Plan, Step, VerifiedPlan, Violation};

impl Instance {
    /// Turns a plan that somebody made into one that may be used.
    ///
    /// Checks, in this order: one offset for each buffer, ends within 64 bits, alignment, pins,
    /// hand-overs, kept-apart pairs, overlaps (a sweep over the steps, O(n log n)), capacities of the
    /// arenas.
    ///
    /// # Errors
    ///
    /// The first [`Violation`] found; among overlaps, one at the earliest step.
    pub fn verify(&self, plan: Plan) -> Result<VerifiedPlan<'_>, Violation> {
        let height = check_plan(self, &plan);
        #[cfg(feature = "debug-checks")]
        super::recheck::assert_agrees(self, &plan, height.is_ok());
        Ok(VerifiedPlan::new(self, plan, height?))
    }
}

fn check_plan(instance: &Instance, plan: &Plan) -> Result<Bytes, Violation> {
    check_each(instance, plan)?;
    let outputs = check_hand_overs(instance, plan)?;
    check_apart(instance, plan)?;
    let rectangles =
        rectangles(instance, &plan.offsets, |id| outputs.get(id.index()).copied().unwrap_or(false));
    first_overlap(rectangles).map_err(|Overlap { first, second, steps, bytes }| Violation::Overlap {
        first,
        second,
        steps,
        bytes,
    })?;
    check_heights(instance, plan)
}

fn check_each(instance: &Instance, plan: &Plan) -> Result<(), Violation> {
    let (expected, got) = (instance.len(), plan.offsets.len());
    if expected != got {
        return Err(Violation::WrongCount { expected, got });
    }
    for ((buffer, &offset), id) in instance.buffers().iter().zip(&plan.offsets).zip(instance.ids()) {
        if offset.end_of(buffer.size).is_none() {
            return Err(Violation::Overflow { buffer: id, offset });
        }
        if !buffer.align.divides(offset.get()) {
            return Err(Violation::Misaligned { buffer: id, offset, align: buffer.align });
        }
        if let Some(pin) = buffer.pin.filter(|&pin| pin != offset) {
            return Err(Violation::OffPin { buffer: id, offset, pin });
        }
    }
    Ok(())
}

/// The buffers that take another's place, by id; empty if none does.
fn check_hand_overs(instance: &Instance, plan: &Plan) -> Result<Vec<bool>, Violation> {
    if plan.in_place.is_empty() {
        return Ok(Vec::new());
    }
    let (mut inputs, mut outputs) = (vec![false; instance.len()], vec![false; instance.len()]);
    for &pair in &plan.in_place {
        let step = match instance.buffers().get(pair.output.index()) {
            Some(output) => output.live.start(),
            None => Step::default(),
        };
        let fault = |reason| Err(Violation::HandOver { pair, step, reason });
        if instance.in_place().binary_search(&pair).is_err() {
            return fault("the instance does not permit it");
        }
        if std::mem::replace(&mut inputs[pair.input.index()], true) {
            return fault("the input's place was taken already");
        }
        if std::mem::replace(&mut outputs[pair.output.index()], true) {
            return fault("the output has a place already");
        }
        let [input, output] = [pair.input, pair.output].map(|id| address_span(instance, plan, id));
        if output.start < input.start || output.end > input.end {
            return fault("its bytes do not lie inside the input's");
        }
    }
    match find_circle(instance, plan) {
        Some(pair) => {
            let step = instance.buffer(pair.output).live.start();
            Err(Violation::HandOver { pair, step, reason: "the place comes back to where it was" })
        }
        None => Ok(outputs),
    }
}

/// A hand-over in a circle of hand-overs: buffers that are live at one and the same step only, each in the place of the
/// next, so that none of them holds the place itself.
fn find_circle(instance: &Instance, plan: &Plan) -> Option<InPlace> {
    let momentary = plan.in_place.iter().filter(|pair| instance.buffer(pair.input).live.width() == 1);
    let mut givers: BTreeMap<BufferId, InPlace> = momentary.map(|&pair| (pair.output, pair)).collect();
    while let Some((output, pair)) = givers.pop_first() {
        let mut holder = pair.input;
        while let Some(earlier) = givers.remove(&holder) {
            holder = earlier.input;
        }
        if holder == output {
            return Some(pair);
        }
    }
    None
}

/// All addresses of a buffer.
fn address_span(instance: &Instance, plan: &Plan, id: BufferId) -> Range<u64> {
    let start = plan.offsets[id.index()].get();
    start..start + instance.buffer(id).size.get()
}

fn check_apart(instance: &Instance, plan: &Plan) -> Result<(), Violation> {
    for &pair in instance.keep_apart_pairs() {
        let [one, other] = [pair.first, pair.second].map(|id| address_span(instance, plan, id));
        if one.start < other.end && other.start < one.end {
            return Err(Violation::Together { pair });
        }
    }
    Ok(())
}

fn check_heights(instance: &Instance, plan: &Plan) -> Result<Bytes, Violation> {
    let mut tops = vec![(0_u64, BufferId::default()); instance.arenas().len()];
    for ((buffer, offset), id) in instance.buffers().iter().zip(&plan.offsets).zip(instance.ids()) {
        let top = &mut tops[buffer.arena.index()];
        *top = (*top).max((offset.get() + buffer.size.get(), id));
    }
    let mut sum = 0_u64;
    for ((arena, &(height, buffer)), number) in instance.arenas().iter().zip(&tops).zip(0_u16..) {
        if let Some(capacity) = arena.capacity.filter(|capacity| capacity.get() < height) {
            let height = Bytes::new(height);
            return Err(Violation::OverCapacity { arena: ArenaId::new(number), height, capacity });
        }
        sum = sum
            .checked_add(height)
            .ok_or_else(|| Violation::Overflow { buffer, offset: plan.offsets[buffer.index()] })?;
    }
    Ok(Bytes::new(sum))
}
