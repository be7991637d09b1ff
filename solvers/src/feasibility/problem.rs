//! A placement problem as the search sees it: sizes in units, time in sections.

use planlab_dsa::{Buffer, Bytes, Instance, Offset, greatest_common_divisor};

use super::item::{Item, Span, to_u32};
use super::peel::peel_items;
use crate::demands::{has_windows, is_kept_apart};
use crate::trees::Columns;

/// Bits of a list key that hold a rank; the rest holds an offset.
pub(super) const RANK_BITS: u32 = 20;
/// The most units that an offset may reach.
const MOST_UNITS: u64 = 1 << (62 - RANK_BITS);
/// Stack that each item adds, in bytes.
const STACK_PER_ITEM: usize = 4 << 10;

/// A placement problem without hand-overs: some buffers to place, some at fixed offsets.
///
/// Sizes, alignments and fixed offsets are divided by their common divisor, the unit. Time is cut into
/// sections: the steps between which nothing ends.
#[derive(Clone, Debug)]
pub(crate) struct Problem {
    unit: u64,
    pub(super) items: Vec<Item>,
    /// The items' hulls and sizes once more, close together.
    hulls: Vec<Span>,
    pub(super) sizes: Vec<u64>,
    /// Whether every item is active from its first section to its last and has no pair to keep apart.
    is_plain: bool,
    pub(super) has_pins: bool,
    pub(super) sections: usize,
    /// Whether fixed items overlap, so that there is no plan.
    pub(super) contradictory: bool,
    /// Offsets, in bytes, of buffers that are fixed or never active.
    offsets: Vec<u64>,
    /// The highest end among these, in bytes.
    top: u64,
}

impl Problem {
    /// The problem of placing every buffer that is not pinned.
    ///
    /// `None` if the search does not support the instance: windows in use during a pause, several arenas, a kept-apart
    /// pair with a buffer that is never active, more than a million buffers, or numbers too large even in units.
    /// In-place permissions are ignored.
    pub(crate) fn new(instance: &Instance) -> Option<Self> {
        Self::without_buffers(instance, &[])
    }

    /// As [`Problem::new`], without the buffers that are `is_aside`.
    fn without_buffers(instance: &Instance, is_aside: &[bool]) -> Option<Self> {
        if has_windows(instance) || instance.arenas().len() > 1 || instance.len() >= 1 << RANK_BITS {
            return None;
        }
        let mut buffers: Vec<(usize, &Buffer)> = instance.buffers().iter().enumerate().collect();
        buffers.retain(|(at, _)| !is_aside.get(*at).copied().unwrap_or(false));
        let is_apart = is_kept_apart(instance);
        let never_active = |b: &Buffer| b.active_pieces().next().is_none();
        if buffers.iter().any(|&(at, b)| is_apart[at] && b.pin.is_none() && never_active(b)) {
            return None;
        }
        let unit = common_divisor(&buffers);
        let mut offsets = vec![0; instance.len()];
        let mut top = 0;
        for &(at, buffer) in &buffers {
            if buffer.pin.is_some() || never_active(buffer) {
                offsets[at] = buffer.pin.map_or(0, Offset::get);
                top = top.max(offsets[at] + buffer.size.get());
            }
        }
        // Fixed buffers count, too: one that meets a part of a free buffer may lie between the columns of that one.
        let columns =
            Columns::new(buffers.iter().flat_map(|(_, b)| b.active_pieces()).map(|p| p.steps.into()));
        let items = buffers.iter().filter_map(|&(at, b)| Item::new((at, b), unit, &columns, is_apart[at]));
        let items: Vec<Item> = items.collect();
        let reach: u64 = items.iter().map(|item| item.size.next_multiple_of(item.align)).sum();
        let highest = items.iter().filter_map(|item| Some(item.pin? + item.size)).max().unwrap_or(0);
        if reach.saturating_add(highest) >= MOST_UNITS {
            return None;
        }
        let mut problem = Self {
            unit,
            hulls: items.iter().map(|item| item.hull).collect(),
            sizes: items.iter().map(|item| item.size).collect(),
            is_plain: items.iter().all(|item| item.spans.is_empty())
                && instance.keep_apart_pairs().is_empty(),
            has_pins: items.iter().any(|item| item.pin.is_some()),
            items,
            sections: columns.len(),
            contradictory: false,
            offsets,
            top,
        };
        problem.contradictory = problem.pins_overlap(instance);
        problem.keep_apart(instance);
        problem.make_holes();
        problem.find_twins();
        Some(problem)
    }

    /// The same problem without the buffers that have a place whatever the others do, at any capacity of at least
    /// `capacity` bytes. Put these back by first fit, in the returned order.
    pub(crate) fn peel_for(self, instance: &Instance, capacity: u64) -> (Self, Vec<u32>) {
        let mut aside = peel_items(&self.items, self.sections, capacity / self.unit);
        aside.reverse();
        let aside: Vec<u32> = aside.iter().map(|&at| to_u32(self.items[at].buffer)).collect();
        let mut is_aside = vec![false; instance.len()];
        aside.iter().for_each(|&buffer| is_aside[buffer as usize] = true);
        match Self::without_buffers(instance, &is_aside) {
            Some(problem) if !aside.is_empty() => (problem, aside),
            _ => (self, Vec::new()),
        }
    }

    pub(crate) const fn unit(&self) -> u64 {
        self.unit
    }

    /// The highest end, in bytes, of fixed and never active buffers: no plan is lower.
    pub(crate) const fn floor_height(&self) -> Bytes {
        Bytes::new(self.top)
    }

