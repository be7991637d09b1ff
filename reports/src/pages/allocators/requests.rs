//! The page on the cost of single requests: by allocator, and for the linear scan of bins compared with the real
//! pool's.

use crate::data::papers::paper::{Quantity, published_figures};
use crate::data::replays::{Case, ReplayPlace, Replays};
use crate::data::rows::group_by;
use crate::figures::Series;
use crate::figures::coord::Axis;
use crate::figures::plots::curves::{self, Curve, HEIGHT, Point};
use crate::figures::plots::strip::{self, Look, Strip};
use crate::format::{as_real, format_count, format_nanoseconds, short_count};
use crate::site::Site;
use crate::site::page::{Menu, Page, Piece};
use planlab_dsa::performance::CallTime;
use planlab_results::table::{CellValue, Table, columns};

/// The pool with a linear scan.
const SCANNING: &str = "cupy2rc1-pool";
/// The same policy with an index.
const INDEXED: &str = "cupy4-pool";

/// A measure of a request and its free: its name, what it means, and its value in nanoseconds. Values of different measures
/// are never compared.
type Measure = (&'static str, &'static str, fn(&Case) -> Option<f64>);

const CPU: Measure = (
    "CPU time of a request and its free",
    "Of whole propagations, with the loop over the requests and with the work on the memory",
    Case::cpu_request_ns,
);
/// If no contender has CPU times.
const WALL: Measure = (
    "Wall time of a propagation over its requests",
    "Of whole propagations, with whatever is waited for",
    Case::wall_request_ns,
);
const CALLS: Measure = (
    "Time of the calls for a request and its free",
    "The calls apart, in batches: medians of a request and of a free, added",
    Case::calls_ns,
);

/// The page; `None` without times.
pub(crate) fn page(site: &Site<'_>) -> Option<Page> {
    let mut pieces = vec![Piece::note(
        "What a request and its free cost, by two measures. Whole propagations: CPU time over the number of requests, \
         including the loop over them and the work on the memory; the time of the empty loop in the same run is \
         beside it. Calls alone: the times of requests and of frees, timed in batches. Each chart has one measure and one \
         machine.",
    )];
    for (place, cases) in Replays::by_place(site.replays.plain_cases()) {
        let has_cpu = cases.iter().any(|case| case.cpu_request_ns().is_some());
        let whole = if has_cpu { CPU } else { WALL };
        pieces.extend([whole, CALLS].into_iter().filter_map(|of| request_figure(of, &place, &cases)));
    }
    let bins = bin_table(site);
    if !bins.rows.is_empty() {
        pieces.push(Piece::heading("The linear scan of bins"));
        pieces.extend(speed_up(site).map(Piece::note));
        pieces.extend(scan_figures(site));
        pieces.push(Piece::Table(bins));
    }
    let whole = propagation_table(site);
    if whole.rows.is_empty() {
        return None;
    }
    pieces.extend(Piece::section("All allocators: whole propagations", whole));
    pieces.extend(Piece::section("All allocators: calls alone", call_table(site)));
    let title = "Cost of a request";
    Some(
        Page::new("requests.html", title).in_menu(Menu::Allocators, "What does a request cost?").with(pieces),
    )
}

fn request_figure((name, meaning, time): Measure, place: &ReplayPlace, cases: &[&Case]) -> Option<Piece> {
    let timed: Vec<(&Series, &str, f64)> =
        cases.iter().filter_map(|case| Some((&case.series, case.workload(), time(case)?))).collect();
    let title = format!("{name}: {}", place.name());
    let x = Axis::times_of(name, timed.iter().map(|timed| timed.2));
    let strips = group_by(timed, |timed| timed.0.number).into_values().map(|own| Strip {
        series: own[0].0.clone(),
        remark: own.len().to_string(),
        values: own.into_iter().map(|(_, workload, time)| (workload.to_owned(), time)).collect(),
    });
    let strips: Vec<Strip> = strips.collect();
    let look = Look { title: &title, x, remark: "workloads", shown: format_nanoseconds };
    let caption = format!(
        "A dot for each workload; the bar marks the median. {meaning}. What is done with the memory: {}.",
        place.meaning_of_times()
    );
    strip::plot_strips(look, &strips).map(|drawing| Piece::figure(drawing, caption))
}

