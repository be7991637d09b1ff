//! Footprint and time over propagations that differ: sentences of other lengths, say.

use planlab_results::replay::ReplayRow;

use super::{Piece, Section, Sources};
use crate::drawing::axis::Axis;
use crate::format::{bytes, count_real, nanoseconds, real};
use crate::plots::lines::{self, Curve, Join, Point};
use crate::replays::Case;
use crate::table::{Table, Value};

/// The page; `None` without a sequence.
pub(super) fn section(sources: &Sources<'_>) -> Option<Section> {
    let cases: Vec<&Case> =
        sources.replays.cases.iter().filter(|case| !case.row().sequence.is_empty()).collect();
    cases.first()?;
    let mut pieces = vec![Piece::Text(
        "Propagations in turn that ask for other sizes or other numbers of buffers each time. A pool fragments from \
         one to the next; profile-guided replays its plan, serves from a pool what does not fit it, and plans anew \
         after a propagation that asked for more."
            .to_owned(),
    )];
    for own in cases.chunk_by(|a, b| subject(a) == subject(b)) {
        pieces.push(Piece::Heading(heading(own[0])));
        pieces.push(Piece::Text(format!("The propagations in their order: {}.", names(own[0].row()))));
        pieces.extend(footprint(own));
        pieces.extend(time(own));
    }
    pieces.push(Piece::Heading("All allocators".to_owned()));
    pieces.push(Piece::Table(table(&cases)));
    pieces.push(Piece::Table(samples(&cases)));
    let title = "Footprint and time over iterations";
    Some(Section { file: "iterations.html", name: "Iterations", title, pieces })
}

/// What stands in one figure.
fn subject(case: &Case) -> (&str, &[String], &str) {
    let row = case.row();
    (&row.workload, &row.sequence, &row.device)
}

fn heading(case: &Case) -> String {
    let row = case.row();
    format!(
        "{}: {} propagations, {}",
        row.workload,
        row.samples.len().max(row.sequence.len()),
        case.place().name()
    )
}

/// The propagations, each without what all share.
fn names(row: &ReplayRow) -> String {
    let short = |key: &String| key.strip_prefix(&row.workload).unwrap_or(key).trim_matches('/').to_owned();
    row.sequence.iter().map(short).collect::<Vec<_>>().join(", ")
}

fn footprint(cases: &[&Case]) -> Option<Piece> {
    let curves: Vec<Curve> = cases
        .iter()
        .map(|case| {
            curve(case, &|row, at| {
                let reserved = row.samples[at].reserved?;
                Some((real(reserved), bytes(reserved)))
            })
        })
        .collect();
    let (most_x, most_y) =
        (lines::range(&curves, |point| point.x)?.1, lines::range(&curves, |point| point.y)?.1);
    let axes = (Axis::counts("propagation", most_x), Axis::bytes("reserved", most_y));
    let title = format!("Footprint over iterations: {}, {}", cases[0].workload(), cases[0].place().name());
    let drawing = lines::plot(&title, axes, Join::Lines, &curves)?;
    let most = cases.iter().map(|case| case.row().requested_peak).max()?;
    let kept = cases.iter().find_map(|case| case.row().retained);
    let kept = kept.map_or(String::new(), |kept| {
        format!(" {} more are kept over all iterations and are no part of it.", bytes(kept))
    });
    let caption = format!(
        "What is reserved at the end of each propagation. At most {} are requested at once.{kept}",
        bytes(most)
    );
    Some(Piece::Figure((drawing, caption)))
}

fn time(cases: &[&Case]) -> Option<Piece> {
    let curves: Vec<Curve> = cases
        .iter()
        .map(|case| {
            curve(case, &|row, at| {
                let sample = &row.samples[at];
                let time = real(sample.wall_ns) / f64::from(sample.propagations.max(1));
                (time > 0.0).then(|| (time, nanoseconds(time)))
            })
        })
        .collect();
    let most_x = lines::range(&curves, |point| point.x)?.1;
    let (low, high) = lines::range(&curves, |point| point.y)?;
    let axes = (Axis::counts("propagation", most_x), Axis::times("time of the propagation", low, high));
    let title = format!("Time over iterations: {}, {}", cases[0].workload(), cases[0].place().name());
    let drawing = lines::plot(&title, axes, Join::Lines, &curves)?;
    let caption = "Wall time of each propagation, with the plan that is made at its end where one is. The axis is \
                   logarithmic.";
    Some(Piece::Figure((drawing, caption.to_owned())))
}

