//! The bounds known before any search: load, pins and alignment.

use crate::problem::load::counted_pieces;
use crate::{Alignment, Bound, Bytes, Claim, Evidence, Instance, Scope, greatest_common_divisor};

/// The bounds known before any search: load, pins and alignment. O(n log n).
#[must_use]
pub fn initial_bound(instance: &Instance) -> Bound {
    let mut bound = Bound::default();
    let load = |value| Claim { value, evidence: Evidence::Load };
    bound.raise_claim(load(instance.load().bytes), Scope::Any);
    bound.raise_claim(load(instance.load_without_in_place().bytes), Scope::NoHandOver);
    bound.raise_claim(load(pin_bound(instance)), Scope::Any);
    for scope in [Scope::Any, Scope::NoHandOver] {
        if let Some(value) = alignment_bound(instance, scope) {
            bound.raise_claim(Claim { value, evidence: Evidence::Alignment }, scope);
        }
    }
    bound
}

/// The highest end of a pinned buffer, summed over the arenas; 0 without pins.
#[must_use]
pub fn pin_bound(instance: &Instance) -> Bytes {
    Bytes::new(instance.pinned_tops().into_iter().sum())
}

/// A bound on plans of the scope: the load with sizes rounded up to the greatest common divisor of the alignments, less
/// the padding of the topmost buffer. `None` if that adds nothing: no alignment, several arenas, or pauses with windows.
///
/// If two buffers are live together and their offsets are multiples of `a`, these differ by at least `ceil(size / a) *
/// a` for the size of the lower buffer. Only the topmost buffer at a step may end anywhere.
#[must_use]
pub fn alignment_bound(instance: &Instance, scope: Scope) -> Option<Bytes> {
    let divisor = instance
        .buffers()
        .iter()
        .fold(0, |divisor, buffer| greatest_common_divisor(divisor, buffer.align.get()));
    let align = Alignment::new(divisor)?;
    let windows = instance.buffers().iter().flat_map(|b| &b.pauses).any(|pause| pause.window.is_some());
    if align == Alignment::ONE || windows || instance.arenas().len() > 1 {
        return None;
    }
    let mut changes: Vec<(u32, bool, u64, u64)> = Vec::with_capacity(2 * instance.len());
    for (buffer, piece) in counted_pieces(instance, scope) {
        let rounded = align.round_up(buffer.size.get())?;
        let padding = rounded - buffer.size.get();
        changes.push((piece.steps.start().get(), true, rounded, padding));
        changes.push((piece.steps.end().get(), false, rounded, padding));
    }
    changes.sort_unstable();
    highest_rounded_load(&changes).map(Bytes::new)
}

/// The highest sum of rounded sizes at a step, less the largest padding there, in bytes. Each entry of `changes`,
/// ascending: the step, whether a buffer begins there (or ends), its rounded size and its padding. `None` if a sum does
/// not fit 64 bits.
#[must_use]
pub fn highest_rounded_load(changes: &[(u32, bool, u64, u64)]) -> Option<u64> {
    let mut paddings = std::collections::BTreeMap::<u64, u32>::new();
    let (mut sum, mut best) = (0_u64, 0_u64);
    for &(_, begins, rounded, padding) in changes {
        if begins {
            sum = sum.checked_add(rounded)?;
            *paddings.entry(padding).or_default() += 1;
            let (&most, _) = paddings.last_key_value()?;
            best = best.max(sum - most);
        } else {
            sum -= rounded;
            let count = paddings.get_mut(&padding)?;
            *count -= 1;
            if *count == 0 {
                paddings.remove(&padding);
            }
        }
    }
    Some(best)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Offset;
    use crate::testing::test_buffer as buffer;

    #[test]
    fn alignment_counts_the_padding_below_the_top() {
        let align = Alignment::new(8).expect("positive");
        let buffers = [buffer(5, 0, 2), buffer(9, 0, 2), buffer(3, 1, 3)].map(|b| b.with_align(align));
        let instance = Instance::from_buffers(buffers.to_vec()).expect("valid");
        // At step 1: 8 + 16 + 8, less the largest padding, 7 (of the 9).
        for scope in [Scope::Any, Scope::NoHandOver] {
            assert_eq!(alignment_bound(&instance, scope), Some(Bytes::new(25)));
            let claim = initial_bound(&instance).best_claim(scope);
            assert_eq!(claim, Claim { value: Bytes::new(25), evidence: Evidence::Alignment });
        }
    }

    #[test]
    fn a_pinned_end_bounds_every_plan() {
        let instance =
            Instance::from_buffers(vec![buffer(4, 0, 1).with_pin(Offset::new(100))]).expect("valid");
        assert_eq!(initial_bound(&instance).best_claim(Scope::Any).value, Bytes::new(104));
    }
}