/// The time of whole propagations, divided by their requests.
fn propagation_table(site: &Site<'_>) -> Table {
    Table::from_rows(
        "requests",
        "Time of a whole propagation over the number of its requests: a request and its free, with the loop over them and \
         the work on the memory. CPU: time on a core; it decides on the host. Above the loop: the same less the time of \
         the empty loop, which touches no memory, on the same workload in the same run; a value below 0 is noise. Wall: of \
         a whole propagation. Search steps: entries of free lists that were looked at in one propagation.",
        site.replays
            .plain_cases()
            .filter_map(|case| Some((case, case.summary_row(), case.wall_request_ns()?))),
        columns!(|(case, row, wall)| [
            ("workload", "Workload", CellValue::text(case.workload())),
            ("contender", "Contender", CellValue::text(&case.series.label)),
            ("device", "Device", CellValue::text(case.place.device_in_full())),
            ("work", "Memory is", CellValue::text(row.work.name())),
            ("requests", "Requests", CellValue::Count(row.requests)),
            ("cpu_request_ns", "CPU", CellValue::nanoseconds(case.cpu_request_ns())),
            ("above_loop_ns", "above the loop", CellValue::nanoseconds(case.cpu_above_loop_ns(site.replays))),
            ("wall_request_ns", "Wall", CellValue::Nanoseconds(wall)),
            ("search_steps", "Search steps", CellValue::Count(row.performance.search_steps)),
        ]),
    )
}

/// The calls that were timed separately.
fn call_table(site: &Site<'_>) -> Table {
    let is_timed = |case: &&Case| {
        let performance = &case.summary_row().performance;
        performance.alloc.is_some() || performance.free.is_some()
    };
    let part = |call: Option<CallTime>, part: fn(CallTime) -> u64| {
        CellValue::nanoseconds(call.map(|call| as_real(part(call)) / 1e3))
    };
    Table::from_rows(
        "requests-calls",
        "Calls that were timed apart from the work on the memory, in batches: the median, and the value that 99 of 100 \
         batches stay below. Both: the medians of a request and of a free, added. Contenders whose calls are shorter than \
         a tick of the clock are left out.",
        site.replays.plain_cases().filter(is_timed),
        columns!(|case| {
            let row = case.summary_row();
            [
                ("workload", "Workload", CellValue::text(case.workload())),
                ("contender", "Contender", CellValue::text(&case.series.label)),
                ("device", "Device", CellValue::text(case.place.device_in_full())),
                ("work", "Memory is", CellValue::text(row.work.name())),
                ("requests", "Requests", CellValue::Count(row.requests)),
                ("alloc_ns", "Request", part(row.performance.alloc, |call| call.median_ps)),
                ("alloc_p99_ns", "p99", part(row.performance.alloc, |call| call.p99_ps)),
                ("free_ns", "Free", part(row.performance.free, |call| call.median_ps)),
                ("free_p99_ns", "p99", part(row.performance.free, |call| call.p99_ps)),
                ("both_ns", "Both", CellValue::nanoseconds(case.calls_ns())),
            ]
        }),
    )
}

/// A workload for which the real pool was measured.
struct Scan<'a> {
    /// Ours, with the scan.
    case: &'a Case,
    /// Entries that the scan inspects in one propagation.
    bins: u64,
    /// The measured time of the real pool in nanoseconds.
    real_ns: u64,
    /// The time of a plan's table in nanoseconds, measured alongside.
    plan_ns: Option<u64>,
    ours_ns: Option<f64>,
    indexed_ns: Option<f64>,
}

/// The workloads, by length of the scan.
fn scan_lengths<'a>(site: &Site<'a>) -> Vec<Scan<'a>> {
    let time = |case: Option<&Case>| case.and_then(Case::propagation_ns).map(|time| time.median);
    let scan = |case: &'a Case| {
        let known = site.options.totals.get(case.workload())?;
        let indexed = site.replays.served_case(case.workload(), INDEXED);
        Some(Scan {
            case,
            bins: case.summary_row().performance.search_steps,
            real_ns: known.pool_ns?,
            plan_ns: known.plan_ns,
            ours_ns: time(Some(case)),
            indexed_ns: time(indexed.filter(|indexed| indexed.place == case.place)),
        })
    };
    let scanning = site.replays.simulated_cases().filter(|case| case.summary_row().contender == SCANNING);
    let mut scans: Vec<Scan<'a>> = scanning.filter_map(scan).collect();
    scans.sort_by_key(|scan| scan.bins);
    scans
}

