//! The gap between schedules and the proven bound on the time of an iteration, and the costs of the search.

use std::collections::BTreeSet;

use planlab_results::table::{CellValue, Table, columns};

use super::tables::{self, middle_and_most, subject, subject_of, time_value};
use crate::data::rows::group_by;
use crate::data::schedules::{Run, Schedules};
use crate::format::as_real;
use crate::site::page::Piece;

pub(super) fn bound_pieces(schedules: &Schedules) -> Vec<Piece> {
    let summary = bound_summary(schedules);
    if summary.rows.is_empty() {
        return Vec::new();
    }
    let note = "A bound on the time of an iteration holds for every valid schedule (any); in rows of older versions it may hold \
                for those alone that keep, swap or recompute each feature map once (classes). Its evidence is the time of the \
                passes alone (compute), or a relaxation that also counts bytes, copies and recomputation (lp). A gap of 0 is \
                a proof that no such schedule is faster.";
    let mut pieces =
        vec![Piece::heading("Gap to the proven bound, and time of the search"), Piece::note(note)];
    pieces.extend(tables::shown_or_folded(summary));
    let table = bound_table(schedules);
    pieces.push(Piece::Folded(format!("All {} schedules", table.rows.len()), tables::trimmed(table)));
    pieces
}

fn bound_summary(schedules: &Schedules) -> Table {
    let mut rows: Vec<(Vec<CellValue>, Vec<&Run>)> = Vec::new();
    for case in &schedules.cases {
        let found = case.runs.iter().filter(|run| run.iteration_ns().is_some());
        let groups = group_by(found, |run| run.series.number);
        let inputs = |runs: &[&Run]| tables::range(runs.iter().filter_map(|run| run.input_extent()));
        let named = |runs: &[&Run]| subject(case, CellValue::or_missing(inputs(runs).map(CellValue::Text)));
        rows.extend(groups.into_values().map(|runs| (named(&runs), runs)));
    }
    tables::table(
        "offload-gaps",
        "Over the sizes of a net and machine: how many schedules there are and how many equal the bound, the median and the worst \
         gap, and what the search took: median and slowest wall time of the whole run, and the most simulated iterations.",
        rows,
        columns!(|runs| {
            let gaps: Vec<f64> = runs.iter().filter_map(|run| run.row.gap()).collect();
            let times: Vec<f64> = runs.iter().filter_map(|run| run.row.elapsed_ns).map(as_real).collect();
            let (gap, took) = (middle_and_most(&gaps), middle_and_most(&times));
            let equal = runs.iter().filter(|run| run.row.gap() == Some(0.0)).count();
            let work = runs.iter().map(|run| run.row.work).max();
            [
                ("scheduler", "Scheduler", CellValue::text(runs[0].series.label.as_str())),
                ("schedules", "All", CellValue::count(runs.len())),
                ("proved", "At the bound", CellValue::count(equal)),
                ("median_gap", "Gap, median", CellValue::share(gap.map(|(median, _)| median))),
                ("worst_gap", "worst", CellValue::share(gap.map(|(_, worst)| worst))),
                ("scopes", "Scopes", distinct_values(&runs, |run| &run.row.bound_scope)),
                ("evidence", "Evidence", distinct_values(&runs, |run| &run.row.bound_evidence)),
                ("median_ns", "Search", CellValue::nanoseconds(took.map(|(median, _)| median))),
                ("most_ns", "slowest", CellValue::nanoseconds(took.map(|(_, most)| most))),
                ("most_work", "Simulated", CellValue::or_missing(work.map(CellValue::Count))),
            ]
        }),
    )
}

fn distinct_values(runs: &[&Run], of: fn(&Run) -> &str) -> CellValue {
    let names: BTreeSet<&str> = runs.iter().map(|run| of(run)).collect();
    CellValue::text(names.into_iter().collect::<Vec<_>>().join(", "))
}

fn bound_table(schedules: &Schedules) -> Table {
    let found = schedules.all_runs().filter(|(_, run)| run.iteration_ns().is_some());
    tables::table(
        "offload-bounds",
        "Every schedule: its time, the bound with scope and evidence, and the search.",
        found.map(|(case, run)| (subject_of(case, run), run)),
        columns!(|run| {
            let row = &run.row;
            [
                ("batch", "Batch", CellValue::Count(row.batch)),
                ("scheduler", "Scheduler", CellValue::text(run.series.label.as_str())),
                ("iteration_ns", "Iteration", time_value(row.iteration_ns)),
                ("bound_ns", "Bound", time_value(Some(row.bound_ns))),
                ("gap", "Gap", CellValue::share(row.gap())),
                ("scope", "Scope", CellValue::text(row.bound_scope.as_str())),
                ("evidence", "Evidence", CellValue::text(row.bound_evidence.as_str())),
                ("stop", "Stopped", CellValue::or_missing(row.stop.map(|stop| CellValue::text(stop.name())))),
                ("elapsed_ns", "Search", time_value(row.elapsed_ns)),
                ("work", "Simulated", CellValue::Count(row.work)),
            ]
        }),
    )
}