/// A value, and how people read it.
type Shown = (f64, String);

/// A value of each sample of the first process, where there is one.
fn curve(case: &Case, value: &dyn Fn(&ReplayRow, usize) -> Option<Shown>) -> Curve {
    let row = case.row();
    let point = |at: usize| {
        let (y, shown) = value(row, at)?;
        Some(Point { x: count_real(at + 1), y, tip: format!("propagation {}: {shown}", at + 1) })
    };
    Curve { series: case.series.clone(), points: (0..row.samples.len()).filter_map(point).collect() }
}

fn table(cases: &[&Case]) -> Table {
    let mut table = Table::new(
        "iterations",
        "Over all propagations of a sequence. Plans: how many were made, and the time that this took, which is part of \
         the wall time.",
        &[
            ("workload", "Workload"),
            ("contender", "Contender"),
            ("device", "Device"),
            ("status", "Status"),
            ("propagations", "Propagations"),
            ("requested_bytes", "Requested at once"),
            ("reserved_bytes", "Reserved, most"),
            ("first_bytes", "after the first"),
            ("last_bytes", "after the last"),
            ("time_ns", "Time"),
            ("plans", "Plans"),
            ("planning_ns", "Planning"),
            ("planning_share", "of the time"),
        ],
    );
    for case in cases {
        let row = case.row();
        let wall: u64 = row.samples.iter().map(|sample| sample.wall_ns).sum();
        let (first, last) = (row.samples.first(), row.samples.last());
        let planning = last.and_then(|sample| sample.planning_ns);
        let end = |sample: Option<&planlab_results::replay::ReplaySample>| {
            Value::or_missing(sample.and_then(|sample| sample.reserved).map(Value::Bytes))
        };
        table.push(vec![
            Value::text(case.workload()),
            Value::text(&case.series.label),
            Value::text(case.place().name()),
            Value::text(row.status.name()),
            Value::count(row.samples.len()),
            Value::Bytes(row.requested_peak),
            Value::Bytes(row.reserved_peak),
            end(first),
            end(last),
            Value::Nanoseconds(real(wall)),
            Value::or_missing(last.and_then(|sample| sample.plans).map(Value::Count)),
            Value::or_missing(planning.map(|time| Value::Nanoseconds(real(time)))),
            Value::or_missing(
                planning.filter(|_| wall > 0).map(|time| Value::Share(real(time) / real(wall))),
            ),
        ]);
    }
    table
}

fn samples(cases: &[&Case]) -> Table {
    let mut table = Table::new(
        "iterations-samples",
        "Every propagation. Plans: made so far.",
        &[
            ("workload", "Workload"),
            ("contender", "Contender"),
            ("device", "Device"),
            ("propagation", "Propagation"),
            ("trace", "Trace"),
            ("reserved_bytes", "Reserved"),
            ("time_ns", "Time"),
            ("plans", "Plans"),
            ("planning_ns", "Planning so far"),
        ],
    );
    for case in cases {
        let row = case.row();
        for (at, sample) in row.samples.iter().enumerate() {
            let trace = row.sequence.get(at % row.sequence.len().max(1));
            table.push(vec![
                Value::text(case.workload()),
                Value::text(&case.series.label),
                Value::text(case.place().name()),
                Value::count(at + 1),
                Value::or_missing(trace.map(Value::text)),
                Value::or_missing(sample.reserved.map(Value::Bytes)),
                Value::Nanoseconds(real(sample.wall_ns) / f64::from(sample.propagations.max(1))),
                Value::or_missing(sample.plans.map(Value::Count)),
                Value::or_missing(sample.planning_ns.map(|time| Value::Nanoseconds(real(time)))),
            ]);
        }
    }
    table
}
