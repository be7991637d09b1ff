//! Turns an order of the buffers into offsets, and updates them after a change of the order.
//!
//! The decoder goes through the order and places each buffer at the lowest offset that is free of the placed ones:
//! first fit. Pinned buffers come first. Some order gives an optimal plan (that of its offsets).
//!
//! After two buffers have changed places in the order, or one has moved, only the buffers whose offset may change are
//! placed again, in the new order:
//!
//! ```text
//!  order  ... a . c . . b . d . e     a and b change places. Placed again: b, a; those between that
//!  now    ... b . c . . a . d . e     overlap b's new place, or a's old one began below their end; then,
//!             ^------------> again    of what follows, the neighbours of each buffer that really moved,
//!                                     by the same rule
//! ```
//!
//! A neighbour that was placed later is affected only if the new place overlaps it, or if the old place began below its
//! end (it might sink into the room that is left). Everything else keeps the same walls around it.
//!
//! Beside the offsets, the decoder keeps the list of buffers that end above a *ceiling* and their *excess*: the sum of
//! what they stick out. It is 0 exactly if the plan is no higher than the ceiling.
//!
//! # Complexity
//!
//! A placement with k neighbours takes O(k log k); a change takes that for each buffer that is placed
//! again.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use planlab_dsa::Halt;

use super::model::Model;
use super::walls::Walls;
use crate::tick::Tick;

/// Neighbours that count as one unit of work.
const LOOKS_PER_WORK: usize = 4;
/// Marks a buffer that is not in `tall`.
const SMALL: u32 = u32::MAX;

/// A buffer's position in the order, and its place in the arena.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Spot {
    offset: u64,
    end: u64,
    position: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    /// Two buffers change places.
    Swap(u32, u32),
    /// A buffer goes to a position; those between move by one.
    Shift(u32, u32),
}

/// An order, its offsets, and what has changed since the last [`keep_changes`](Decoder::keep_changes).
#[derive(Clone, Debug)]
pub(crate) struct Decoder {
    model: Arc<Model>,
    order: Vec<u32>,
    /// Pinned buffers: the first positions, which never change.
    pinned: u32,
    spots: Vec<Spot>,
    ceiling: u64,
    excess: u128,
    tall: Vec<u32>,
    /// The position of each buffer in `tall`.
    tall_at: Vec<u32>,
    /// The changes that undo those made, the latest last.
    undo_order: Vec<Change>,
    undo_offsets: Vec<(u32, u64)>,
    queue: BinaryHeap<Reverse<u32>>,
    queued: Vec<bool>,
    walls: Walls,
    near: Vec<u32>,
    placed: u64,
}

impl Decoder {
    /// Decodes an order of all buffers; its pinned ones are moved to the front.
    pub(crate) fn new(model: Arc<Model>, order: &[u32], tick: &mut Tick<'_>) -> Result<Self, Halt> {
        let mut this = Self::without_offsets(model, order);
        for position in this.pinned..as_index(this.order.len()) {
            let id = this.order[position as usize];
            let offset = this.lowest_free(id, tick)?;
            this.put_at(id, offset);
        }
        Ok(this)
    }

    /// As [`Decoder::new`], with offsets that are known to be those of first fit.
    pub(crate) fn with_offsets(model: Arc<Model>, order: &[u32], offsets: &[u64]) -> Self {
        let mut this = Self::without_offsets(model, order);
        for (id, &offset) in (0..).zip(offsets) {
            this.put_at(id, offset);
        }
        this
    }

    fn without_offsets(model: Arc<Model>, order: &[u32]) -> Self {
        let count = model.len();
        let is_pinned = |id: &u32| model.pins[*id as usize].is_some();
        let (mut all, free): (Vec<u32>, Vec<u32>) = order.iter().partition(|id| is_pinned(id));
        all.sort_unstable();
        let pinned = as_index(all.len());
        all.extend(free);
        let mut spots = vec![Spot { offset: 0, end: 0, position: 0 }; count];
        for (position, &id) in (0..).zip(&all) {
            let offset = model.pins[id as usize].unwrap_or(0);
            spots[id as usize] = Spot { offset, end: offset + model.sizes[id as usize], position };
        }
        Self {
            order: all,
            pinned,
            spots,
            ceiling: u64::MAX,
            excess: 0,
            tall: Vec::new(),
            tall_at: vec![SMALL; count],
            undo_order: Vec::new(),
            undo_offsets: Vec::new(),
            queue: BinaryHeap::new(),
            queued: vec![false; count],
            walls: Walls::new(model.narrow),
            near: Vec::new(),
            placed: 0,
            model,
        }
    }

    pub(crate) fn model(&self) -> &Arc<Model> {
        &self.model
    }

    /// All buffers in the order in which they are placed.
    pub(crate) fn order(&self) -> &[u32] {
        &self.order
    }

    /// The first position that may change.
    pub(crate) const fn first_movable(&self) -> u32 {
        self.pinned
    }

