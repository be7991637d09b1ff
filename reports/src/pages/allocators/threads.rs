//! The page on threads: latency of a request over the number of threads and over size, with the time that threads wait
//! for locks.

use crate::data::replays::{Case, Measured, ReplayPlace, Replays};
use crate::data::rows::group_by;
use crate::figures::Series;
use crate::figures::coord::Axis;
use crate::figures::plots::curves::{self, Curve, HEIGHT, Point};
use crate::format::{as_real, format_bytes, format_counted, format_nanoseconds};
use crate::site::Site;
use crate::site::page::{Menu, Page, Piece};
use planlab_dsa::performance::Work;
use planlab_results::table::{CellValue, Table, columns};

/// The page; `None` if nothing ran in several threads.
pub(crate) fn page(site: &Site<'_>) -> Option<Page> {
    let is_compared = |case: &&Case| {
        let row = case.summary_row();
        row.sequence.is_empty() && row.capacity.is_none() && row.device != "simulated"
    };
    let cases: Vec<&Case> = site.replays.cases.iter().filter(is_compared).collect();
    if cases.iter().all(|case| case.summary_row().threads == 1) {
        return None;
    }
    let mut pieces = vec![Piece::note(
        "Every thread has the whole sequence of requests; pools and plans have an arena for each thread, system \
         allocators are shared. The latency is a thread's CPU time for a request and its free, measured over \
         whole propagations, including the loop over the requests. The table has the wall time too; with more \
         threads than cores it is mostly the wait for a core. Each machine has its own figures.",
    )];
    for (place, cases) in Replays::by_place(cases.iter().copied()) {
        pieces.extend(by_threads(&place, &cases));
        pieces.extend(by_size(&place, &cases));
    }
    pieces.extend([Piece::heading("All numbers of threads"), Piece::Table(thread_table(site, &cases))]);
    let title = "Latency of a request by threads and size";
    Some(Page::new("threads.html", title).in_menu(Menu::Allocators, "What do threads change?").with(pieces))
}

/// A figure over the number of threads for each workload that ran in several.
fn by_threads(place: &ReplayPlace, cases: &[&Case]) -> Vec<Piece> {
    let workloads = cases.chunk_by(|a, b| a.workload() == b.workload());
    let several = workloads.filter(|own| own.iter().any(|case| case.summary_row().threads > 1));
    several.filter_map(|own| threads_figure(place, own)).collect()
}

fn threads_figure(place: &ReplayPlace, cases: &[&Case]) -> Option<Piece> {
    let curves = curves_of(cases, Curve::joined, &|case| {
        let threads = case.summary_row().threads;
        Some((f64::from(threads), format!("{threads} threads")))
    });
    let ((_, most), _) = curves::ranges(&curves)?;
    let axes = (Axis::counts("threads", most), latency_axis(&curves));
    let workload = cases.first()?.workload();
    let title = format!("Latency by threads, {}: {workload}", place.name());
    let drawing = curves::plot(&title, HEIGHT, axes, curves)?;
    let caption = format!(
        "Time of a request and its free in one thread while the given number of threads do the same. Work on the \
         memory: {}.",
        place.meaning_of_times()
    );
    Some(Piece::figure(drawing, caption))
}

/// Figures over the workloads' sizes, for the lowest and the highest number of threads.
fn by_size(place: &ReplayPlace, cases: &[&Case]) -> Vec<Piece> {
    let mut threads: Vec<u32> = cases.iter().map(|case| case.summary_row().threads).collect();
    threads.sort_unstable();
    threads.dedup();
    let ends = [threads.first(), threads.last().filter(|_| threads.len() > 1)];
    let of = |threads: &u32| {
        let own: Vec<&Case> =
            cases.iter().copied().filter(|case| case.summary_row().threads == *threads).collect();
        size_figure(place, *threads, &own)
    };
    ends.into_iter().flatten().filter_map(of).collect()
}

