//! The start of local search: the best of the greedy orders.

use std::cmp::Reverse;

use planlab_dsa::{BufferId, Bytes, Halt, Instance, Plan, Run, Scope};

use crate::placement::Order;
use crate::placement::demands::can_stand;
use crate::placement::greedy::{Rule, place_in_order};
use crate::placement::order::{Overlaps, Peaks, by};
use crate::placement::skyline::best_fit;
use crate::tick::Tick;
use crate::trees::{Blocked, Columns, Occupancy, Span};

/// Above this number of buffers only the [`QUICK`] orders are tried: first fit then takes seconds.
const MANY: usize = 20_000;
/// The orders whose plans are lowest most often.
const QUICK: [Order; 3] = [Order::Area, Order::Size, Order::Width];

/// An order and the offsets that first fit gives it, in bytes.
#[derive(Clone, Debug)]
pub(crate) struct Start {
    pub(crate) order: Vec<u32>,
    pub(crate) offsets: Vec<u64>,
    pub(crate) height: u64,
}

impl Start {
    fn new(instance: &Instance, order: Vec<u32>, offsets: Vec<u64>) -> Self {
        let ends = instance.buffers().iter().zip(&offsets).map(|(buffer, at)| at + buffer.size.get());
        Self { height: ends.max().unwrap_or(0), order, offsets }
    }
}

/// The best of several starts, all offered: first fit in the order of the offsets of the skyline's plan (tried first),
/// in the greedy orders, and in the orders of the offsets that best fit gives in them. If the run has a better plan,
/// the order of its offsets counts, too. `None` if no plan without hand-overs exists.
pub(crate) fn best(run: &mut Run<'_>) -> Result<Option<Start>, Halt> {
    let instance = run.instance();
    if !can_stand(instance) {
        return Ok(None);
    }
    let orders: &[Order] = if instance.len() > MANY { &QUICK } else { &Order::ALL };
    let mut best = from_incumbent(run)?;
    if instance.buffers().iter().all(|buffer| buffer.pin.is_none()) && instance.apart().is_empty() {
        let plan = best_fit(run)?;
        keep_lower(&mut best, in_order(run, by_offset(&plan))?);
    }
    for &order in orders {
        let ids = order.of(instance);
        keep_lower(&mut best, in_order(run, numbers(ids.clone()))?);
        // First fit would lose the hand-overs, and the memory that they save.
        if run.scope() == Scope::NoHandOver
            && let Some(plan) = place_in_order(run, &ids, Rule::BestFit)?
        {
            keep_lower(&mut best, in_order(run, by_offset(&plan))?);
            run.offer(plan)?;
        }
    }
    Ok(best)
}

fn keep_lower(best: &mut Option<Start>, new: Start) {
    if best.as_ref().is_none_or(|best| new.height < best.height) {
        *best = Some(new);
    }
}

fn by_offset(plan: &Plan) -> Vec<u32> {
    let mut order: Vec<u32> = (0..).take(plan.offsets.len()).collect();
    order.sort_by_key(|&id| plan.offsets[id as usize]);
    order
}

/// First fit in the order of the offsets of the run's best plan, if there is one without hand-overs. If no buffer
/// pauses, none ends up higher than in that plan.
pub(crate) fn from_incumbent(run: &mut Run<'_>) -> Result<Option<Start>, Halt> {
    let Some(incumbent) = run.best()?.filter(|best| best.scope() == Scope::NoHandOver) else {
        return Ok(None);
    };
    in_order(run, by_offset(incumbent.as_plan())).map(Some)
}

/// First fit in the order of the offsets of a plan.
pub(crate) fn from_plan(run: &mut Run<'_>, plan: &Plan) -> Result<Start, Halt> {
    in_order(run, by_offset(plan))
}

/// The buffers by size, then by the number of overlapping live ranges, most first.
pub(crate) fn by_size_and_overlaps(instance: &Instance) -> Vec<u32> {
    let overlaps = Overlaps::new(instance);
    numbers(by(instance, |buffer| (Reverse(buffer.size), Reverse(overlaps.of(buffer)))))
}

