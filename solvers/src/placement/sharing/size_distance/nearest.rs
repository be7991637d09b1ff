//! Buffers and the holes of objects, by their distance in time.
//!
//! A *hole* is a time in which an object is free: from the end of one buffer in it to the start of the next. In
//! reversed time the hole after a buffer is a hole before it, so that there are two [`Side`]s of one kind, one of
//! them with mirrored live ranges.
//!
//! ```text
//!   object | aaaa......tttt.....        the hole before t: [end of a, start of t)
//!   waiting|     uu ww                  of both, w is nearer to t
//! ```

use planlab_dsa::{BufferId, Instance};

use crate::trees::FirstAtMost;

/// All buffers by their starts, then by size, the largest first, then by id. Stores the ends of the waiting buffers,
/// and the holes before those that have an object.
#[derive(Clone, Debug)]
pub(super) struct Side {
    lives: Vec<(u32, u32)>,
    order: Vec<BufferId>,
    starts: Vec<u32>,
    place_of: Vec<u32>,
    waiting: FirstAtMost,
    holes: FirstAtMost,
}

/// The side on which time runs forwards, and the mirrored one.
pub(super) fn both_sides(instance: &Instance) -> [Side; 2] {
    let lives = || instance.buffers().iter().map(|buffer| -> (u32, u32) { buffer.live.into() });
    let mirrored = lives().map(|(start, end)| (u32::MAX - end, u32::MAX - start));
    [Side::new(instance, lives().collect()), Side::new(instance, mirrored.collect())]
}

impl Side {
    fn new(instance: &Instance, lives: Vec<(u32, u32)>) -> Self {
        let size = |id: BufferId| std::cmp::Reverse(instance.buffer(id).size);
        let mut order: Vec<BufferId> = instance.ids().collect();
        order.sort_unstable_by_key(|&id| (lives[id.index()].0, size(id), id));
        let mut place_of = vec![0; order.len()];
        for (&id, place) in order.iter().zip(0..) {
            place_of[id.index()] = place;
        }
        let starts = order.iter().map(|id| lives[id.index()].0).collect();
        let tree = FirstAtMost::new(order.len());
        Self { lives, order, starts, place_of, waiting: tree.clone(), holes: tree }
    }

    /// Start and end of a buffer, as time runs on this side.
    pub(super) fn mirrored_life(&self, id: BufferId) -> (u32, u32) {
        self.lives[id.index()]
    }

    pub(super) fn set_waiting(&mut self, id: BufferId, waits: bool) {
        let end = self.mirrored_life(id).1;
        self.waiting.set_number(self.place_of[id.index()] as usize, waits.then_some(end));
    }

    /// Sets the start of the hole before a buffer that has an object.
    pub(super) fn set_hole(&mut self, id: BufferId, begin: u32) {
        self.holes.set_number(self.place_of[id.index()] as usize, Some(begin));
    }

    /// The waiting buffer that lies in `[begin, end)` and starts first.
    pub(super) fn first_waiting(&self, begin: u32, end: u32) -> Option<BufferId> {
        self.waiting.find_at_most(self.first_at(begin), end).map(|place| self.order[place])
    }

    /// The nearest buffer after `id` that has an object and a hole before it in which `id` fits.
    pub(super) fn next_around(&self, id: BufferId) -> Option<BufferId> {
        let (start, end) = self.mirrored_life(id);
        self.holes.find_at_most(self.first_at(end), start).map(|place| self.order[place])
    }

    fn first_at(&self, step: u32) -> usize {
        self.starts.partition_point(|&start| start < step)
    }
}
