//! Throughput by batch, for every scheduler and machine.

use planlab_results::table::{Table, Value};

use super::{share, subject, time};
use crate::data::published::published;
use crate::data::schedules::{Case, Run, Schedules, gigabytes};
use crate::figures::coord::Axis;
use crate::figures::reference::{self, Curve, Point, Reference};
use crate::format::{percent, real};
use crate::site::page::Piece;

pub(super) fn pieces(schedules: &Schedules) -> Vec<Piece> {
    let mut pieces = vec![Piece::heading("Speed by batch")];
    for case in &schedules.cases {
        pieces.extend(figure(case));
        let figures: Vec<String> = published()
            .figures(case)
            .map(|figure| format!("figure {} ({})", figure.number, figure.shows))
            .collect();
        if !figures.is_empty() {
            pieces.push(Piece::note(format!(
                "{}: beside it stand, in the paper of PoocH, {}.",
                case.name(),
                figures.join("; ")
            )));
        }
    }
    pieces.extend(super::shown_or_folded(table(schedules)));
    pieces
}

/// `None` for a single batch: the table has it.
fn figure(case: &Case) -> Option<Piece> {
    let batches = case.batches();
    if batches.len() < 2 {
        return None;
    }
    let point = |run: &Run| Point {
        x: real(run.row.batch),
        y: run.speed(),
        is_hollow: run.fits() != Some(true),
        tip: tip(run),
    };
    let curves: Vec<Curve> = case
        .schedulers()
        .into_iter()
        .map(|series| Curve { series: series.clone(), points: case.of(series.number).map(point).collect() })
        .collect();
    let points: Vec<(f64, f64)> = batches
        .iter()
        .filter_map(|&batch| Some((real(batch), case.at(batch).next()?.row.images_per_second_at_most())))
        .collect();
    let reference =
        Reference { name: "if all of it fitted", points, hollow: "hollow: its offsets do not fit" };
    let x = Axis::counts("batch", real(*batches.last()?) * 1.03);
    let y = |_, most: f64| Axis::counts("images per second", most * 1.06);
    let title = format!("Speed by batch: {}", case.name());
    let drawing = reference::plot(&title, x, y, reference, &curves)?;
    let caption = "A line ends at the last batch with a schedule. A hollow mark: the bytes in use fit at every moment, the \
                   offsets of the buffers do not. Dashed: if all of it fitted and nothing waited.";
    Some(Piece::figure(drawing, caption))
}

fn tip(run: &Run) -> String {
    let (row, label) = (&run.row, &run.series.label);
    let (Some(speed), Some(loss)) = (run.speed(), run.loss()) else {
        return format!("{label}, batch {}: {}", row.batch, run.end());
    };
    let height = row.height.map_or(String::new(), |height| format!(", offsets need {}", gigabytes(height)));
    let classes = run.classes().map_or(String::new(), |[keep, swap, again]| {
        format!(", {keep} kept, {swap} swapped, {again} recomputed")
    });
    format!("{label}, batch {}: {speed:.1} images/s, {} lost{classes}{height}", row.batch, percent(loss))
}

fn table(schedules: &Schedules) -> Table {
    let mut table = super::table(
        "offload-speed",
        "Every scheduler at every batch, its last run. At most: if all of it fitted and nothing waited; lost: how much slower \
         the schedule is. Fits: whether the best offsets do. Without a schedule, the reason.",
        &[
            ("batch", "Batch"),
            ("scheduler", "Scheduler"),
            ("status", "Status"),
            ("images_per_second", "Images/s"),
            ("at_most", "At most"),
            ("lost", "Lost"),
            ("iteration_ns", "Iteration"),
            ("fits", "Fits"),
            ("reason", "Reason"),
        ],
    );
    for (case, run) in schedules.runs() {
        let row = &run.row;
        let fits = run.fits().map(|fits| Value::text(if fits { "yes" } else { "no" }));
        let mut values = subject(case);
        values.extend([
            Value::Count(row.batch),
            Value::text(run.series.label.as_str()),
            Value::text(row.status.name()),
            Value::or_missing(run.speed().map(Value::Number)),
            Value::Number(row.images_per_second_at_most()),
            share(run.loss()),
            time(run.iteration()),
            Value::or_missing(fits),
            Value::text(row.reason.as_str()),
        ]);
        table.push(values);
    }
    table
}
