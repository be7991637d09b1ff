//! The start of local search: the best of the greedy orders.

use std::cmp::Reverse;

use planlab_dsa::{BufferId, Bytes, Halt, Instance, Plan, Run, Scope};

use crate::demands::can_stand;
use crate::placement::Order;
use crate::placement::greedy::{Rule, Tvm, first_fit, place_in_order};
use crate::placement::order::{Peaks, by_offset, sort_by};
use crate::placement::skyline::best_fit;

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
pub(crate) fn best_start(run: &mut Run<'_>) -> Result<Option<Start>, Halt> {
    let instance = run.instance();
    if !can_stand(instance) {
        return Ok(None);
    }
    let orders: &[Order] = if instance.len() > MANY { &QUICK } else { &Order::ALL };
    let mut best = from_incumbent(run)?;
    if instance.buffers().iter().all(|buffer| buffer.pin.is_none()) && instance.keep_apart_pairs().is_empty()
    {
        let plan = best_fit(run)?;
        keep_lower(&mut best, in_order(run, by_offset(&plan.offsets))?);
    }
    for &order in orders {
        let ids = order.sort_buffers(instance);
        keep_lower(&mut best, in_order(run, buffer_numbers(ids.clone()))?);
        // First fit would lose the hand-overs, and the memory that they save.
        if run.scope() == Scope::NoHandOver
            && let Some(plan) = place_in_order(run, &ids, Rule::BestFit)?
        {
            keep_lower(&mut best, in_order(run, by_offset(&plan.offsets))?);
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

/// First fit in the order of the offsets of the run's best plan, if there is one without hand-overs. If no buffer
/// pauses, none ends up higher than in that plan.
pub(crate) fn from_incumbent(run: &mut Run<'_>) -> Result<Option<Start>, Halt> {
    let Some(incumbent) = run.best_plan()?.filter(|best| best.bound_scope() == Scope::NoHandOver) else {
        return Ok(None);
    };
    in_order(run, by_offset(incumbent.offsets())).map(Some)
}

/// The largest buffers first, then those with the most overlapping lifetimes.
pub(crate) fn by_size_and_overlaps(instance: &Instance) -> Vec<u32> {
    buffer_numbers(Tvm::by_size().buffer_order(instance))
}

/// The buffers by the largest load over the live range, then by lifetime, start and size.
pub(crate) fn by_urgency(instance: &Instance) -> Vec<u32> {
    let peaks = Peaks::new(instance);
    buffer_numbers(sort_by(instance, |buffer| {
        let (start, width) = (buffer.live.start(), buffer.live.width());
        (Reverse(peaks.peak_of(buffer).0), Reverse(width), start, Reverse(buffer.size))
    }))
}

fn buffer_numbers(ids: Vec<BufferId>) -> Vec<u32> {
    ids.into_iter().map(BufferId::get).collect()
}

/// First fit in an order, offered.
pub(crate) fn in_order(run: &mut Run<'_>, order: Vec<u32>) -> Result<Start, Halt> {
    let instance = run.instance();
    let offsets = first_fit(instance, &order, &mut |work| run.tick(work))?;
    let start = Start::new(instance, order, offsets);
    if run.improves_incumbent(Bytes::new(start.height)) {
        let offsets: Vec<_> = start.offsets.iter().copied().map(planlab_dsa::Offset::new).collect();
        run.offer(Plan::from_offsets(offsets))?;
    }
    Ok(start)
}
