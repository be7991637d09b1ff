//! Time of a propagation by net, batch and contender.

use super::{Piece, Section, Sources};
use crate::drawing::axis::{Axis, Entry, Frame, Key, Scale, legend};
use crate::drawing::{Anchor, Drawing};
use crate::format::nanoseconds;
use crate::model::NetKey;
use crate::nets::{NetPart, parts};
use crate::plots::bars::{Part, Slot, draw};
use crate::plots::memory::WIDTH;
use crate::replays::{Case, Measured, Place, Replays};
use crate::table::{Table, Value};

/// Contenders that have bars where they ran; all are in the table.
const DRAWN: [&str; 10] = [
    "plan",
    "profile-guided",
    "cupy2rc1-pool",
    "cupy4-pool",
    "pytorch-caching",
    "jemalloc",
    "glibc",
    "cuda-malloc-async/keep",
    "cuda-graph/plan",
    "cuda-malloc",
];

/// The page; `None` without a time.
pub(super) fn section(sources: &Sources<'_>) -> Option<Section> {
    let mut pieces = vec![Piece::Text(
        "Wall time of one propagation: all requests and frees of it, and what is done with the memory between them. \
         Each place is a question of its own; simulated memory has no cost, so that its times are those of the \
         allocators' bookkeeping alone. The time of making a plan is no part of these times, save where profile-guided \
         plans between propagations."
            .to_owned(),
    )];
    for (place, cases) in Replays::by_place(sources.replays.plain()) {
        pieces.extend(figures(&place, &cases));
    }
    let table = table(sources);
    if table.rows.is_empty() {
        return None;
    }
    pieces.push(Piece::Heading("All times".to_owned()));
    pieces.push(Piece::Table(table));
    let title = "Time of a propagation by net, batch and allocator";
    Some(Section { file: "time.html", name: "Time", title, pieces })
}

/// A bar of a figure.
struct Bar<'c> {
    case: &'c Case,
    time: Measured,
}

