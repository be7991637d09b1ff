//! Why a plan is as high as it is: the buffer that reaches the height, the holes below it, and what lies in their way.

use std::collections::BTreeMap;

use planlab_dsa::{BufferId, Instance};

use crate::figures::layout::{Layout, Rectangle};

/// The buffer that makes a plan as high as it is, and what is free below it at the fullest step of its life.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Blocked {
    pub(crate) top: BufferId,
    /// The number of buffers that reach the height.
    pub(crate) tops: usize,
    /// The first step of its life with the least free memory below it.
    pub(crate) step: u32,
    /// Bytes that are free below it at that step.
    pub(crate) free: u64,
    /// From the largest.
    pub(crate) holes: Vec<Hole>,
}

/// Free memory between buffers at one step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Hole {
    pub(crate) low: u64,
    pub(crate) size: u64,
    pub(crate) below: Option<BufferId>,
    pub(crate) above: BufferId,
    pub(crate) reason: Reason,
}

/// Why the buffer at the top does not lie in a hole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reason {
    TooSmall,
    /// While it lives, these many other buffers lie there too, this one first.
    Taken(BufferId, usize),
    /// It would fit: the plan can be improved, at least where this buffer alone reaches the height.
    Fits,
}

impl Blocked {
    /// The answer for an instance of one arena; `None` if it has no buffers.
    pub(crate) fn from_layout(instance: &Instance, layout: &Layout) -> Option<Self> {
        let tops = || layout.rectangles.iter().filter(|rectangle| rectangle.high == layout.height);
        let top = tops().min_by_key(|rectangle| (rectangle.start, rectangle.id))?;
        let is_beside = |other: &&Rectangle| other.start < top.end && top.start < other.end;
        let beside: Vec<&Rectangle> = layout.rectangles.iter().filter(is_beside).collect();
        let step = fullest_step(instance, top, &beside);
        let mut holes = free_holes(top, step, &beside);
        for hole in &mut holes {
            hole.reason = blocking_reason(instance, top, hole, &beside);
        }
        let free = holes.iter().map(|hole| hole.size).sum();
        holes.sort_by_key(|hole| (std::cmp::Reverse(hole.size), hole.low));
        Some(Self { top: top.id, tops: tops().count(), step, free, holes })
    }
}

/// The first step of a buffer's life at which most bytes are in use, counted like the load.
fn fullest_step(instance: &Instance, top: &Rectangle, beside: &[&Rectangle]) -> u32 {
    let mut changes: BTreeMap<u32, i128> = BTreeMap::new();
    let outputs = instance.hand_over_outputs();
    for other in beside {
        let is_first = other.start == instance.buffer(other.id).live.start().get();
        let counted = other.start + u32::from(is_first && outputs[other.id.index()]);
        if counted >= other.end.min(top.end) {
            continue;
        }
        let size = i128::from(other.high - other.low);
        *changes.entry(counted.max(top.start)).or_default() += size;
        if other.end < top.end {
            *changes.entry(other.end).or_default() -= size;
        }
    }
    let (mut used, mut most) = (0, (0, top.start));
    for (step, change) in changes {
        used += change;
        if used > most.0 {
            most = (used, step);
        }
    }
    most.1
}

/// The free ranges below a buffer at a step, from the lowest. Buffers that are handed over may share bytes.
fn free_holes(top: &Rectangle, step: u32, beside: &[&Rectangle]) -> Vec<Hole> {
    let mut live: Vec<&Rectangle> =
        beside.iter().copied().filter(|other| other.start <= step && step < other.end).collect();
    live.sort_unstable_by_key(|other| (other.low, other.id));
    let (mut holes, mut edge, mut below) = (Vec::new(), 0, None);
    for other in live.into_iter().take_while(|other| other.low <= top.low) {
        if other.low > edge {
            let (low, size) = (edge, other.low - edge);
            holes.push(Hole { low, size, below, above: other.id, reason: Reason::TooSmall });
        }
        if other.high > edge {
            (edge, below) = (other.high, Some(other.id));
        }
    }
    holes
}

