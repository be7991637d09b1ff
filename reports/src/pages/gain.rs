//! The time that planned addresses save against each other allocator, per request and per propagation.

use planlab_dsa::performance::End;
use planlab_results::replay::ReplayRow;
use planlab_results::statistics::{median, median_interval};

use crate::data::replays::{Case, Measured, Place, Replays};
use crate::format::real;
use crate::site::Site;
use crate::site::page::Piece;
use planlab_results::table::{Table, Value};

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
    fn of(plan: &Case, other: &Case) -> Option<Self> {
        let (planned, others) = (plan.process_ns(), other.process_ns());
        let pairs: Vec<(f64, f64)> =
            planned.iter().filter_map(|(at, &time)| Some((time, *others.get(at)?))).collect();
        let requests = real(plan.row().requests.max(1));
        Some(Self {
            request_ns: measured(pairs.iter().map(|(plan, other)| (other - plan) / requests))?,
            share: measured(pairs.iter().map(|(plan, other)| (other - plan) / other))?,
            processes: pairs.len(),
        })
    }
}

fn measured(values: impl Iterator<Item = f64>) -> Option<Measured> {
    let values: Vec<f64> = values.filter(|value| value.is_finite()).collect();
    let center = median(&values)?;
    Some(Measured { median: center, interval: median_interval(&values, 0.95) })
}

/// The table with its heading; empty unless a plan was played alongside others.
pub(super) fn pieces(site: &Site<'_>) -> Vec<Piece> {
    let mut table = Table::named(
        "gains",
        "A propagation at planned addresses against one by each other allocator, on the same machine with the same work: the \
         time that the plan saves for each request, and for the whole propagation in per cent of the other's \
         time; a negative value is a loss. Medians over processes that took turns, compared one by one, with \
         intervals that contain the true median with a probability of 95 % or more. Fewer than six processes \
         give no interval, and no verdict. If the interval contains 0, no gain is seen. Kernels of a net that fits in the device's L2 cache are not bound by the memory behind it.",
        &[
            ("workload", "Workload"),
            ("contender", "Against"),
            ("device", "Device"),
            ("work", "Memory is"),
            ("verdict", "The plan is"),
            ("saved_request_ns", "Saved per request"),
            ("saved_request_low_ns", "from"),
            ("saved_request_high_ns", "to"),
            ("saved_share", "Saved per propagation"),
            ("saved_share_low", "from"),
            ("saved_share_high", "to"),
            ("processes", "Processes"),
            ("planner", "Plan by"),
            ("l2", "In the L2 cache"),
        ],
    );
    for (place, cases) in Replays::by_place(site.replays.plain()) {
        for plan in cases.iter().filter(|case| is_plan(case.row())) {
            let others = cases.iter().filter(|other| is_other(other, plan));
            others.for_each(|other| table.rows.extend(row(&place, plan, other)));
        }
    }
    if table.rows.is_empty() {
        return Vec::new();
    }
    vec![Piece::heading("What planned addresses save".to_owned()), Piece::Table(table)]
}

fn is_plan(row: &ReplayRow) -> bool {
    row.contender == PLAN && row.performance.status == End::Complete && row.device != "simulated"
}

/// Whether this is another contender on the workload of a plan, neither a plan nor the empty loop.
fn is_other(other: &Case, plan: &Case) -> bool {
    let (of, row) = (other.row(), plan.row());
    let is_rival = of.contender != "empty-loop" && !of.contender.starts_with(PLAN);
    is_rival
        && of.performance.status == End::Complete
        && of.instance == row.instance
        && of.workload == row.workload
}

fn row(place: &Place, plan: &Case, other: &Case) -> Option<Vec<Value>> {
    let Gain { request_ns, share, processes } = Gain::of(plan, other)?;
    let row = plan.row();
    let ends = |of: &Measured, show: fn(f64) -> Value| {
        let end = |end: Option<f64>| Value::or_missing(end.map(show));
        [end(of.interval.map(|interval| interval.low)), end(of.interval.map(|interval| interval.high))]
    };
    let [low_ns, high_ns] = ends(&request_ns, Value::Nanoseconds);
    let [low, high] = ends(&share, Value::Share);
    let cached = match (row.l2_bytes, row.touched_bytes) {
        (Some(_), Some(_)) => Value::text(if row.fits_cache() { "yes" } else { "no" }),
        _ => Value::Missing,
    };
    Some(vec![
        Value::text(plan.workload()),
        Value::text(&other.series.label),
        Value::text(place.device_in_full()),
        Value::text(row.work.name()),
        Value::text(verdict(&share)),
        Value::Nanoseconds(request_ns.median),
        low_ns,
        high_ns,
        Value::Share(share.median),
        low,
        high,
        Value::count(processes),
        row.planner.as_deref().map_or(Value::Missing, Value::text),
        cached,
    ])
}

/// The conclusion from an interval.
fn verdict(share: &Measured) -> &'static str {
    match share.interval {
        None => "not judged",
        Some(interval) if interval.low > 0.0 => "faster",
        Some(interval) if interval.high < 0.0 => "slower",
        Some(_) => "no different",
    }
}
