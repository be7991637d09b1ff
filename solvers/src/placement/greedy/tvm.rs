//! The greedy planners of TVM's unified static memory planner: each buffer on top of what it conflicts with.
//!
//! *By size* takes the largest buffer first, of equals the one with most conflicts; *by conflicts* swaps the two keys.
//! A buffer's offset is the highest end among the placed buffers that it conflicts with, or 0 without conflicts. Gaps
//! below that offset are never used.
//!
//! ```text
//!    address
//!      ^         +-----+
//!      |         |  c  |     at c's steps all is free below b,
//!      |    +----+--+--+     but c overlaps b: it goes on top
//!      |    |   b   |
//!      |  +-+--+----+
//!      |  | a  |
//!      +--+----+------------> step
//! ```
//!
//! # References
//!
//! 1. Apache TVM, `src/tir/usmp/algo/greedy.cc`, 2021.
//! 2. Apache TVM RFC 9, *Unified Static Memory Planning*, 2021.
//!
//! # Complexity
//!
//! O(n log n): conflicts are counted from sorted starts and ends, the highest end comes from a tree over the
//! columns. The published loop visits every conflict.
//!
//! # Deviations from the paper
//!
//! - Ties are broken by the lower id; in the original by name, last in the alphabet first.
//! - An offset is rounded up to the buffer's own alignment. The original rounds the end of the buffer below up to the
//!   alignment of that one. This is the same if all have one alignment, and wrong otherwise.
//! - A buffer has one arena; in the original it has a list of pools and takes the first with room. There, a pool that
//!   one conflict has filled comes back with the next conflict, below what filled it. Here there is no plan if the rule
//!   exceeds a capacity.
//! - Pinned buffers come first, and everything that conflicts with them lies above. Pauses and kept-apart pairs are
//!   honoured: only the active pieces of a paused buffer count. In-place permissions are not used.

use std::cmp::Reverse;

use planlab_dsa::{Buffer, BufferId, Descriptor, Halt, Honours, Instance, Offset, Plan, Planner, Run};

use super::HONOURS;
use crate::demands::{fits_arenas, pinned_hand_overs};
use crate::placement::order::{Overlaps, sort_by};
use crate::trees::{Adjacency, Columns, Tops};

/// On top of all conflicts, by size and number of conflicts; keys `tvm/by-size`, `tvm/by-conflicts`.
#[derive(Clone, Copy, Debug)]
pub struct Tvm {
    first: First,
}

/// The key by which buffers are taken; the other one breaks its ties.
#[derive(Clone, Copy, Debug)]
enum First {
    Size,
    Conflicts,
}

impl Tvm {
    /// Largest first, of equals the one with most conflicts.
    #[must_use]
    pub const fn by_size() -> Self {
        Self { first: First::Size }
    }

    /// Most conflicts first, of equals the largest.
    #[must_use]
    pub const fn by_conflicts() -> Self {
        Self { first: First::Conflicts }
    }

    pub(crate) fn buffer_order(self, instance: &Instance) -> Vec<BufferId> {
        let conflicts = Overlaps::new(instance);
        let (size, count) =
            (|buffer: &Buffer| Reverse(buffer.size), |b: &Buffer| Reverse(conflicts.overlap_count(b)));
        match self.first {
            First::Size => sort_by(instance, |buffer| (size(buffer), count(buffer))),
            First::Conflicts => sort_by(instance, |buffer| (count(buffer), size(buffer))),
        }
    }
}

impl Planner for Tvm {
    fn descriptor(&self) -> Descriptor {
        let (name, words) = match self.first {
            First::Size => ("by-size", "largest first, then most conflicts"),
            First::Conflicts => ("by-conflicts", "most conflicts first, then largest"),
        };
        Descriptor {
            key: format!("tvm/{name}").into(),
            summary: format!("on top of all placed conflicts, {words}, ties by id").into(),
            honours: Honours { in_place: false, ..HONOURS },
            reference: "Apache TVM, src/tir/usmp/algo/greedy.cc, 2021",
            complexity: "n log n",
            ..Descriptor::default()
        }
    }

