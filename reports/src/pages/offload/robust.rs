//! The time of a schedule if operations deviate from their assumed times.

use std::collections::BTreeSet;

use planlab_results::schedule::{Disturbance, ScheduleRow};
use planlab_results::table::{CellValue, Column, Table, columns};

use super::tables::{self, subject_of};
use crate::data::schedules::{Case, Run, Schedules};
use crate::figures::coord::Axis;
use crate::figures::plots::curves::{self, Curve, HEIGHT, Point};
use crate::format::{as_real, format_percent};
use crate::site::page::Piece;

pub(super) fn robust_pieces(schedules: &Schedules) -> Vec<Piece> {
    let is_largest = |case: &Case, run: &Run| case.largest_scheduled() == Some(run.size);
    let largest = robust_table(schedules, ("offload-robustness-largest", is_largest));
    let table = robust_table(schedules, ("offload-robustness", |_, _| true));
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
    pieces.extend(schedules.cases.iter().filter_map(robust_figure));
    pieces.extend(tables::shown_or_folded(largest));
    pieces.push(Piece::Folded(format!("All {} schedules", table.rows.len()), tables::trimmed(table)));
    pieces
}

/// The slowdown against the plan: (median, worst).
fn slowdown_range(run: &Run, disturbance: &Disturbance) -> Option<(f64, f64)> {
    let planned = as_real(run.iteration_ns().filter(|&ns| ns > 0)?);
    Some((as_real(disturbance.median_ns) / planned - 1.0, as_real(disturbance.worst_ns) / planned - 1.0))
}

fn compute_alone(row: &ScheduleRow, disturbance: &Disturbance) -> Option<f64> {
    (row.compute_ns > 0).then(|| as_real(disturbance.compute_ns) / as_real(row.compute_ns) - 1.0)
}

/// The medians at the largest size with a schedule.
fn robust_figure(case: &Case) -> Option<Piece> {
    let size = case.largest_scheduled()?;
    let runs: Vec<&Run> = case.runs_at(size).filter(|run| run.iteration_ns().is_some()).collect();
    let curve = |run: &&Run| {
        let points = run.row.disturbed.iter().filter_map(|of| slowdown_point(run, of));
        Curve::joined(run.series.clone(), points.collect())
    };
    let first = &runs.iter().find(|run| !run.row.disturbed.is_empty())?.row;
    let alone = |of: &Disturbance| Some((as_real(of.percent), compute_alone(first, of)?));
    let reference = Curve::reference("compute alone", first.disturbed.iter().filter_map(alone).collect());
    let curves: Vec<Curve> = std::iter::once(reference).chain(runs.iter().map(curve)).collect();
    let (_, (low, high)) = curves::ranges(&curves)?;
    let most = first.disturbed.iter().map(|of| of.percent).max()?;
    let draws = first.disturbed.iter().map(|of| of.draws).max()?;
    let x = Axis::counts("times off by up to, percent", as_real(most));
    let axes = (x, Axis::differences("slower than planned", low, high));
    let title = format!("Slowdown with other times: {}, {} {size}", case.name(), case.size_noun());
    let drawing = curves::plot(&title, HEIGHT, axes, curves)?;
    let caption =
        format!("The median of {draws} draws, at the largest {} with a schedule.", case.size_noun());
    Some(Piece::figure(drawing, caption))
}

fn slowdown_point(run: &Run, disturbance: &Disturbance) -> Option<Point> {
    let (median, worst) = slowdown_range(run, disturbance)?;
    let level = disturbance.percent;
    let tip =
        format!("off by up to {level} %: {}, at worst {}", format_percent(median), format_percent(worst));
    let is_hollow = run.fits_memory() != Some(true);
    Some(Point { is_hollow, ..Point::new(&run.series, as_real(level), median, &tip) })
}

/// The runs at the largest size only, or all.
fn robust_table(schedules: &Schedules, (name, is_shown): (&str, fn(&Case, &Run) -> bool)) -> Table {
    let all = || schedules.all_runs().flat_map(|(_, run)| &run.row.disturbed);
    let levels: BTreeSet<u64> = all().map(|disturbance| disturbance.percent).collect();
    let is_disturbed = |run: &Run| run.iteration_ns().is_some() && !run.row.disturbed.is_empty();
    let shown: Vec<(&Case, &Run)> =
        schedules.all_runs().filter(|(case, run)| is_shown(case, run) && is_disturbed(run)).collect();
    let mut table = tables::table(
        name,
        "Slowdown against the planned time if times are off by up to the given percentage: the median and the \
         worst of the draws, \
         and (alone) the median of compute alone.",
        shown.iter().map(|&(case, run)| (subject_of(case, run), run)),
        columns!(|run| {
            let draws = run.row.disturbed.iter().map(|of| of.draws).max();
            [
                ("batch", "Batch", CellValue::Count(run.row.batch)),
                ("scheduler", "Scheduler", CellValue::text(run.series.label.as_str())),
                ("draws", "Draws", CellValue::or_missing(draws.map(CellValue::Count))),
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
            let slower = of.and_then(|of| slowdown_range(run, of));
            row.extend([
                CellValue::share(slower.map(|(median, _)| median)),
                CellValue::share(slower.map(|(_, worst)| worst)),
                CellValue::share(of.and_then(|of| compute_alone(&run.row, of))),
            ]);
        }
    }
    table
}
