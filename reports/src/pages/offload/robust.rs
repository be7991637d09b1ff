//! What a schedule takes if operations do not take the times that it was made for.

use std::collections::BTreeSet;

use planlab_results::schedule::{Disturbance, ScheduleRow};
use planlab_results::table::{Column, Table, Value};

use super::{share, subject};
use crate::data::schedules::{Case, Run, Schedules};
use crate::figures::Series;
use crate::figures::coord::Axis;
use crate::figures::lines::{self, Curve, Join, Point};
use crate::format::{percent, real};
use crate::site::page::Piece;

pub(super) fn pieces(schedules: &Schedules) -> Vec<Piece> {
    let table = table(schedules);
    if table.rows.is_empty() {
        return Vec::new();
    }
    let mut pieces = vec![Piece::heading("If operations take other times")];
    pieces.push(Piece::note(
        "Each schedule keeps its order and runs again with other times: every operation takes its time, more or less by up to \
         so many percent, drawn evenly and anew for each draw. Slowdown: against the time that was planned. The line of compute \
         alone is what the same draws do to an iteration in which nothing waits; no schedule avoids that part.",
    ));
    pieces.extend(schedules.cases.iter().filter_map(figure));
    pieces.extend(super::shown_or_folded(table));
    pieces
}

/// Slower than planned: (median, worst).
fn slowdown(run: &Run, disturbance: &Disturbance) -> Option<(f64, f64)> {
    let planned = real(run.iteration().filter(|&ns| ns > 0)?);
    Some((real(disturbance.median_ns) / planned - 1.0, real(disturbance.worst_ns) / planned - 1.0))
}

fn compute_alone(row: &ScheduleRow, disturbance: &Disturbance) -> Option<f64> {
    (row.compute_ns > 0).then(|| real(disturbance.compute_ns) / real(row.compute_ns) - 1.0)
}

/// The medians at the largest batch with a schedule.
fn figure(case: &Case) -> Option<Piece> {
    let batch = case.largest_scheduled()?;
    let runs: Vec<&Run> = case.at(batch).filter(|run| run.iteration().is_some()).collect();
    let mut curves: Vec<Curve> = runs
        .iter()
        .map(|run| Curve {
            series: run.series.clone(),
            points: run.row.disturbed.iter().filter_map(|of| point(of, slowdown(run, of)?.0)).collect(),
        })
        .collect();
    let first = runs.iter().find(|run| !run.row.disturbed.is_empty())?;
    let alone = |of: &Disturbance| point(of, compute_alone(&first.row, of)?);
    let number = case.schedulers().iter().map(|series| series.number + 1).max().unwrap_or(0);
    curves.push(Curve {
        series: Series { label: "compute alone".to_owned(), number },
        points: first.row.disturbed.iter().filter_map(alone).collect(),
    });
    let most = lines::range(&curves, |point| point.x)?.1;
    let (low, high) = lines::range(&curves, |point| point.y)?;
    let axes = (
        Axis::counts("times off by up to, percent", most),
        Axis::differences("slower than planned", low, high),
    );
    let title = format!("Slowdown with other times: {}, batch {batch}", case.name());
    let drawing = lines::plot(&title, axes, Join::Lines, &curves)?;
    let draws = first.row.disturbed.iter().map(|of| of.draws).max()?;
    Some(Piece::figure(
        drawing,
        format!("The median of {draws} draws, at the largest batch with a schedule."),
    ))
}

fn point(disturbance: &Disturbance, slowdown: f64) -> Option<Point> {
    let percent_off = disturbance.percent;
    let tip = format!("off by up to {percent_off} %: {}", percent(slowdown));
    Some(Point { x: real(percent_off), y: slowdown, tip })
}

fn table(schedules: &Schedules) -> Table {
    let all = || schedules.runs().flat_map(|(_, run)| &run.row.disturbed);
    let levels: BTreeSet<u64> = all().map(|disturbance| disturbance.percent).collect();
    let mut table = super::table(
        "offload-robustness",
        "Slowdown against the planned time if times are off by up to so many percent: the median and the worst of the draws, \
         and the median of compute alone.",
        &[("batch", "Batch"), ("scheduler", "Scheduler"), ("draws", "Draws")],
    );
    for level in &levels {
        for (key, title) in [
            ("median", format!("{level} %: median")),
            ("worst", "worst".to_owned()),
            ("compute", "compute alone".to_owned()),
        ] {
            table.columns.push(Column { key: format!("{key}_at_{level}"), title });
        }
    }
    for (case, run) in schedules.runs() {
        if run.iteration().is_none() || run.row.disturbed.is_empty() {
            continue;
        }
        let mut values = subject(case);
        let draws = run.row.disturbed.iter().map(|of| of.draws).max();
        values.extend([
            Value::Count(run.row.batch),
            Value::text(run.series.label.as_str()),
            Value::or_missing(draws.map(Value::Count)),
        ]);
        for level in &levels {
            let of = run.row.disturbed.iter().find(|of| of.percent == *level);
            let slower = of.and_then(|of| slowdown(run, of));
            values.extend([
                share(slower.map(|(median, _)| median)),
                share(slower.map(|(_, worst)| worst)),
                share(of.and_then(|of| compute_alone(&run.row, of))),
            ]);
        }
        table.push(values);
    }
    table
}
