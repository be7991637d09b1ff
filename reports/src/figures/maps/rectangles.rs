//! The rectangles of a plan: steps, addresses, and the buffer.

use planlab_dsa::{BufferId, Instance, VerifiedPlan};

use super::MapOptions;
use crate::figures::chart::Room;
use crate::format::{count_real, real};

/// The margins around a map; the legend is in the right one.
pub(super) const ROOM: Room = Room { left: 92, top: 70, right: 168, bottom: 46, below: 3 };

/// A rectangle; addresses count upwards through all arenas, stacked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Rectangle {
    pub(super) start: u32,
    pub(super) end: u32,
    pub(super) low: u64,
    pub(super) high: u64,
    pub(super) id: BufferId,
}

/// A plan as rectangles; without a plan, the buffers stacked.
#[derive(Clone, Debug)]
pub(super) struct Layout {
    pub(super) rectangles: Vec<Rectangle>,
    pub(super) height: u64,
    pub(super) horizon: u32,
    /// The lowest address of each arena except the first.
    pub(super) borders: Vec<u64>,
}

impl Layout {
    pub(super) fn new(instance: &Instance, plan: Option<&VerifiedPlan<'_>>) -> Self {
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

/// Maps steps and addresses to pixels of a raster, row 0 at the top.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pixels {
    pub(super) columns: usize,
    pub(super) rows: usize,
    pub(super) horizon: u32,
    pub(super) top: u64,
}

impl Pixels {
    /// The raster of a map: the area inside the frame, up to the plan's height or the requested top.
    pub(super) fn new(layout: &Layout, options: &MapOptions) -> Self {
        let (width, height) = options.size();
        Self {
            columns: (width - ROOM.left - ROOM.right) as usize,
            rows: (height - ROOM.top - ROOM.bottom - ROOM.below) as usize,
            horizon: layout.horizon,
            top: options.top.unwrap_or(layout.height).max(1),
        }
    }

    /// The first column of a step.
    pub(super) fn column(&self, step: u32) -> usize {
        cell(f64::from(step) / f64::from(self.horizon.max(1)), self.columns)
    }

    /// The row above which an address begins, counted from the bottom.
    pub(super) fn level(&self, address: u64) -> usize {
        cell(real(address) / real(self.top.max(1)), self.rows)
    }

    /// The corners of a rectangle; at least one pixel.
    pub(super) fn corners(&self, rectangle: &Rectangle) -> ((usize, usize), (usize, usize)) {
        let left = self.column(rectangle.start).min(self.columns - 1);
        let right = self.column(rectangle.end).max(left + 1);
        let low = self.level(rectangle.low).min(self.rows - 1);
        let high = self.level(rectangle.high).max(low + 1).min(self.rows);
        ((left, self.rows - high), (right, self.rows - low))
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped to the raster")]
fn cell(share: f64, cells: usize) -> usize {
    (share * count_real(cells)).round().clamp(0.0, count_real(cells)) as usize
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

    #[test]
    fn what_is_small_has_a_pixel_all_the_same() {
        let pixels = Pixels { columns: 10, rows: 5, horizon: 1000, top: 1000 };
        let thin = |start, low| {
            let id = BufferId::new(0);
            pixels.corners(&Rectangle { start, end: start + 1, low, high: low + 1, id })
        };
        assert_eq!(thin(0, 0), ((0, 4), (1, 5)));
        assert_eq!(thin(999, 999), ((9, 0), (10, 1)));
        assert_eq!((pixels.column(500), pixels.level(500)), (5, 3));
    }
}
