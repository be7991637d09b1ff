//! The minimal height of a plain instance of about twenty buffers, by branch and bound.
//!
//! Push every buffer of an optimal plan down as far as it goes. Each then lies at 0 or on top of another that is live
//! with it. Take the buffers in the order of (offset, id): each lies exactly on the highest earlier buffer that is live
//! with it. None of the earlier buffers reaches into it, and one of them supports it. So it is enough to try all orders
//! in which this offset never decreases, with ties by id.
//!
//! A branch is cut if at some step the remaining buffers, stacked on the placed ones (and not below the last offset),
//! reach the height of the best known plan.
//!
//! # Complexity
//!
//! n! in the worst case.

use super::first_fit::first_fit;
use crate::{BufferId, Bytes, Instance};

/// The height of the lowest plan; `None` if `nodes` placements are not enough to decide it.
///
/// # Panics
///
/// If the instance does not have [plain](is_plain) buffers alone.
#[must_use]
pub fn lowest_height(instance: &Instance, nodes: u64) -> Option<Bytes> {
    assert!(is_plain(instance), "only plain buffers can be searched exhaustively");
    let mut search = ExhaustiveSearch::new(instance, nodes);
    let done = search.branch_after(0, 0);
    done.then(|| Bytes::new(search.best))
}

/// Whether the instance has plain buffers alone: no alignment, pin, pause, permission or pair to keep apart, and one
/// arena without a capacity.
#[must_use]
pub fn is_plain(instance: &Instance) -> bool {
    let plain = |b: &crate::Buffer| b.align.get() == 1 && b.pin.is_none() && b.pauses.is_empty();
    let one_arena = matches!(instance.arenas(), [arena] if arena.capacity.is_none());
    instance.buffers().iter().all(plain)
        && one_arena
        && instance.in_place().is_empty()
        && instance.keep_apart_pairs().is_empty()
}

struct Row {
    size: u64,
    /// The steps at which the buffer is live, by rank.
    steps: std::ops::Range<usize>,
    placed: bool,
}

struct ExhaustiveSearch {
    rows: Vec<Row>,
    /// For each step, the highest end of a placed buffer.
    tops: Vec<u64>,
    /// For each step, the bytes of buffers not yet placed.
    open: Vec<u64>,
    left: usize,
    best: u64,
    nodes: u64,
}

impl ExhaustiveSearch {
    fn new(instance: &Instance, nodes: u64) -> Self {
        let mut starts: Vec<u32> = instance.buffers().iter().map(|b| b.live.start().get()).collect();
        starts.sort_unstable();
        starts.dedup();
        let rank = |step: u32| starts.partition_point(|&start| start < step);
        let mut open = vec![0; starts.len()];
        let mut rows = Vec::new();
        for buffer in instance.buffers() {
            let (size, steps) =
                (buffer.size.get(), rank(buffer.live.start().get())..rank(buffer.live.end().get()));
            open[steps.clone()].iter_mut().for_each(|bytes| *bytes += size);
            rows.push(Row { size, steps, placed: false });
        }
        let (tops, left) = (vec![0; starts.len()], rows.len());
        Self { rows, tops, open, left, best: upper_bound(instance), nodes }
    }

    /// Tries all continuations of a placement of buffer `last` at `floor`; returns whether the nodes were enough.
    fn branch_after(&mut self, floor: u64, last: usize) -> bool {
        if self.left == 0 {
            self.best = self.tops.iter().copied().max().unwrap_or(0);
            return true;
        }
        for row in 0..self.rows.len() {
            if self.rows[row].placed {
                continue;
            }
            let steps = self.rows[row].steps.clone();
            let offset = self.tops[steps.clone()].iter().copied().max().unwrap_or(0);
            if (offset, row) < (floor, last) {
                continue;
            }
            if self.nodes == 0 {
                return false;
            }
            self.nodes -= 1;
            if !self.follow_row(row, offset) {
                return false;
            }
        }
        true
    }

    fn follow_row(&mut self, row: usize, offset: u64) -> bool {
        let (size, steps) = (self.rows[row].size, self.rows[row].steps.clone());
        let before = self.tops[steps.clone()].to_vec();
        self.tops[steps.clone()].fill(offset + size);
        self.open[steps.clone()].iter_mut().for_each(|bytes| *bytes -= size);
        self.rows[row].placed = true;
        self.left -= 1;
        let done = !self.can_improve(offset) || self.branch_after(offset, row);
        self.left += 1;
        self.rows[row].placed = false;
        self.open[steps.clone()].iter_mut().for_each(|bytes| *bytes += size);
        self.tops[steps].copy_from_slice(&before);
        done
    }

    fn can_improve(&self, floor: u64) -> bool {
        let reach = |(&top, &open): (&u64, &u64)| if open == 0 { top } else { top.max(floor) + open };
        self.tops.iter().zip(&self.open).all(|pair| reach(pair) < self.best)
    }
}

fn upper_bound(instance: &Instance) -> u64 {
    let mut order: Vec<BufferId> = instance.ids().collect();
    order.sort_by_key(|&id| (std::cmp::Reverse(instance.buffer(id).size), id));
    first_fit(instance, &order, &[]).height(instance).expect("totals of an instance fit 64 bits").get()
}
