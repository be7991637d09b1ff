//! Bump, the baseline that every planner has to beat: one buffer after the other, no address ever used twice.
//!
//! The memory of network-wise allocation: every tensor of the net has its own place. Buffers lie in the order of their
//! ids; each offset is the end of the buffer before, rounded up to the alignment. In an arena with pinned buffers, the
//! rest lies above the highest of them.
//!
//! # References
//!
//! None: folklore.
//!
//! # Complexity
//!
//! O(n) time and memory.

use planlab_dsa::{Descriptor, Halt, Honours, Instance, Offset, Plan, Planner, Run};

use crate::demands::{fits_arenas, pinned_hand_overs};

/// The running sum of the sizes; key `bump`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Bump;

impl Planner for Bump {
    fn descriptor(&self) -> Descriptor {
        Descriptor {
            key: "bump".into(),
            summary: "running sum of the sizes; no address is used twice".into(),
            honours: Honours {
                pins: true,
                alignment: true,
                arenas: true,
                apart: true,
                work_limit: true,
                ..Honours::default()
            },
            reference: "folklore",
            complexity: "n",
            ..Descriptor::default()
        }
    }

    fn plan(&self, run: &mut Run<'_>) -> Result<(), Halt> {
        let instance = run.instance();
        let Some(in_place) = pinned_hand_overs(instance) else { return Ok(()) };
        run.tick(instance.len() as u64)?;
        let plan = Plan { offsets: stack_buffers(instance), in_place };
        if fits_arenas(instance, &plan.offsets) { run.offer(plan) } else { Ok(()) }
    }
}

fn stack_buffers(instance: &Instance) -> Vec<Offset> {
    let mut tops = vec![0_u64; instance.arenas().len()];
    for buffer in instance.buffers() {
        if let Some(end) = buffer.pin.and_then(|pin| pin.end_of(buffer.size)) {
            let top = &mut tops[buffer.arena.index()];
            *top = (*top).max(end.get());
        }
    }
    let place = |buffer: &planlab_dsa::Buffer| {
        buffer.pin.unwrap_or_else(|| {
            let top = &mut tops[buffer.arena.index()];
            let offset = buffer.align.round_up(*top).expect("an instance leaves room for all padding");
            *top = offset + buffer.size.get();
            Offset::new(offset)
        })
    };
    instance.buffers().iter().map(place).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::placement::testing::{aligned, place_buffers, test_buffer};

    #[test]
    fn offsets_are_padded_sums_above_the_pins() {
        let pinned = test_buffer(4, 0, 1).with_pin(Offset::new(6));
        assert_eq!(
            place_buffers(&Bump, vec![test_buffer(3, 0, 1), pinned, aligned(5, 0, 1, 8)]),
            [10, 6, 16]
        );
    }
}