    fn plan(&self, run: &mut Run<'_>) -> Result<(), Halt> {
        let instance = run.instance();
        let Some(in_place) = pinned_hand_overs(instance) else { return Ok(()) };
        let mut stack = Stack::new(instance);
        for id in self.buffer_order(instance) {
            if instance.buffer(id).pin.is_none() {
                run.tick(1)?;
                stack.place_buffer(id);
            }
        }
        let offset = |offset: Option<u64>| Offset::new(offset.expect("every buffer was placed"));
        let plan = Plan { offsets: stack.offsets.into_iter().map(offset).collect(), in_place };
        if fits_arenas(instance, &plan.offsets) { run.offer(plan) } else { Ok(()) }
    }
}

/// The placed buffers, as the highest end at each time.
struct Stack<'i> {
    instance: &'i Instance,
    columns: Columns,
    arenas: Vec<Tops>,
    apart: Adjacency,
    offsets: Vec<Option<u64>>,
}

impl<'i> Stack<'i> {
    /// A stack of the pinned buffers.
    fn new(instance: &'i Instance) -> Self {
        let columns = Columns::of_pieces(instance);
        let mut this = Self {
            instance,
            arenas: vec![Tops::new(columns.len()); instance.arenas().len()],
            columns,
            apart: Adjacency::kept_apart(instance),
            offsets: vec![None; instance.len()],
        };
        for id in instance.ids() {
            if let Some(pin) = instance.buffer(id).pin {
                this.put_at(id, pin.get());
            }
        }
        this
    }

    fn place_buffer(&mut self, id: BufferId) {
        let buffer = self.instance.buffer(id);
        let tops = &self.arenas[buffer.arena.index()];
        let below = buffer.active_pieces().map(|piece| {
            let end = tops.highest_of(&self.columns.columns_of(piece.steps));
            end.saturating_sub(piece.window.start.get())
        });
        let apart = self.apart.of(id.get()).iter().filter_map(|&other| self.placed_end(BufferId::new(other)));
        let floor = below.chain(apart).max().unwrap_or(0);
        let offset = buffer.align.round_up(floor).expect("an instance leaves room for all padding");
        self.put_at(id, offset);
    }

    fn placed_end(&self, id: BufferId) -> Option<u64> {
        Some(self.offsets[id.index()]? + self.instance.buffer(id).size.get())
    }

    fn put_at(&mut self, id: BufferId, offset: u64) {
        self.offsets[id.index()] = Some(offset);
        let buffer = self.instance.buffer(id);
        for piece in buffer.active_pieces() {
            let columns = self.columns.columns_of(piece.steps);
            self.arenas[buffer.arena.index()].raise_to(&columns, offset + piece.window.end.get());
        }
    }
}

#[cfg(test)]
mod tests {
    use planlab_dsa::{Bytes, LiveRange, Pause};

    use super::*;
    use crate::placement::testing::{place_buffers, test_buffer};

    #[test]
    fn pins_lie_below_and_a_paused_buffer_counts_with_what_is_active() {
        let steps = LiveRange::new(2, 4).expect("not empty");
        let pause = Pause { steps, window: Some(Bytes::new(0)..Bytes::new(3)) };
        let all = vec![test_buffer(9, 0, 6).with_pauses([pause]), test_buffer(6, 2, 4), test_buffer(2, 4, 6)];
        assert_eq!(place_buffers(&Tvm::by_size(), all), [0, 3, 9]);
        let pinned = test_buffer(2, 0, 2).with_pin(Offset::new(5));
        assert_eq!(place_buffers(&Tvm::by_conflicts(), vec![test_buffer(4, 1, 3), pinned]), [7, 5]);
    }
}