    pub(crate) fn position(&self, id: u32) -> u32 {
        self.spots[id as usize].position
    }

    pub(crate) fn end(&self, id: u32) -> u64 {
        self.spots[id as usize].end
    }

    /// The ids of all buffers, ascending.
    pub(crate) fn ids(&self) -> impl Iterator<Item = u32> + use<> {
        0..as_index(self.spots.len())
    }

    /// All offsets, by id, in granules.
    pub(crate) fn offsets(&self) -> impl Iterator<Item = u64> + '_ {
        self.spots.iter().map(|spot| spot.offset)
    }

    /// The highest end, in granules; O(n).
    pub(crate) fn height(&self) -> u64 {
        self.spots.iter().map(|spot| spot.end).max().unwrap_or(0)
    }

    /// The number of placements so far.
    pub(crate) const fn placement_count(&self) -> u64 {
        self.placed
    }

    /// The sum, over the buffers, of the granules above the ceiling.
    pub(crate) const fn excess_over_ceiling(&self) -> u128 {
        self.excess
    }

    /// The buffers that end above the ceiling.
    pub(crate) fn tall_buffers(&self) -> &[u32] {
        &self.tall
    }

    pub(crate) const fn ceiling(&self) -> u64 {
        self.ceiling
    }

    /// Sets the ceiling; O(n).
    pub(crate) fn set_ceiling(&mut self, ceiling: u64) {
        self.ceiling = ceiling;
        self.excess = 0;
        self.tall.clear();
        self.tall_at.fill(SMALL);
        for id in 0..as_index(self.spots.len()) {
            self.count_in(id);
        }
    }

    fn count_in(&mut self, id: u32) {
        let end = self.spots[id as usize].end;
        if end > self.ceiling {
            self.excess += u128::from(end - self.ceiling);
            self.tall_at[id as usize] = as_index(self.tall.len());
            self.tall.push(id);
        }
    }

    fn count_out(&mut self, id: u32) {
        let at = std::mem::replace(&mut self.tall_at[id as usize], SMALL);
        if at != SMALL {
            self.excess -= u128::from(self.spots[id as usize].end - self.ceiling);
            self.tall.swap_remove(at as usize);
            if let Some(&moved) = self.tall.get(at as usize) {
                self.tall_at[moved as usize] = at;
            }
        }
    }

    fn put_at(&mut self, id: u32, offset: u64) {
        self.count_out(id);
        let spot = &mut self.spots[id as usize];
        spot.offset = offset;
        spot.end = offset + self.model.sizes[id as usize];
        self.count_in(id);
    }

    /// Writes the neighbours of a buffer into `found`.
    pub(crate) fn collect_neighbours(&self, id: u32, found: &mut Vec<u32>) {
        let mut scratch = Vec::new();
        found.clear();
        found.extend_from_slice(self.model.neighbours.neighbours_of(id, &mut scratch));
    }

    /// Makes a change and places again what it affects. The change must not name pinned buffers or their positions.
    ///
    /// # Errors
    ///
    /// What `tick` returns; the decoder must not be used after that.
    pub(crate) fn make_change(&mut self, change: Change, tick: &mut Tick<'_>) -> Result<(), Halt> {
        let (back, risen) = match change {
            Change::Swap(a, b) if a == b => return Ok(()),
            Change::Swap(a, b) => (change, self.swap_buffers(a, b)),
            Change::Shift(id, to) => {
                let from = self.position(id);
                if from == to {
                    return Ok(());
                }
                (Change::Shift(id, from), self.shift_buffer(id, from, to))
            }
        };
        self.undo_order.push(back);
        self.place_queued(risen, tick)
    }

    /// Exchanges two buffers and queues what that affects directly. Returns the one that now comes earlier, and its old
    /// position.
    fn swap_buffers(&mut self, a: u32, b: u32) -> Option<(u32, u32)> {
        let (a, b) = if self.position(a) < self.position(b) { (a, b) } else { (b, a) };
        let (low, high) = (self.position(a), self.position(b));
        self.exchange_positions(a, b);
        self.queue_left(a, low, high);
        self.enqueue_buffer(a);
        self.enqueue_buffer(b);
        Some((b, high))
    }

    fn exchange_positions(&mut self, a: u32, b: u32) {
        let (low, high) = (self.position(a), self.position(b));
        self.order.swap(low as usize, high as usize);
        self.spots[a as usize].position = high;
        self.spots[b as usize].position = low;
    }

    fn shift_buffer(&mut self, id: u32, from: u32, to: u32) -> Option<(u32, u32)> {
        self.rotate_order(from, to);
        self.enqueue_buffer(id);
        if to < from {
            return Some((id, from));
        }
        self.queue_left(id, from, to);
        None
    }

    fn rotate_order(&mut self, from: u32, to: u32) {
        let (from, to) = (from as usize, to as usize);
        if to < from {
            self.order[to..=from].rotate_right(1);
        } else {
            self.order[from..=to].rotate_left(1);
        }
        for position in from.min(to)..=from.max(to) {
            self.spots[self.order[position] as usize].position = as_index(position);
        }
    }

    /// Queues buffers at positions `[low, high)` that may sink into the place that a buffer leaves.
    fn queue_left(&mut self, id: u32, low: u32, high: u32) {
        let offset = self.spots[id as usize].offset;
        let near = std::mem::take(&mut self.near);
        let mut scratch = near;
        let model = Arc::clone(&self.model);
        for &other in model.neighbours.neighbours_of(id, &mut scratch) {
            let spot = self.spots[other as usize];
            if (low..high).contains(&spot.position) && offset < spot.end {
                self.enqueue_buffer(other);
            }
        }
        self.near = scratch;
    }

    fn enqueue_buffer(&mut self, id: u32) {
        let position = self.spots[id as usize].position;
        if position >= self.pinned && !std::mem::replace(&mut self.queued[id as usize], true) {
            self.queue.push(Reverse(position));
        }
    }

    /// Places what is queued, and what that affects in turn. `risen` is a buffer that now comes earlier, with its old
    /// position: for buffers up to that position it is a new wall.
    fn place_queued(&mut self, risen: Option<(u32, u32)>, tick: &mut Tick<'_>) -> Result<(), Halt> {
        while let Some(Reverse(position)) = self.queue.pop() {
            let id = self.order[position as usize];
            self.queued[id as usize] = false;
            let old = self.spots[id as usize];
            let offset = self.lowest_free(id, tick)?;
            let new_before = risen.filter(|&(risen, _)| risen == id).map(|(_, from)| from);
            if offset == old.offset && new_before.is_none() {
                continue;
            }
            self.undo_offsets.push((id, old.offset));
            self.put_at(id, offset);
            self.queue_touched(id, old, new_before);
        }
        Ok(())
    }

    fn queue_touched(&mut self, id: u32, old: Spot, new_before: Option<u32>) {
        let new = self.spots[id as usize];
        let mut scratch = std::mem::take(&mut self.near);
        let model = Arc::clone(&self.model);
        for &other in model.neighbours.neighbours_of(id, &mut scratch) {
            let spot = self.spots[other as usize];
            if spot.position <= new.position {
                continue;
            }
            let in_the_way = new.offset < spot.end && spot.offset < new.end;
            let was_before = new_before.is_none_or(|from| spot.position > from);
            let is_touched = if was_before {
                new.offset != old.offset && (in_the_way || old.offset < spot.end)
            } else {
                in_the_way
            };
            if is_touched {
                self.enqueue_buffer(other);
            }
        }
        self.near = scratch;
    }

    /// The lowest offset that is free of the buffers that come earlier.
    fn lowest_free(&mut self, id: u32, tick: &mut Tick<'_>) -> Result<u64, Halt> {
        self.placed += 1;
        let model = &*self.model;
        let position = self.spots[id as usize].position;
        let size = model.sizes[id as usize];
        self.walls.clear();
        let near = model.neighbours.neighbours_of(id, &mut self.near);
        let work = 1 + near.len() / LOOKS_PER_WORK;
        for &other in near {
            let spot = self.spots[other as usize];
            if spot.position >= position {
                continue;
            }
            if model.parts.is_empty() || model.neighbours.are_apart(id, other) {
                self.walls.add_wall((spot.offset + 1).saturating_sub(size), spot.end);
            } else {
                let (own, others) = (&model.parts[id as usize], &model.parts[other as usize]);
                self.walls.add_parts(own, others, spot.offset);
            }
        }
        let offset = self.walls.lowest_free(|offset| model.round_up(id, offset));
        tick(work as u64)?;
        Ok(offset)
    }

    /// Makes the changes since the last call permanent.
    pub(crate) fn keep_changes(&mut self) {
        self.undo_order.clear();
        self.undo_offsets.clear();
    }

    /// Undoes the changes since the last [`keep_changes`](Decoder::keep_changes).
    pub(crate) fn undo_changes(&mut self) {
        while let Some(change) = self.undo_order.pop() {
            match change {
                Change::Swap(a, b) => self.exchange_positions(a, b),
                Change::Shift(id, to) => self.rotate_order(self.position(id), to),
            }
        }
        while let Some((id, offset)) = self.undo_offsets.pop() {
            self.put_at(id, offset);
        }
    }

    /// Whether a buffer carries another: it is a neighbour, comes earlier, and ends at the offset of the other.
    pub(crate) fn carries_buffer(&self, below: u32, above: u32) -> bool {
        let (low, high) = (self.spots[below as usize], self.spots[above as usize]);
        low.position < high.position && self.model.round_up(above, low.end) == high.offset
    }
}

fn as_index(value: usize) -> u32 {
    u32::try_from(value).expect("an instance holds fewer than 2^32 buffers")
}
