//! Time of a propagation by net, batch and contender.

use planlab_results::NetParts;
use planlab_results::statistics::Interval;

use super::gain;
use crate::data::nets::parts::{NetPart, parts, shown_batch};
use crate::data::replays::{Case, Measured, ReplayPlace, Replays};
use crate::figures::chart::Entry;
use crate::figures::coord::Axis;
use crate::figures::plots::bars::{Bars, Dot, Slot, narrow_bars};
use crate::figures::{Drawing, Series};
use crate::format::format_nanoseconds;
use crate::site::Site;
use crate::site::page::{Menu, Page, Piece};
use planlab_results::table::{CellValue, Table, columns};

/// The page; `None` without times.
pub(crate) fn page(site: &Site<'_>) -> Option<Page> {
    let mut pieces = vec![Piece::note(
        "Wall time of one propagation: all its requests and frees, and the work on the memory between them. Each \
         device and machine has its own figures. Simulated memory costs nothing, so its times are those of the \
         allocators' bookkeeping alone. The time to make a plan is not included, except for profile-guided, \
         which plans between propagations.",
    )];
    for (place, cases) in Replays::by_place(site.replays.plain_cases()) {
        pieces.extend(place_figures(&place, &cases));
    }
    let table = time_table(site);
    if table.rows.is_empty() {
        return None;
    }
    pieces.extend(gain::gain_pieces(site));
    pieces.extend(Piece::section("All times", table));
    let title = "Time of a propagation by net, batch and allocator";
    let page = Page::new("time.html", title).in_menu(Menu::Allocators, "How long does a propagation take?");
    Some(page.with(pieces))
}

/// A dot of a figure.
struct Timed<'c> {
    case: &'c Case,
    time: Measured,
}

impl Timed<'_> {
    /// The minimum and maximum that is drawn for it.
    fn drawn_range(&self) -> (f64, f64) {
        let ends = self.time.interval.map(|interval| (interval.low, interval.high));
        let (low, high) = ends.unwrap_or((self.time.median, self.time.median));
        (low.max(1.0), high.max(1.0))
    }
}

/// All contenders of a place, in as many figures as its nets need.
fn place_figures(place: &ReplayPlace, cases: &[&Case]) -> Vec<Piece> {
    let timed: Vec<Timed<'_>> =
        cases.iter().filter_map(|&case| Some(Timed { case, time: case.propagation_ns()? })).collect();
    // Cases are sorted by workload.
    let workloads: Vec<&[Timed<'_>]> =
        timed.chunk_by(|a, b| a.case.workload() == b.case.workload()).collect();
    let most = workloads.iter().map(|timed| timed.len()).max().unwrap_or(0);
    let mut pieces = Vec::new();
    let keys = workloads.iter().map(|timed| &timed[0].case.summary_row().workload);
    for NetPart { title, nets, .. } in parts(keys, narrow_bars(most)) {
        let slots: Vec<(NetParts<'_>, &[Timed<'_>])> =
            nets.into_iter().map(|(key, at)| (key, workloads[at])).collect();
        let title = format!("Time of a propagation, {}: {title}", place.name());
        let caption = format!(
            "A dot for each contender: its median wall time. The line is its 95 % interval: over processes if \
             there are three, otherwise over samples; with fewer than 20 samples there is no interval. Work on \
             the memory: {}. The \
             axis is logarithmic.",
            place.meaning_of_times()
        );
        pieces.extend(plot_times(&title, &slots).map(|drawing| Piece::figure(drawing, caption)));
    }
    pieces
}

fn plot_times(title: &str, slots: &[(NetParts<'_>, &[Timed<'_>])]) -> Option<Drawing> {
    let timed = || slots.iter().flat_map(|(_, timed)| timed.iter());
    let least = timed().map(|timed| timed.drawn_range().0).min_by(f64::total_cmp)?;
    let most = timed().map(|timed| timed.drawn_range().1).max_by(f64::total_cmp)?;
    let y = Axis::times("time of a propagation", least / 1.5, most);
    let series = Series::distinct(timed().map(|timed| &timed.case.series));
    let entries = series.into_iter().map(Entry::from_series).collect();
    let slots = slots.iter().map(|(key, timed)| net_slot(key, timed)).collect();
    let mut figure = Bars::new(title, y, slots, entries);
    // One value needs no range.
    if least < most {
        figure.note = format!("{} to {}", format_nanoseconds(least), format_nanoseconds(most));
    }
    Some(figure.plot_slots())
}

fn net_slot(key: &NetParts<'_>, timed: &[Timed<'_>]) -> Slot {
    let name = shown_batch(key);
    let dot = |timed: &Timed<'_>| Dot {
        series: timed.case.series.clone(),
        value: timed.time.median.max(1.0),
        interval: timed.time.interval.map(|_| timed.drawn_range()),
        tip: format!("{} {name}: {}: {}", key.net, timed.case.series.label, time_text(&timed.time)),
    };
    let dots = timed.iter().map(dot).collect();
    Slot { group: key.net.to_owned(), name, dots, ..Slot::default() }
}

fn time_text(time: &Measured) -> String {
    let interval = time.interval.map(|interval| {
        format!(" ({} to {})", format_nanoseconds(interval.low), format_nanoseconds(interval.high))
    });
    format_nanoseconds(time.median) + &interval.unwrap_or_default()
}

fn time_table(site: &Site<'_>) -> Table {
    let middle = |time: Option<Measured>| CellValue::nanoseconds(time.map(|time| time.median));
    Table::from_rows(
        "times",
        "Wall time of a propagation, by one thread: the median of all samples with its 95 % interval: over \
         processes if there are three, otherwise over samples, and none from fewer than 20 samples. The first \
         propagation from an empty pool does not count, so workloads that were played once, such as whole \
         processes, have no time. Enqueued: the host's time until all work was enqueued on the device; busy: \
         from the start to the end of the device's work.",
        site.replays.plain_cases().filter_map(|case| Some((case, case.propagation_ns()?))),
        columns!(|(case, time)| {
            let row = case.summary_row();
            let end = |end: fn(Interval) -> f64| CellValue::nanoseconds(time.interval.map(end));
            [
                ("workload", "Workload", CellValue::text(case.workload())),
                ("contender", "Contender", CellValue::text(&case.series.label)),
                ("device", "Device", CellValue::text(case.place.device_in_full())),
                ("work", "Memory is", CellValue::text(row.work.name())),
                ("processes", "Processes", CellValue::count(case.rows.len())),
                ("samples", "Samples", CellValue::count(case.sample_count())),
                ("warm_up", "Warm-up", CellValue::Count(u64::from(row.performance.warm_up))),
                ("time_ns", "Time", CellValue::Nanoseconds(time.median)),
                ("time_low_ns", "from", end(|interval| interval.low)),
                ("time_high_ns", "to", end(|interval| interval.high)),
                ("enqueue_ns", "Enqueued", middle(case.enqueue_ns())),
                ("device_ns", "Device busy", middle(case.device_ns())),
                ("cpu_ns", "CPU", middle(case.cpu_ns())),
            ]
        }),
    )
}
