//! The rectangles of a plan: steps, addresses, and the buffer.

use planlab_dsa::{BufferId, Instance, VerifiedPlan};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rectangle {
    pub(crate) start: u32,
    pub(crate) end: u32,
    pub(crate) low: u64,
    pub(crate) high: u64,
    pub(crate) id: BufferId,
}

/// The buffers of one arena as rectangles, where a plan puts them; without a plan, stacked.
#[derive(Clone, Debug)]
pub(crate) struct Layout {
    pub(crate) rectangles: Vec<Rectangle>,
    pub(crate) height: u64,
    /// The first step after the whole instance.
    pub(crate) horizon: u32,
    /// Addresses at which unused ranges are cut out.
    pub(crate) borders: Vec<u64>,
}

impl Layout {
    /// The layout of an instance of one arena.
    pub(crate) fn new(instance: &Instance, plan: Option<&VerifiedPlan<'_>>) -> Self {
        debug_assert_eq!(instance.arenas().len(), 1, "the others would be left out");
        Self::of_arenas(instance, plan).swap_remove(0)
    }

    pub(crate) fn of_arenas(instance: &Instance, plan: Option<&VerifiedPlan<'_>>) -> Vec<Self> {
        let (offsets, heights) = match plan {
            Some(plan) => {
                let heights = plan.arena_heights().into_iter().map(|height| height.get()).collect();
                (plan.offsets().iter().map(|offset| offset.get()).collect(), heights)
            }
            None => stacked_offsets(instance),
        };
        let horizon = instance.horizon().get();
        let empty = |height| Self { rectangles: Vec::new(), height, horizon, borders: Vec::new() };
        let mut layouts: Vec<Self> = heights.into_iter().map(empty).collect();
        for ((buffer, offset), id) in instance.buffers().iter().zip(&offsets).zip(instance.ids()) {
            let pieces = buffer.active_pieces().map(|piece| Rectangle {
                start: piece.steps.start().get(),
                end: piece.steps.end().get(),
                low: offset + piece.window.start.get(),
                high: offset + piece.window.end.get(),
                id,
            });
            layouts[buffer.arena.index()].rectangles.extend(pieces);
        }
        layouts
    }
}

/// Offsets without any reuse, in the order in which the buffers become live, and the heights of the arenas.
fn stacked_offsets(instance: &Instance) -> (Vec<u64>, Vec<u64>) {
    let mut order: Vec<BufferId> = instance.ids().collect();
    order.sort_by_key(|&id| (instance.buffer(id).live.start(), id));
    let mut offsets = vec![0; instance.len()];
    let mut tops = vec![0; instance.arenas().len()];
    for id in order {
        let top = &mut tops[instance.buffer(id).arena.index()];
        offsets[id.index()] = *top;
        *top += instance.buffer(id).size.get();
    }
    (offsets, tops)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::samples::{self, buffer, plan};
    use planlab_dsa::{Arena, ArenaId};

    #[test]
    fn without_a_plan_buffers_lie_one_above_the_other_in_order_of_their_start() {
        let instance = samples::instance(&[(4, 2, 3), (2, 0, 1)]);
        let layout = Layout::new(&instance, None);
        let spans: Vec<_> = layout.rectangles.iter().map(|r| (r.low, r.high)).collect();
        assert_eq!((spans, layout.height, layout.horizon), (vec![(2, 6), (0, 2)], 6, 3));
    }

    #[test]
    fn each_arena_has_addresses_of_its_own() {
        let instance = Instance::builder()
            .buffers([buffer(4, 0, 1), buffer(2, 0, 1).in_arena(ArenaId::new(1))])
            .arenas([Arena::default(), Arena::default()])
            .build()
            .expect("valid");
        let plan = plan(&instance, &[0, 3]);
        for (plan, low) in [(Some(&plan), 3), (None, 0)] {
            let layouts = Layout::of_arenas(&instance, plan);
            let seen = |layout: &Layout| (layout.rectangles.len(), layout.rectangles[0].low, layout.height);
            assert_eq!(layouts.iter().map(seen).collect::<Vec<_>>(), [(1, 0, 4), (1, low, low + 2)]);
        }
    }
}