fn bin_table(site: &Site<'_>) -> Table {
    Table::from_rows(
        "bins",
        "The pool of CuPy 2.0.0rc1, the paper's baseline, looks through its bins one by one. Bins: those that our pool \
         looks at in a steady propagation; the real pool looks at the same. For a request: rounded to whole bins. Real \
         pool and plan's table: CuPy's own code and a look-up of planned addresses, measured on a CPU in Python and Cython, \
         not in this report. Ours: the same policy in Rust on simulated memory, by the scan and by the index that CuPy \
         has since version 4.",
        scan_lengths(site),
        columns!(|scan| {
            let for_bin = |time: f64| time / as_real(scan.bins.max(1));
            let requests = scan.case.summary_row().requests;
            let for_request = scan.bins.saturating_add(requests / 2) / requests.max(1);
            [
                ("workload", "Workload", CellValue::text(scan.case.workload())),
                ("requests", "Requests", CellValue::Count(requests)),
                ("bins", "Bins", CellValue::Count(scan.bins)),
                ("bins_per_request", "for a request", CellValue::Count(for_request)),
                ("real_pool_ns", "Real pool", CellValue::Nanoseconds(as_real(scan.real_ns))),
                ("real_bin_ns", "for a bin", CellValue::Nanoseconds(for_bin(as_real(scan.real_ns)))),
                ("real_plan_ns", "Plan's table", CellValue::nanoseconds(scan.plan_ns.map(as_real))),
                ("ours_ns", "Ours, scan", CellValue::nanoseconds(scan.ours_ns)),
                ("ours_bin_ns", "for a bin", CellValue::nanoseconds(scan.ours_ns.map(for_bin))),
                ("ours_indexed_ns", "Ours, index", CellValue::nanoseconds(scan.indexed_ns)),
                ("device", "Ours on", CellValue::text(scan.case.place.device_in_full())),
            ]
        }),
    )
}

/// The paper's speed-up, and the time of the pool itself.
fn speed_up(site: &Site<'_>) -> Option<String> {
    let figure = published_figures().iter().find(|figure| figure.of == Quantity::SpeedUp)?;
    let scans = scan_lengths(site);
    let scan = scans.iter().find(|scan| scan.case.workload() == figure.workload)?;
    let pool = format_nanoseconds(as_real(scan.real_ns));
    let plan = scan.plan_ns.map(|time| format!(", and a plan's table {}", format_nanoseconds(as_real(time))));
    Some(format!(
        "The profile-guided paper (arXiv:1804.10001) gives {} for the speed of {} on a GPU by the plan over that with \
         the pool. There is no time of a GPU here: of a propagation, CuPy's real pool took {pool} on the CPU{}. \
         That is what the scan takes, not what a GPU waits for.",
        figure.published,
        figure.workload,
        plan.unwrap_or_default(),
    ))
}

/// One figure for each machine on which ours was timed.
fn scan_figures(site: &Site<'_>) -> Vec<Piece> {
    let places = group_by(scan_lengths(site), |scan| &scan.case.place);
    let is_alone = places.len() == 1;
    let title = |place: &ReplayPlace| {
        let title = "Time of a propagation against the bins scanned".to_owned();
        if is_alone { title } else { format!("{title}, {}", place.name()) }
    };
    places.iter().filter_map(|(place, scans)| scan_figure(&title(place), scans)).collect()
}

fn scan_figure(title: &str, scans: &[Scan<'_>]) -> Option<Piece> {
    let curve = |label: &str, number: usize, time: &dyn Fn(&Scan<'_>) -> Option<f64>| {
        let series = Series { label: label.to_owned(), number };
        let points = scans.iter().filter_map(|scan| scan_point(&series, scan, time(scan)?)).collect();
        Curve::dots(series, points)
    };
    let curves = vec![
        curve("CuPy's real pool (measured apart)", 1, &|scan| Some(as_real(scan.real_ns))),
        curve("ours, scan of bins", 0, &|scan| scan.ours_ns),
        curve("ours, index", 2, &|scan| scan.indexed_ns),
        curve("plan's table (measured apart)", 3, &|scan| scan.plan_ns.map(as_real)),
    ];
    let ((x_low, x_high), (y_low, y_high)) = curves::ranges(&curves)?;
    let axes = (
        Axis::log("bins that the scan looks at in a propagation", x_low, x_high, short_count),
        Axis::times("time of a propagation", y_low, y_high),
    );
    let drawing = curves::plot(title, HEIGHT, axes, curves)?;
    let caption = "A dot for each workload on which the real pool was measured. The time of the scan grows with the \
                   bins; an index and a plan do without them.";
    Some(Piece::figure(drawing, caption))
}

fn scan_point(series: &Series, scan: &Scan<'_>, time: f64) -> Option<Point> {
    let tip =
        format!("{}: {} bins, {}", scan.case.workload(), format_count(scan.bins), format_nanoseconds(time));
    (scan.bins > 0 && time > 0.0).then(|| Point::new(series, as_real(scan.bins), time, &tip))
}
