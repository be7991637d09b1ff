//! The time of a schedule if operations deviate from their assumed times.

use std::collections::BTreeSet;

use planlab_results::schedule::{Disturbance, ScheduleRow};
use planlab_results::table::{Column, Table, Value, columns};

use super::tables::{self, subject_of};
use crate::data::schedules::{Case, Run, Schedules};
use crate::figures::coord::Axis;
use crate::figures::plots::curves::{self, Curve, HEIGHT, Point};
use crate::format::{percent, real};
use crate::site::page::Piece;

pub(super) fn pieces(schedules: &Schedules) -> Vec<Piece> {
    let is_largest = |case: &Case, run: &Run| case.largest_scheduled() == Some(run.size);
    let largest = table(schedules, ("offload-robustness-largest", is_largest));
    let table = table(schedules, ("offload-robustness", |_, _| true));
    if table.rows.is_empty() {
        return Vec::new();
    }
    let mut pieces = vec![Piece::heading("If operations take other times")];
    pieces.push(Piece::note(
        "Each schedule keeps its order and runs again with other times: the time of every operation and every \
         copy changes by a random percentage up to the given one, drawn uniformly and again for each draw; all \
         schedulers have the same draws. Slowdown: against the planned time. Compute alone is what the same \
         draws do to an iteration in which nothing waits; no schedule avoids that part.",
    ));
    pieces.extend(schedules.cases.iter().filter_map(figure));
    pieces.extend(tables::shown_or_folded(largest));
    pieces.push(Piece::Folded(format!("All {} schedules", table.rows.len()), tables::trimmed(table)));
    pieces
}

/// The slowdown against the plan: (median, worst).
fn slowdown(run: &Run, disturbance: &Disturbance) -> Option<(f64, f64)> {
    let planned = real(run.iteration().filter(|&ns| ns > 0)?);
    Some((real(disturbance.median_ns) / planned - 1.0, real(disturbance.worst_ns) / planned - 1.0))
}

fn compute_alone(row: &ScheduleRow, disturbance: &Disturbance) -> Option<f64> {
    (row.compute_ns > 0).then(|| real(disturbance.compute_ns) / real(row.compute_ns) - 1.0)
}

/// The medians at the largest size with a schedule.
fn figure(case: &Case) -> Option<Piece> {
    let size = case.largest_scheduled()?;
    let runs: Vec<&Run> = case.at(size).filter(|run| run.iteration().is_some()).collect();
    let curve = |run: &&Run| {
        let points = run.row.disturbed.iter().filter_map(|of| point(run, of));
        Curve::joined(run.series.clone(), points.collect())
    };
    let first = &runs.iter().find(|run| !run.row.disturbed.is_empty())?.row;
    let alone = |of: &Disturbance| Some((real(of.percent), compute_alone(first, of)?));
    let reference = Curve::reference("compute alone", first.disturbed.iter().filter_map(alone).collect());
    let curves: Vec<Curve> = std::iter::once(reference).chain(runs.iter().map(curve)).collect();
    let (_, (low, high)) = curves::ranges(&curves)?;
    let most = first.disturbed.iter().map(|of| of.percent).max()?;
    let draws = first.disturbed.iter().map(|of| of.draws).max()?;
    let x = Axis::counts("times off by up to, percent", real(most));
    let axes = (x, Axis::differences("slower than planned", low, high));
    let title = format!("Slowdown with other times: {}, {} {size}", case.name(), case.noun());
    let drawing = curves::plot(&title, HEIGHT, axes, curves)?;
    Some(Piece::figure(
        drawing,
        format!("The median of {draws} draws, at the largest {} with a schedule.", case.noun()),
    ))
}

fn point(run: &Run, disturbance: &Disturbance) -> Option<Point> {
    let (median, worst) = slowdown(run, disturbance)?;
    let level = disturbance.percent;
    let tip = format!("off by up to {level} %: {}, at worst {}", percent(median), percent(worst));
    let is_hollow = run.fits() != Some(true);
    Some(Point { is_hollow, ..Point::new(&run.series, real(level), median, &tip) })
}

/// The runs at the largest size only, or all.
fn table(schedules: &Schedules, (name, is_shown): (&str, fn(&Case, &Run) -> bool)) -> Table {
    let all = || schedules.runs().flat_map(|(_, run)| &run.row.disturbed);
    let levels: BTreeSet<u64> = all().map(|disturbance| disturbance.percent).collect();
    let is_disturbed = |run: &Run| run.iteration().is_some() && !run.row.disturbed.is_empty();
    let shown: Vec<(&Case, &Run)> =
        schedules.runs().filter(|(case, run)| is_shown(case, run) && is_disturbed(run)).collect();
    let mut table = tables::table(
        name,
        "Slowdown against the planned time if times are off by up to the given percentage: the median and the \
         worst of the draws, \
         and (alone) the median of compute alone.",
        shown.iter().map(|&(case, run)| (subject_of(case, run), run)),
        columns!(|run| {
            let draws = run.row.disturbed.iter().map(|of| of.draws).max();
            [
                ("batch", "Batch", Value::Count(run.row.batch)),
                ("scheduler", "Scheduler", Value::text(run.series.label.as_str())),
                ("draws", "Draws", Value::or_missing(draws.map(Value::Count))),
            ]
        }),
    );
    for level in &levels {
        for (key, title) in [
            ("median", format!("{level} %: median")),
            ("worst", "worst".to_owned()),
            ("compute", "alone".to_owned()),
        ] {
            table.columns.push(Column { key: format!("{key}_at_{level}"), title });
        }
        for (row, (_, run)) in table.rows.iter_mut().zip(&shown) {
            let of = run.row.disturbed.iter().find(|of| of.percent == *level);
            let slower = of.and_then(|of| slowdown(run, of));
            row.extend([
                Value::share(slower.map(|(median, _)| median)),
                Value::share(slower.map(|(_, worst)| worst)),
                Value::share(of.and_then(|of| compute_alone(&run.row, of))),
            ]);
        }
    }
    table
}
