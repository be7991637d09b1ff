//! Moves a plan's buffers: the same trace at random places in a larger arena.
//!
//! This is a control: memory-bound kernels may run a few per cent faster or slower at other addresses. A difference
//! between a plan and its shuffled twin is an effect of places, not of planning.
//!
//! Buffers are taken in a random order. Each is put at the lowest place above a random address that is free of buffers
//! live at the same time, or above 0 if there is no such place below twice the height.
//!
//! # Complexity
//!
//! O(n² log n) for n buffers.

use planlab_dsa::{Alignment, Buffer, Offset, Plan, VerifiedPlan};
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// Random places for the buffers of a plan, drawn from a seed. Offsets are multiples of 512 bytes, or of a buffer's
/// alignment if 512 is not a multiple of it. `None` for a plan with hand-overs, pins, pauses, several arenas or pairs
/// that are kept apart.
#[must_use]
pub fn shuffle_plan<'i>(plan: &VerifiedPlan<'i>, seed: u64) -> Option<VerifiedPlan<'i>> {
    let instance = plan.instance();
    let is_plain =
        plan.in_place().is_empty() && instance.arenas().len() <= 1 && instance.keep_apart_pairs().is_empty();
    if !is_plain || instance.buffers().iter().any(|buffer| buffer.pin.is_some() || !buffer.pauses.is_empty())
    {
        return None;
    }
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let room = plan.height().get().checked_mul(2)?;
    let mut order: Vec<usize> = (0..instance.len()).collect();
    order.shuffle(&mut rng);
    let mut offsets = vec![None; instance.len()];
    for &index in &order {
        let buffer = &instance.buffers()[index];
        let from = rng.random_range(0..=room - buffer.size.get());
        let taken = taken_ranges(instance.buffers(), &offsets, buffer);
        let above = lowest_free_from(&taken, buffer, from);
        let at = above
            .filter(|at| at + buffer.size.get() <= room)
            .or_else(|| lowest_free_from(&taken, buffer, 0))?;
        offsets[index] = Some(at);
    }
    let offsets: Option<Vec<Offset>> = offsets.into_iter().map(|offset| offset.map(Offset::new)).collect();
    instance.verify(Plan::from_offsets(offsets?)).ok()
}

/// First and last address + 1 of the placed buffers that are live together with `buffer`, ascending.
fn taken_ranges(buffers: &[Buffer], offsets: &[Option<u64>], buffer: &Buffer) -> Vec<(u64, u64)> {
    let placed = buffers.iter().zip(offsets).filter(|(other, _)| other.live.overlaps(buffer.live));
    let mut taken: Vec<(u64, u64)> =
        placed.filter_map(|(other, offset)| offset.map(|at| (at, at + other.size.get()))).collect();
    taken.sort_unstable();
    taken
}

/// The lowest free place from an address up.
fn lowest_free_from(taken: &[(u64, u64)], buffer: &Buffer, from: u64) -> Option<u64> {
    let unit = Alignment::new(512)?;
    let aligned = |at: u64| {
        let step = if unit.get().is_multiple_of(buffer.align.get()) { unit } else { buffer.align };
        step.round_up(at)
    };
    let mut at = aligned(from)?;
    for &(start, end) in taken {
        if end <= at {
            continue;
        }
        if at.checked_add(buffer.size.get())? <= start {
            break;
        }
        at = aligned(end)?;
    }
    Some(at)
}

#[cfg(test)]
mod tests {
    use planlab_dsa::testing::guillotine_instance;
    use planlab_dsa::{Bytes, Instance};

    use super::*;

    #[test]
    fn buffers_move_and_the_plan_stays_valid() {
        let (instance, plan) = guillotine_instance(60, Bytes::new(1 << 16), 3);
        let plan = instance.verify(plan).expect("valid");
        let [first, again, other] = [1, 1, 2].map(|seed| shuffle_plan(&plan, seed).expect("plain"));
        assert_eq!(first.offsets(), again.offsets());
        assert_ne!(first.offsets(), other.offsets());
        assert!(first.offsets().iter().all(|offset| offset.get() % 512 == 0));
        let moved = first.offsets().iter().zip(plan.offsets()).filter(|(new, old)| new != old).count();
        assert!(moved > instance.len() / 2, "{moved}");
    }

    #[test]
    fn no_buffers_stay_where_they_are() {
        let instance = Instance::from_buffers(Vec::new()).expect("valid");
        let plan = instance.verify(Plan::from_offsets(Vec::new())).expect("valid");
        assert!(shuffle_plan(&plan, 0).is_some());
    }
}
