//! The heaps of XLA: by lifetime or by size, each in the smallest free chunk.
//!
//! *Temporal* takes the longest lifetime first, of equals the largest; *spatial* the largest first, of equals the
//! longest. Each buffer takes the smallest sufficient free chunk between the buffers that it overlaps in time, the
//! lowest of equals; above everything lies a last chunk without an end. *Best* makes both plans and keeps the lower
//! one, of equals the spatial one.
//!
//! # References
//!
//! 1. OpenXLA, `xla/service/heap_simulator/heap_simulator.cc` (`GlobalDecreasingSizeBestFitHeap`,
//!    `ChooseBestHeapAlgorithm`), 2018 to 2025; `xla/service/buffer_assignment.cc` for the order of the two.
//!
//! # Complexity
//!
//! O(n g log n) if a buffer has g sufficient gaps to compare. The published heap makes a map of the free chunks for
//! each buffer: O(n k log k) for k overlapping buffers.
//!
//! # Deviations from the paper
//!
//! - A lifetime is counted in steps. In the original the clock ticks once with each allocation and each release, which
//!   is the same on a trace that has a step for each of them.
//! - The original rounds up to one alignment for all at the end of a chunk; here each buffer has its own. A gap is
//!   measured from the first aligned offset in it, as in the original.
//! - Values that share one place (aliases) come as one buffer or as in-place permissions. The original's spatial heap
//!   uses the lifetime of the first value, here that of the whole buffer counts. The original always uses a permission;
//!   here it is used only if its place is rated best.
//! - Two features are left out: a limit on the size of a heap, above which another is begun, and the slices of
//!   asynchronous copies.
//! - Pins, pauses, arenas and kept-apart pairs are honoured.

use std::cmp::Reverse;

use planlab_dsa::{BufferId, Descriptor, Halt, Instance, Planner, Run};

use super::HONOURS;
use super::placer::{Rule, plan_in_order};
use crate::placement::order::{by_size_and_width, sort_by};

/// Smallest sufficient chunk, by lifetime and size; keys `xla/temporal`, `xla/spatial`, `xla/best`.
#[derive(Clone, Copy, Debug)]
pub struct Xla {
    name: &'static str,
    words: &'static str,
    orders: &'static [fn(&Instance) -> Vec<BufferId>],
}

impl Xla {
    /// Longest lifetime first, of equals the largest.
    #[must_use]
    pub const fn by_lifetime() -> Self {
        Self {
            name: "temporal",
            words: "longest lifetime first, then largest, ties by id",
            orders: &[sort_by_lifetime],
        }
    }

    /// Largest first, of equals the longest lifetime.
    #[must_use]
    pub const fn by_size() -> Self {
        Self {
            name: "spatial",
            words: "largest first, then longest lifetime, ties by id",
            orders: &[by_size_and_width],
        }
    }

    /// The lower of the two plans.
    #[must_use]
    pub const fn lower_of_both() -> Self {
        Self {
            name: "best",
            words: "the lower plan of largest first and longest lifetime first",
            orders: &[by_size_and_width, sort_by_lifetime],
        }
    }
}

impl Planner for Xla {
    fn descriptor(&self) -> Descriptor {
        Descriptor {
            key: format!("xla/{}", self.name).into(),
            summary: format!("smallest sufficient free chunk, {}", self.words).into(),
            honours: HONOURS,
            reference: "OpenXLA, heap_simulator.cc (GlobalDecreasingSizeBestFitHeap)",
            complexity: "n g log n for g gaps to compare",
            ..Descriptor::default()
        }
    }

    fn plan(&self, run: &mut Run<'_>) -> Result<(), Halt> {
        for order in self.orders {
            let order = order(run.instance());
            plan_in_order(run, &order, Rule::BestFitAligned)?;
        }
        Ok(())
    }
}

fn sort_by_lifetime(instance: &Instance) -> Vec<BufferId> {
    sort_by(instance, |buffer| (Reverse(buffer.live.width()), Reverse(buffer.size)))
}

#[cfg(test)]
mod tests {
    use planlab_dsa::{Budget, Bytes, Offset, execute};

    use super::*;
    use crate::placement::testing::{aligned, scripted};

    /// A training step of a small net as laid out by XLA's CPU backend, by the id of the first value. Columns: size,
    /// first and last step, the last step of the first of the values that share the place, and the offset.
    const RECORDED: [(u64, u32, u32, u32, u64); 22] = [
        (2_097_152, 14, 49, 49, 16_777_216),
        (2_097_152, 16, 53, 49, 18_874_368),
        (2_097_152, 18, 47, 47, 20_971_520),
        (16_777_216, 11, 50, 50, 0),
        (2_097_152, 19, 43, 43, 23_068_672),
        (2_097_152, 20, 48, 43, 25_165_824),
        (2_097_152, 21, 41, 41, 27_262_976),
        (2_097_152, 22, 36, 36, 29_360_128),
        (2_097_152, 23, 42, 36, 31_457_280),
        (2_097_152, 24, 33, 33, 33_554_432),
        (1_024_000, 26, 34, 30, 37_748_736),
        (1024, 27, 31, 29, 35_652_608),
        (1024, 17, 30, 28, 35_651_584),
        (2_097_152, 32, 36, 36, 35_651_584),
        (2_097_152, 40, 43, 43, 29_360_128),
        (2_097_152, 46, 49, 49, 23_068_672),
        (6_422_528, 52, 54, 54, 0),
        (8192, 53, 55, 55, 6_422_528),
        (8192, 48, 51, 51, 20_971_520),
        (8192, 42, 45, 45, 27_262_976),
        (4000, 34, 38, 38, 33_554_432),
        (1_024_000, 31, 35, 35, 38_772_736),
    ];

    #[test]
    fn a_heap_that_xla_laid_out_comes_out_to_the_byte() {
        let buffers = RECORDED.map(|(size, first, last, ..)| aligned(size, first, last + 1, 64));
        let instance = Instance::from_buffers(buffers.to_vec()).expect("valid");
        // If values share a place, XLA uses the lifetime of the first.
        let own = |id: &BufferId| {
            let (size, first, _, last, _) = RECORDED[id.index()];
            (Reverse(size), Reverse(last - first))
        };
        let mut order: Vec<BufferId> = instance.ids().collect();
        order.sort_by_key(own);
        let given =
            scripted(Xla::by_size().descriptor(), |run| plan_in_order(run, &order, Rule::BestFitAligned));
        let best = execute(&given, &instance, Budget::default(), 0).best.expect("a plan");
        assert_eq!(best.offsets(), RECORDED.map(|(.., offset)| Offset::new(offset)));
        let height = execute(&Xla::lower_of_both(), &instance, Budget::default(), 0).height();
        assert_eq!(height, Some(Bytes::new(39_796_736)));
    }
}