/// The buffers by the largest load over the live range, then by lifetime, start and size.
pub(crate) fn by_urgency(instance: &Instance) -> Vec<u32> {
    let peaks = Peaks::new(instance);
    numbers(by(instance, |buffer| {
        let (start, width) = (buffer.live.start(), buffer.live.width());
        (Reverse(peaks.of(buffer).0), Reverse(width), start, Reverse(buffer.size))
    }))
}

fn numbers(ids: Vec<BufferId>) -> Vec<u32> {
    ids.into_iter().map(BufferId::get).collect()
}

/// First fit in an order, offered.
pub(crate) fn in_order(run: &mut Run<'_>, order: Vec<u32>) -> Result<Start, Halt> {
    let instance = run.instance();
    let offsets = first_fit(instance, &order, &mut |work| run.tick(work))?;
    let start = Start::new(instance, order, offsets);
    if run.improves(Bytes::new(start.height)) {
        let offsets: Vec<_> = start.offsets.iter().copied().map(planlab_dsa::Offset::new).collect();
        run.offer(Plan::from_offsets(offsets))?;
    }
    Ok(start)
}

/// The offsets, in bytes, that first fit gives in an order; pinned buffers come first. Uses no hand-overs.
pub(crate) fn first_fit(instance: &Instance, order: &[u32], tick: &mut Tick<'_>) -> Result<Vec<u64>, Halt> {
    let mut placing = Placing::new(instance);
    for &id in order.iter().filter(|&&id| instance.buffers()[id as usize].pin.is_none()) {
        tick(placing.place(id as usize))?;
    }
    Ok(placing.offsets)
}

struct Placing<'i> {
    instance: &'i Instance,
    columns: Columns,
    occupancy: Occupancy,
    apart: Vec<(usize, usize)>,
    is_placed: Vec<bool>,
    offsets: Vec<u64>,
}

impl<'i> Placing<'i> {
    fn new(instance: &'i Instance) -> Self {
        let pieces = instance.buffers().iter().flat_map(planlab_dsa::Buffer::pieces);
        let columns = Columns::new(pieces.map(|piece| piece.steps.into()));
        let pairs = instance.apart().iter().map(|pair| (pair.first.index(), pair.second.index()));
        let mut apart: Vec<_> = pairs.flat_map(|(a, b)| [(a, b), (b, a)]).collect();
        apart.sort_unstable();
        let count = instance.len();
        let occupancy = Occupancy::new(columns.len());
        let (is_placed, offsets) = (vec![false; count], vec![0; count]);
        let mut this = Self { instance, columns, occupancy, apart, is_placed, offsets };
        for (id, buffer) in instance.buffers().iter().enumerate() {
            if let Some(pin) = buffer.pin {
                this.put(id, pin.get());
            }
        }
        this
    }

    /// Places one buffer; returns the work that it took.
    fn place(&mut self, id: usize) -> u64 {
        let buffer = &self.instance.buffers()[id];
        let mut blocked = Blocked::default();
        for piece in buffer.pieces() {
            let window = Span { start: piece.window.start.get(), end: piece.window.end.get() };
            self.occupancy.block(self.columns.of(piece.steps), window, &mut blocked);
        }
        blocked.add_spans(self.kept_apart(id), Span { start: 0, end: buffer.size.get() });
        let offset = blocked.lowest(0, buffer.align);
        let work = blocked.looks() + 1;
        self.put(id, offset);
        work
    }

    fn kept_apart(&self, id: usize) -> Vec<Span> {
        let first = self.apart.partition_point(|pair| pair.0 < id);
        let pairs = self.apart[first..].iter().take_while(|pair| pair.0 == id);
        let placed = pairs.map(|pair| pair.1).filter(|&other| self.is_placed[other]);
        let span = |other: usize| {
            let start = self.offsets[other];
            Span { start, end: start + self.instance.buffers()[other].size.get() }
        };
        placed.map(span).collect()
    }

    fn put(&mut self, id: usize, offset: u64) {
        self.offsets[id] = offset;
        self.is_placed[id] = true;
        for piece in self.instance.buffers()[id].pieces() {
            let span =
                Span { start: offset + piece.window.start.get(), end: offset + piece.window.end.get() };
            self.occupancy.insert(self.columns.of(piece.steps), span);
        }
    }
}