fn blocking_reason(instance: &Instance, top: &Rectangle, hole: &Hole, beside: &[&Rectangle]) -> Reason {
    let end = hole.low + hole.size;
    let low = instance.buffer(top.id).align.round_up(hole.low);
    let needed = low.and_then(|low| low.checked_add(top.high - top.low));
    if needed.is_none_or(|needed| needed > end) {
        return Reason::TooSmall;
    }
    let others = beside.iter().filter(|other| other.low < end && hole.low < other.high && other.id != top.id);
    match others.clone().min_by_key(|other| (other.start, other.id)) {
        Some(first) => Reason::Taken(first.id, others.count()),
        None => Reason::Fits,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::samples::{self, Life, buffer, plan};
    use planlab_dsa::{InPlace, Offset, Plan};

    fn blocked(buffers: &[Life], offsets: &[u64]) -> Blocked {
        let instance = samples::instance(buffers);
        let layout = Layout::new(&instance, Some(&plan(&instance, offsets)));
        Blocked::from_layout(&instance, &layout).expect("has a top")
    }

    /// ```text
    /// 16 |      4444
    /// 12 |  33
    ///  8 |  222222
    ///  4 |      111
    ///  0 |  00
    /// ```
    #[test]
    fn holes_by_what_lies_in_their_way() {
        let id = BufferId::new;
        let answer = blocked(&[(4, 0, 2), (4, 4, 7), (4, 0, 6), (4, 0, 2), (6, 3, 7)], &[0, 4, 8, 12, 16]);
        assert_eq!((answer.top, answer.tops, answer.step, answer.free), (id(4), 1, 4, 8));
        let hole = |low, below, above, reason| Hole { low, size: 4, below, above, reason };
        let small = Reason::TooSmall;
        assert_eq!(answer.holes, [hole(0, None, id(1), small), hole(12, Some(id(2)), id(4), small)]);
        // The top one needs 4 bytes: 0 to 4 are free in its whole life, 4 to 8 are not.
        let answer = blocked(&[(4, 0, 2), (4, 4, 7), (8, 0, 6), (4, 3, 7)], &[0, 4, 8, 16]);
        assert_eq!((answer.step, answer.free), (4, 4));
        assert_eq!(answer.holes[0].reason, Reason::Fits);
        let answer = blocked(&[(4, 0, 2), (4, 4, 7), (8, 3, 4), (8, 4, 6), (8, 3, 7)], &[0, 4, 0, 8, 16]);
        assert_eq!((answer.step, answer.free, answer.holes[0].reason), (4, 4, small));
        let answer = blocked(&[(4, 0, 3), (4, 2, 7), (8, 0, 3), (4, 1, 5)], &[0, 12, 4, 16]);
        assert_eq!((answer.step, answer.free, answer.holes.len()), (2, 0, 0), "full at step 2");
        let answer = blocked(&[(9, 0, 2), (1, 2, 6), (9, 2, 6), (4, 1, 6)], &[0, 9, 10, 19]);
        assert_eq!((answer.step, answer.holes[0].reason), (2, Reason::Taken(id(0), 1)));
    }

    /// The top is handed over at step 4, at which a sum of sizes would be the highest.
    #[test]
    fn an_output_does_not_fill_its_first_step() {
        let permission = InPlace { input: BufferId::new(1), output: BufferId::new(2) };
        let buffers = [buffer(4, 0, 3), buffer(8, 0, 5), buffer(8, 4, 7)];
        let instance = Instance::builder().buffers(buffers).in_place([permission]).build().expect("valid");
        let offsets = [0, 4, 4].map(Offset::new).to_vec();
        let plan = Plan { offsets, in_place: vec![permission] };
        let plan = instance.verify(plan).expect("valid");
        let answer =
            Blocked::from_layout(&instance, &Layout::new(&instance, Some(&plan))).expect("has a top");
        assert_eq!((answer.top, answer.step, answer.free), (BufferId::new(1), 0, 0));
    }
}
