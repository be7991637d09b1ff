//! The time that planned addresses save against each other allocator, per request and per propagation.

use planlab_dsa::performance::End;
use planlab_results::replay::ReplayRow;
use planlab_results::statistics::{Interval, median, median_interval};

use crate::data::replays::{Case, Measured, Replays};
use crate::format::as_real;
use crate::site::Site;
use crate::site::page::Piece;
use planlab_results::table::{CellValue, Table, columns};

/// The contender with planned addresses.
const PLAN: &str = "plan";

/// The saving of a plan against another contender.
struct Gain {
    request_ns: Measured,
    /// Share of the other contender's time.
    share: Measured,
    /// Processes that played both.
    processes: usize,
}

impl Gain {
    /// Compares the processes that took turns: those of the same repetition and run. `None` without such processes.
    fn from_cases(plan: &Case, other: &Case) -> Option<Self> {
        let (planned, others) = (plan.process_ns(), other.process_ns());
        let pairs: Vec<(f64, f64)> =
            planned.iter().filter_map(|(at, &time)| Some((time, *others.get(at)?))).collect();
        let requests = as_real(plan.summary_row().requests.max(1));
        Some(Self {
            request_ns: measure_values(pairs.iter().map(|(plan, other)| (other - plan) / requests))?,
            share: measure_values(pairs.iter().map(|(plan, other)| (other - plan) / other))?,
            processes: pairs.len(),
        })
    }
}

fn measure_values(values: impl Iterator<Item = f64>) -> Option<Measured> {
    let values: Vec<f64> = values.filter(|value| value.is_finite()).collect();
    let center = median(&values)?;
    Some(Measured { median: center, interval: median_interval(&values, 0.95) })
}

/// The table with its heading; empty unless a plan was played alongside others.
pub(super) fn gain_pieces(site: &Site<'_>) -> Vec<Piece> {
    let mut gains = Vec::new();
    for (_, cases) in Replays::by_place(site.replays.plain_cases()) {
        for plan in cases.iter().filter(|case| is_plan(case.summary_row())) {
            let others = cases.iter().filter(|other| is_other(other, plan));
            gains.extend(others.filter_map(|other| Some((*plan, *other, Gain::from_cases(plan, other)?))));
        }
    }
    let end = |of: &Measured, end: fn(Interval) -> f64| of.interval.map(end);
    let table = Table::from_rows(
        "gains",
        "A propagation at planned addresses against one by each other allocator, on the same machine with the same work: the \
         time that the plan saves for each request, and for the whole propagation in per cent of the other's \
         time; a negative value is a loss. Medians over processes that took turns, compared one by one, with \
         intervals that contain the true median with a probability of 95 % or more. Fewer than six processes \
         give no interval, and no verdict. If the interval contains 0, no gain is seen. Kernels of a net that fits in the device's L2 cache are not bound by the memory behind it.",
        gains,
        columns!(|(plan, other, gain)| {
            let row = plan.summary_row();
            let is_known = row.l2_bytes.is_some() && row.touched_bytes.is_some();
            let cached = is_known.then(|| CellValue::text(if row.fits_cache() { "yes" } else { "no" }));
            let time = &gain.request_ns;
            let share = &gain.share;
            [
                ("workload", "Workload", CellValue::text(plan.workload())),
                ("contender", "Against", CellValue::text(&other.series.label)),
                ("device", "Device", CellValue::text(plan.place.device_in_full())),
                ("work", "Memory is", CellValue::text(row.work.name())),
                ("verdict", "The plan is", CellValue::text(verdict_words(share))),
                ("saved_request_ns", "Saved per request", CellValue::Nanoseconds(time.median)),
                ("saved_request_low_ns", "from", CellValue::nanoseconds(end(time, |of| of.low))),
                ("saved_request_high_ns", "to", CellValue::nanoseconds(end(time, |of| of.high))),
                ("saved_share", "Saved per propagation", CellValue::Share(share.median)),
                ("saved_share_low", "from", CellValue::share(end(share, |of| of.low))),
                ("saved_share_high", "to", CellValue::share(end(share, |of| of.high))),
                ("processes", "Processes", CellValue::count(gain.processes)),
                ("planner", "Plan by", CellValue::or_missing(row.planner.as_deref().map(CellValue::text))),
                ("l2", "In the L2 cache", CellValue::or_missing(cached)),
            ]
        }),
    );
    Piece::section("What planned addresses save", table)
}

fn is_plan(row: &ReplayRow) -> bool {
    row.contender == PLAN && row.performance.status == End::Complete && row.device != "simulated"
}

/// Whether this is another contender on the workload of a plan, neither a plan nor the empty loop.
fn is_other(other: &Case, plan: &Case) -> bool {
    let (of, row) = (other.summary_row(), plan.summary_row());
    let is_rival = of.contender != "empty-loop" && !of.contender.starts_with(PLAN);
    is_rival
        && of.performance.status == End::Complete
        && of.instance == row.instance
        && of.workload == row.workload
}

/// The conclusion from an interval.
fn verdict_words(share: &Measured) -> &'static str {
    match share.interval {
        None => "not judged",
        Some(interval) if interval.low > 0.0 => "faster",
        Some(interval) if interval.high < 0.0 => "slower",
        Some(_) => "no different",
    }
}