    pub(crate) const fn len(&self) -> usize {
        self.items.len()
    }

    /// Stack that a search needs, in bytes: it goes as deep as there are items.
    pub(crate) const fn stack(&self) -> usize {
        STACK_PER_ITEM * self.items.len()
    }

    /// The number of buffers that are free to move.
    pub(crate) fn movable_items(&self) -> usize {
        self.items.iter().filter(|item| item.pin.is_none()).count()
    }

    /// The offsets of all buffers in bytes; `offsets` has those of the items in units.
    pub(super) fn in_bytes(&self, offsets: &[u64]) -> Vec<u64> {
        let mut all = self.offsets.clone();
        for (item, offset) in self.items.iter().zip(offsets).filter(|(item, _)| item.pin.is_none()) {
            all[item.buffer] = offset * self.unit;
        }
        all
    }

    /// Whether two items may not share an address.
    #[inline]
    pub(super) fn items_conflict(&self, a: usize, b: usize) -> bool {
        if self.is_plain { self.hulls[a].overlaps(self.hulls[b]) } else { self.conflict_in_parts(a, b) }
    }

    fn conflict_in_parts(&self, a: usize, b: usize) -> bool {
        let (first, second) = (&self.items[a], &self.items[b]);
        let meet = |span: &Span| second.spans().iter().any(|other| span.overlaps(*other));
        first.spans().iter().any(meet) || first.apart.iter().any(|&other| other as usize == b)
    }

    fn pins_overlap(&self, instance: &Instance) -> bool {
        let pinned: Vec<&Buffer> = instance.buffers().iter().filter(|b| b.pin.is_some()).collect();
        let span = |buffer: &Buffer| {
            let low = buffer.pin.map_or(0, Offset::get);
            (low, low + buffer.size.get())
        };
        let overlap = |a: &Buffer, b: &Buffer| {
            let ((low, high), (other_low, other_high)) = (span(a), span(b));
            let together = || a.active_pieces().any(|p| b.active_pieces().any(|q| p.steps.overlaps(q.steps)));
            low < other_high && other_low < high && together()
        };
        // An instance accepts overlapping pins only if a hand-over could explain them.
        !instance.in_place().is_empty()
            && pinned.iter().enumerate().any(|(at, a)| pinned[..at].iter().any(|b| overlap(a, b)))
    }

    fn keep_apart(&mut self, instance: &Instance) {
        let mut item_of = vec![None; instance.len()];
        for (at, item) in self.items.iter().enumerate() {
            item_of[item.buffer] = Some(at);
        }
        let mut apart: Vec<Vec<u32>> = vec![Vec::new(); self.items.len()];
        for pair in instance.keep_apart_pairs() {
            let (Some(a), Some(b)) = (item_of[pair.first.index()], item_of[pair.second.index()]) else {
                continue;
            };
            apart[a].push(to_u32(b));
            apart[b].push(to_u32(a));
            let link = self.items[a].link.join(self.items[b].link);
            (self.items[a].link, self.items[b].link) = (link, link);
        }
        for (item, apart) in self.items.iter_mut().zip(apart) {
            item.apart = apart.into();
        }
    }

    fn make_holes(&mut self) {
        let pinned: Vec<(usize, u64)> =
            self.items.iter().enumerate().filter_map(|(at, item)| Some((at, item.pin?))).collect();
        if pinned.is_empty() {
            return;
        }
        for at in 0..self.items.len() {
            if self.items[at].pin.is_some() {
                continue;
            }
            let mut holes: Vec<(u64, u64)> = Vec::new();
            let mut blocked: Vec<(u64, u64)> = pinned
                .iter()
                .filter(|&&(other, _)| self.items_conflict(at, other))
                .map(|&(other, pin)| (pin, pin + self.items[other].size))
                .collect();
            blocked.sort_unstable();
            for (low, high) in blocked {
                match holes.last_mut() {
                    // The space between the two is too narrow.
                    Some(last) if low < last.1 + self.items[at].size => last.1 = last.1.max(high),
                    _ => holes.push((low, high)),
                }
            }
            let size = self.items[at].size;
            let ruled_out = |&(low, high): &(u64, u64)| ((low + 1).saturating_sub(size), high);
            self.items[at].holes = holes.iter().map(ruled_out).collect();
        }
    }

    fn find_twins(&mut self) {
        let mut order: Vec<usize> = (0..self.items.len()).collect();
        order.sort_by_key(|&at| (self.items[at].hull, self.items[at].size, self.items[at].align, at));
        for pair in order.windows(2) {
            if self.items[pair[0]].is_alike(&self.items[pair[1]]) {
                self.items[pair[0]].twin = Some(to_u32(pair[1]));
            }
        }
    }
}

fn common_divisor(buffers: &[(usize, &Buffer)]) -> u64 {
    let divisor_with = |divisor, (_, b): &(usize, &Buffer)| {
        greatest_common_divisor(greatest_common_divisor(divisor, b.size.get()), b.pin.map_or(0, Offset::get))
    };
    let mut divisor = buffers.iter().fold(0, divisor_with).max(1);
    loop {
        let is_misfit = |align: &u64| !divisor.is_multiple_of(*align) && !align.is_multiple_of(divisor);
        match buffers.iter().map(|(_, b)| b.align.get()).find(is_misfit) {
            Some(align) => divisor = greatest_common_divisor(divisor, align),
            None => return divisor,
        }
    }
}