fn size_figure(place: &ReplayPlace, threads: u32, cases: &[&Case]) -> Option<Piece> {
    let curves = curves_of(cases, Curve::dots, &|case| {
        let peak = case.summary_row().requested_peak;
        (peak > 0).then(|| (as_real(peak), format!("{}, {}", case.workload(), format_bytes(peak))))
    });
    let ((low, high), _) = curves::ranges(&curves)?;
    if low >= high {
        return None;
    }
    let axes = (Axis::log_bytes("bytes requested at once", low, high), latency_axis(&curves));
    let title =
        format!("Latency by size, {}, {}", place.name(), format_counted(u64::from(threads), "thread"));
    let drawing = curves::plot(&title, HEIGHT, axes, curves)?;
    let caption = "A dot for each workload, by the most bytes that it requests at once.";
    Some(Piece::figure(drawing, caption))
}

/// One curve per contender, by ascending x.
fn curves_of(
    cases: &[&Case],
    make: fn(Series, Vec<Point>) -> Curve,
    x: &dyn Fn(&Case) -> Option<(f64, String)>,
) -> Vec<Curve> {
    let point = |case: &&Case| {
        let ((x, name), y) = (x(case)?, case.cpu_request_ns()?);
        Some(Point::new(&case.series, x, y, &format!("{name}: {}", format_nanoseconds(y))))
    };
    let curve = |own: Vec<&Case>| {
        let mut points: Vec<Point> = own.iter().filter_map(point).collect();
        points.sort_by(|a, b| a.x.total_cmp(&b.x));
        make(own[0].series.clone(), points)
    };
    group_by(cases.iter().copied(), |case| case.series.number).into_values().map(curve).collect()
}

/// All contenders of a figure share one measure, CPU time: only some have times of calls, and wall time depends on how
/// threads share a core.
fn latency_axis(curves: &[Curve]) -> Axis {
    let times = curves.iter().flat_map(|curve| &curve.points).filter_map(|point| point.y);
    Axis::times_of("CPU time of a request and its free", times)
}

fn thread_table(site: &Site<'_>, cases: &[&Case]) -> Table {
    Table::from_rows(
        "threads",
        "Latency: CPU time of a request and its free in one thread; above the loop: less the time of the empty \
         loop in the same run with as many threads. p99 of requests: of calls that were timed separately. \
         Propagation: until the last thread finished it. CPU: of one thread for its propagation. Lock wait: time \
         that a thread waited for locks for one request, if the contender reports it. Requested and reserved: \
         all threads together.",
        cases,
        columns!(|case| {
            let row = case.summary_row();
            let middle = |time: Option<Measured>| CellValue::nanoseconds(time.map(|time| time.median));
            let work = if row.work == Work::None { "not touched" } else { row.work.name() };
            let p99 = row.performance.alloc.map(|alloc| as_real(alloc.p99_ps) / 1e3);
            let threads = u64::from(row.threads);
            let above_loop = case.cpu_above_loop_ns(site.replays);
            [
                ("workload", "Workload", CellValue::text(case.workload())),
                ("contender", "Contender", CellValue::text(&case.series.label)),
                ("device", "Device", CellValue::text(case.place.device_in_full())),
                ("work", "Memory is", CellValue::text(work)),
                ("threads", "Threads", CellValue::Count(threads)),
                ("latency_ns", "Latency", CellValue::nanoseconds(case.cpu_request_ns())),
                ("above_loop_ns", "above the loop", CellValue::nanoseconds(above_loop)),
                ("alloc_p99_ns", "p99 of requests", CellValue::nanoseconds(p99)),
                ("time_ns", "Propagation", middle(case.propagation_ns())),
                ("cpu_ns", "CPU", middle(case.cpu_ns())),
                ("lock_wait_ns", "Lock wait", CellValue::nanoseconds(case.lock_wait_ns())),
                ("requested_bytes", "Requested at once", CellValue::Bytes(row.requested_peak * threads)),
                ("reserved_bytes", "Reserved", CellValue::Bytes(row.performance.reserved_peak)),
            ]
        }),
    )
}
