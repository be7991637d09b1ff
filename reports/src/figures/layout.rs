//! The rectangles of a plan: steps, addresses, and the buffer.

use planlab_dsa::{BufferId, Instance, VerifiedPlan};

/// A rectangle; addresses count upwards through all arenas, stacked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rectangle {
    pub(crate) start: u32,
    pub(crate) end: u32,
    pub(crate) low: u64,
    pub(crate) high: u64,
    pub(crate) id: BufferId,
}

/// A plan as rectangles; without a plan, the buffers stacked.
#[derive(Clone, Debug)]
pub(crate) struct Layout {
    pub(crate) rectangles: Vec<Rectangle>,
    pub(crate) height: u64,
    pub(crate) horizon: u32,
    /// The lowest address of each arena except the first.
    pub(crate) borders: Vec<u64>,
}

impl Layout {
    pub(crate) fn new(instance: &Instance, plan: Option<&VerifiedPlan<'_>>) -> Self {
        let (offsets, bases) = match plan {
            Some(plan) => (plan.offsets().iter().map(|offset| offset.get()).collect(), bases(instance, plan)),
            None => (stacked(instance), vec![0; instance.arenas().len()]),
        };
        let height = plan.map_or(instance.total().get(), |plan| plan.height().get());
        let mut rectangles = Vec::with_capacity(instance.len());
        for ((buffer, offset), id) in instance.buffers().iter().zip(&offsets).zip(instance.ids()) {
            let base = bases[buffer.arena.index()] + offset;
            rectangles.extend(buffer.pieces().map(|piece| Rectangle {
                start: piece.steps.start().get(),
                end: piece.steps.end().get(),
                low: base + piece.window.start.get(),
                high: base + piece.window.end.get(),
                id,
            }));
        }
        let borders = bases.into_iter().filter(|&base| base > 0).collect();
        Self { rectangles, height, horizon: instance.horizon().get(), borders }
    }
}

/// The first address of each arena if they are stacked.
fn bases(instance: &Instance, plan: &VerifiedPlan<'_>) -> Vec<u64> {
    let mut tops = vec![0_u64; instance.arenas().len()];
    for (buffer, offset) in instance.buffers().iter().zip(plan.offsets()) {
        let top = &mut tops[buffer.arena.index()];
        *top = (*top).max(offset.get() + buffer.size.get());
    }
    let mut below = 0;
    for top in &mut tops {
        let base = below;
        below += *top;
        *top = base;
    }
    tops
}

/// Offsets without any reuse, in the order in which the buffers become live.
fn stacked(instance: &Instance) -> Vec<u64> {
    let mut order: Vec<BufferId> = instance.ids().collect();
    order.sort_by_key(|&id| (instance.buffer(id).live.start(), id));
    let mut offsets = vec![0; instance.len()];
    let mut top = 0;
    for id in order {
        offsets[id.index()] = top;
        top += instance.buffer(id).size.get();
    }
    offsets
}

#[cfg(test)]
mod tests {
    use super::*;
    use planlab_dsa::{Arena, ArenaId, Buffer, Bytes, LiveRange, Offset, Plan};

    fn buffer(size: u64, start: u32, end: u32) -> Buffer {
        Buffer::new(Bytes::new(size), LiveRange::new(start, end).expect("not empty"))
    }

    #[test]
    fn without_a_plan_buffers_lie_one_above_the_other_in_order_of_their_start() {
        let instance = Instance::from_buffers(vec![buffer(4, 2, 3), buffer(2, 0, 1)]).expect("valid");
        let layout = Layout::new(&instance, None);
        let spans: Vec<_> = layout.rectangles.iter().map(|r| (r.low, r.high)).collect();
        assert_eq!((spans, layout.height, layout.horizon), (vec![(2, 6), (0, 2)], 6, 3));
    }

    #[test]
    fn arenas_lie_one_above_the_other() {
        let instance = Instance::builder()
            .buffers([buffer(4, 0, 1), buffer(2, 0, 1).in_arena(ArenaId::new(1))])
            .arenas([Arena::default(), Arena::default()])
            .build()
            .expect("valid");
        let plan = instance.verify(Plan::from_offsets([0, 3].map(Offset::new))).expect("valid");
        let layout = Layout::new(&instance, Some(&plan));
        assert_eq!((layout.rectangles[1].low, layout.height, &layout.borders[..]), (7, 9, &[4][..]));
    }
}
