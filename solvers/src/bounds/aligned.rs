//! The load with sizes rounded up, for each alignment separately.
//!
//! Take only the buffers whose alignment is a multiple of some `a`. The offsets of two of them that are in use together
//! differ by at least `ceil(size / a) * a` bytes; only the topmost may end anywhere. So at every step the rounded
//! sizes, minus the greatest padding among them, fit under the height. The common divisor of all alignments keeps every
//! buffer and pads the least; greater ones leave buffers out and pad more. The argument tries them all.
//!
//! ```text
//!   a = 8:   +-----+...      the padding (.) below an aligned buffer is lost to the others of its kind
//!            |  5  |...|     the one on top pads nothing
//!            +-----+---+--+
//!            0         8  10
//! ```
//!
//! # References
//!
//! 1. The bound for one common alignment: `planlab_dsa::alignment_bound`.
//!
//! # Complexity
//!
//! O(k n log n) for k alignments; at most the 16 greatest are tried.

use planlab_dsa::{Buffer, Evidence, Halt, Instance};

use super::argument::{Argument, Found};
use crate::tick::Tick;

const MOST_ALIGNMENTS: usize = 16;

/// The bound by rounded sizes.
pub(super) struct Aligned;

impl Argument for Aligned {
    fn evidence(&self) -> Evidence {
        Evidence::Alignment
    }

    fn failure_message(&self) -> &'static str {
        "sizes rounded up to their alignments give no more"
    }

    fn prove_bound(&self, arena: &Instance, known: u64, tick: &mut Tick<'_>) -> Result<Option<Found>, Halt> {
        let mut best: Option<(u64, u64)> = None;
        for align in common_divisors(arena) {
            tick(arena.len() as u64)?;
            let load = rounded_load(arena, align).unwrap_or(0);
            if load > best.map_or(known, |(value, _)| value) {
                best = Some((load, align));
            }
        }
        Ok(best.map(|(value, align)| Found {
            value,
            how: format!(
                "load of the buffers aligned to multiples of {align}, sizes rounded up, less the top's padding"
            ),
        }))
    }
}

/// The common divisor of all alignments and the greatest of them, ascending, without 1.
fn common_divisors(arena: &Instance) -> Vec<u64> {
    let mut all: Vec<u64> = arena.buffers().iter().map(|buffer| buffer.align.get()).collect();
    all.sort_unstable();
    all.dedup();
    let common = all.iter().copied().fold(0, planlab_dsa::greatest_common_divisor);
    all.drain(..all.len().saturating_sub(MOST_ALIGNMENTS));
    all.push(common);
    all.sort_unstable();
    all.dedup();
    all.retain(|&align| align > 1);
    all
}

/// The most rounded bytes in use at one step, minus the greatest padding; `None` above 64 bits.
fn rounded_load(arena: &Instance, align: u64) -> Option<u64> {
    let mut changes: Vec<(u32, bool, u64, u64)> = Vec::new();
    for buffer in arena.buffers().iter().filter(|buffer| buffer.align.get().is_multiple_of(align)) {
        let rounded = buffer.size.get().checked_next_multiple_of(align)?;
        let padding = rounded - buffer.size.get();
        for (start, end) in whole_steps(buffer) {
            changes.push((start, true, rounded, padding));
            changes.push((end, false, rounded, padding));
        }
    }
    // Ends come before starts of the same step.
    changes.sort_unstable();
    planlab_dsa::highest_rounded_load(&changes)
}

/// The steps at which all of a buffer is in use.
fn whole_steps(buffer: &Buffer) -> impl Iterator<Item = (u32, u32)> {
    let whole = buffer.active_pieces().filter(|piece| piece.bytes() == buffer.size.get());
    whole.map(|piece| (piece.steps.start().get(), piece.steps.end().get()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::placement::testing::aligned;

    fn value(buffers: &[Buffer]) -> Option<u64> {
        let instance = Instance::from_buffers(buffers.to_vec()).expect("valid");
        let known = instance.load().bytes.get();
        let found = Aligned.prove_bound(&instance, known, &mut |_| Ok(())).expect("no limit");
        found.map(|found| found.value)
    }

    #[test]
    fn the_padding_below_the_top_counts() {
        let rows = [
            (vec![aligned(5, 0, 2, 8), aligned(9, 0, 2, 8), aligned(3, 1, 3, 8)], Some(25)),
            (vec![aligned(5, 0, 2, 8), aligned(8, 0, 2, 8)], None),
            (vec![aligned(5, 0, 2, 1), aligned(9, 0, 2, 8)], None),
            // The common divisor 4 gives 4 + 4 + 1 - 3; alignment 8 alone gives 8 + 1.
            (vec![aligned(1, 0, 1, 8), aligned(1, 0, 1, 8), aligned(1, 0, 1, 4)], Some(9)),
        ];
        for (buffers, expected) in rows {
            assert_eq!(value(&buffers), expected, "{buffers:?}");
        }
    }
}
