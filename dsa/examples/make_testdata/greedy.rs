//! The heuristics that the adversaries of the corpus attack, in their simplest form.

use std::cmp::Reverse;

use planlab_dsa::testing::first_fit;
use planlab_dsa::{BufferId, Bytes, Instance, LiveRange, Offset, Plan};

/// A heuristic: its planner's key, and its height on an instance of plain buffers.
pub(crate) type Greedy = (&'static str, fn(&Instance) -> Bytes);

/// All heuristics.
pub(crate) const ALL: [Greedy; 6] = [
    ("first-fit/start", |instance| {
        in_order(instance, |size, live| (u64::from(live.start().get()), Reverse(size)))
    }),
    ("first-fit/size", |instance| {
        in_order(instance, |size, live| (u64::MAX - size, Reverse(u64::from(live.width()))))
    }),
    ("first-fit/area", |instance| {
        in_order(instance, |size, live| (u64::MAX - size * u64::from(live.width()), Reverse(size)))
    }),
    ("first-fit/width", |instance| {
        in_order(instance, |size, live| (u64::from(u32::MAX - live.width()), Reverse(size)))
    }),
    ("greedy-by-size", greedy_by_size),
    ("best-fit", best_fit),
];

fn height(instance: &Instance, offsets: Vec<Offset>) -> Bytes {
    let verified = instance.verify(Plan::from_offsets(offsets)).expect("a heuristic's plan is valid");
    verified.height()
}

fn in_order<K: Ord>(instance: &Instance, key: impl Fn(u64, LiveRange) -> K) -> Bytes {
    let mut order: Vec<BufferId> = instance.ids().collect();
    order.sort_by_key(|&id| (key(instance.buffer(id).size.get(), instance.buffer(id).live), id));
    height(instance, first_fit(instance, &order, &[]).offsets)
}

/// Largest first, each into the smallest gap between the buffers that are live with it, or else on top of them.
fn greedy_by_size(instance: &Instance) -> Bytes {
    let mut order: Vec<BufferId> = instance.ids().collect();
    order.sort_by_key(|&id| (Reverse(instance.buffer(id).size), id));
    let mut offsets = vec![Offset::default(); instance.len()];
    for (rank, &id) in order.iter().enumerate() {
        let (size, live) = (instance.buffer(id).size.get(), instance.buffer(id).live);
        let there = order[..rank].iter().filter(|&&other| instance.buffer(other).live.overlaps(live));
        let mut spans: Vec<(u64, u64)> = there
            .map(|&other| (offsets[other.index()].get(), instance.buffer(other).size.get()))
            .map(|(offset, size)| (offset, offset + size))
            .collect();
        spans.sort_unstable();
        let (mut top, mut best) = (0, None);
        for (low, high) in spans {
            if low >= top + size && best.is_none_or(|(gap, _)| low - top < gap) {
                best = Some((low - top, top));
            }
            top = top.max(high);
        }
        offsets[id.index()] = Offset::new(best.map_or(top, |(_, offset)| offset));
    }
    height(instance, offsets)
}

/// The skyline over time: the lowest, then leftmost line takes the longest-lived buffer that fits its span. If none
/// fits, the line is lifted to its lower neighbour.
fn best_fit(instance: &Instance) -> Bytes {
    let mut offsets = vec![Offset::default(); instance.len()];
    let mut open: Vec<BufferId> = instance.ids().collect();
    // A line is its first step, the step after its last, and its offset.
    let mut lines = vec![(0, instance.horizon().get(), 0_u64)];
    while !open.is_empty() {
        let (at, &(left, right, offset)) =
            lines.iter().enumerate().min_by_key(|(_, line)| (line.2, line.0)).expect("there is a line");
        let inside = |live: LiveRange| left <= live.start().get() && live.end().get() <= right;
        let fitting = open.iter().copied().filter(|&id| inside(instance.buffer(id).live));
        let key = |&id: &BufferId| {
            let buffer = instance.buffer(id);
            (buffer.live.width(), buffer.size, Reverse(id))
        };
        if let Some(id) = fitting.max_by_key(key) {
            let (live, size) = (instance.buffer(id).live, instance.buffer(id).size.get());
            let (start, end) = (live.start().get(), live.end().get());
            offsets[id.index()] = Offset::new(offset);
            open.retain(|&other| other != id);
            lines.splice(at..=at, [(left, start, offset), (start, end, offset + size), (end, right, offset)]);
        } else {
            let before = at.checked_sub(1).map(|before| lines[before].2);
            let after = lines.get(at + 1).map(|line| line.2);
            let neighbours = before.into_iter().chain(after);
            lines[at].2 = neighbours.min().expect("a line over all steps takes every buffer");
        }
        lines.retain(|line| line.0 < line.1);
        lines.dedup_by(|right, left| {
            left.2 == right.2 && {
                left.1 = right.1;
                true
            }
        });
    }
    height(instance, offsets)
}