fn figures(place: &Place, cases: &[&Case]) -> Vec<Piece> {
    let drawn = cases.iter().filter(|case| DRAWN.contains(&case.row().contender.as_str()));
    let bars: Vec<Bar<'_>> =
        drawn.filter_map(|&case| Some(Bar { case, time: case.propagation_ns()? })).collect();
    // Cases are sorted by workload.
    let workloads: Vec<&[Bar<'_>]> = bars.chunk_by(|a, b| a.case.workload() == b.case.workload()).collect();
    let most = workloads.iter().map(|bars| bars.len()).max().unwrap_or(0);
    let mut pieces = Vec::new();
    for NetPart { title, nets, .. } in parts(workloads.iter().map(|bars| bars[0].case.workload()), most) {
        let slots: Vec<(NetKey, &[Bar<'_>])> =
            nets.into_iter().map(|(key, at)| (key, workloads[at])).collect();
        let title = format!("Time of a propagation, {}: {title}", place.name());
        let caption = format!(
            "Median wall time; the line at the end of a bar is its 95 % interval, over processes where there are three, \
             else over samples. What is done with the memory: {}. The axis is logarithmic.",
            place.meaning()
        );
        pieces.extend(plot(&title, &slots).map(|drawing| Piece::Figure((drawing, caption))));
    }
    pieces
}

fn plot(title: &str, slots: &[(NetKey, &[Bar<'_>])]) -> Option<Drawing> {
    let bars = || slots.iter().flat_map(|(_, bars)| bars.iter());
    let least = bars().map(|bar| bar.time.low).min_by(f64::total_cmp)?.max(1.0);
    let most = bars().map(|bar| bar.time.high).max_by(f64::total_cmp)?.max(1.0);
    // A bar of the least would have no height.
    let y = Axis::times("time of a propagation", least / 2.0, most);
    let Scale::Log { low, .. } = y.scale else { return None };
    let x = Axis { scale: Scale::Linear { low: 0.0, high: 1.0 }, ticks: Vec::new(), title: String::new() };
    let mut drawing = Drawing::new(title, 1060, 380);
    let frame = Frame { left: 92.0, top: 24.0, right: WIDTH + 92.0, bottom: 326.0, x, y };
    frame.draw(&mut drawing);
    let drawn: Vec<Slot> = slots.iter().map(|(key, bars)| slot(key, bars, low)).collect();
    draw(&mut drawing, &frame, &drawn);
    legend(&mut drawing, (frame.right + 16.0, frame.top), 300.0, &entries(bars().map(|bar| bar.case)));
    let range = format!("{} to {}", nanoseconds(least), nanoseconds(most));
    drawing.text(((frame.left + frame.right) / 2.0, 10.0), range, Anchor::Middle);
    Some(drawing)
}

fn slot(key: &NetKey, bars: &[Bar<'_>], low: f64) -> Slot {
    let part = |bar: &Bar<'_>| Part {
        from: low,
        to: bar.time.median.max(1.0),
        color: bar.case.series.color(),
        tip: format!("{} {}: {}: {}", key.net, key.batch, bar.case.series.label, shown(&bar.time)),
        label: String::new(),
        interval: Some((bar.time.low.max(1.0), bar.time.high.max(1.0))),
    };
    let bars = bars.iter().map(|bar| vec![part(bar)]).collect();
    Slot { group: key.net.clone(), name: key.batch.clone(), bars, mark: None }
}

fn entries<'c>(cases: impl Iterator<Item = &'c Case>) -> Vec<Entry> {
    let mut series: Vec<_> = cases.map(|case| &case.series).collect();
    series.sort_by(|a, b| a.label.cmp(&b.label));
    series.dedup();
    series
        .into_iter()
        .map(|series| Entry { key: Key::Box, color: series.color(), text: series.label.clone() })
        .collect()
}

fn shown(time: &Measured) -> String {
    format!("{} ({} to {})", nanoseconds(time.median), nanoseconds(time.low), nanoseconds(time.high))
}

fn table(sources: &Sources<'_>) -> Table {
    let mut table = Table::new(
        "times",
        "Wall time of a propagation, by one thread: the median of all samples with its 95 % interval, over processes \
         where there are three, else over samples; the first propagation from an empty pool does not count. Enqueued: \
         the host's time until all of it was enqueued on the device; busy: from the first to the last of the device's \
         work.",
        &[
            ("workload", "Workload"),
            ("contender", "Contender"),
            ("device", "Device"),
            ("work", "Memory is"),
            ("processes", "Processes"),
            ("samples", "Samples"),
            ("warm_up", "Warm-up"),
            ("time_ns", "Time"),
            ("time_low_ns", "from"),
            ("time_high_ns", "to"),
            ("enqueue_ns", "Enqueued"),
            ("device_ns", "Device busy"),
            ("cpu_ns", "CPU"),
        ],
    );
    for case in sources.replays.plain() {
        let Some(time) = case.propagation_ns() else { continue };
        let middle =
            |time: Option<Measured>| Value::or_missing(time.map(|time| Value::Nanoseconds(time.median)));
        let row = case.row();
        table.push(vec![
            Value::text(case.workload()),
            Value::text(&case.series.label),
            Value::text(device(case)),
            Value::text(row.work.name()),
            Value::count(case.rows().len()),
            Value::count(case.samples()),
            Value::Count(u64::from(row.warm_up)),
            Value::Nanoseconds(time.median),
            Value::Nanoseconds(time.low),
            Value::Nanoseconds(time.high),
            middle(case.enqueue_ns()),
            middle(case.device_ns()),
            middle(case.cpu_ns()),
        ]);
    }
    table
}

/// The device, with what it calls itself.
pub(super) fn device(case: &Case) -> String {
    let row = case.row();
    match row.device_name.as_str() {
        "" => row.device.clone(),
        name => format!("{} ({name})", row.device),
    }
}
