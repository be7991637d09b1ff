//! The gap between schedules and the proven bound on the time of an iteration, and the costs of the search.

use std::collections::{BTreeMap, BTreeSet};

use planlab_results::table::{Table, Value};

use super::{middle_and_most, share, subject, subject_of, time};
use crate::data::schedules::{Case, Run, Schedules};
use crate::format::real;
use crate::site::page::Piece;

pub(super) fn pieces(schedules: &Schedules) -> Vec<Piece> {
    let summary = summary(schedules);
    if summary.rows.is_empty() {
        return Vec::new();
    }
    let note = "A bound on the time of an iteration holds for every valid schedule (any); in rows of older versions it may hold \
                for those alone that keep, swap or recompute each feature map once (classes). Its evidence is the time of the \
                passes alone (compute), or a relaxation that also counts bytes, copies and recomputation (lp). A gap of 0 is \
                a proof that no such schedule is faster.";
    let mut pieces =
        vec![Piece::heading("Gap to the proven bound, and time of the search"), Piece::note(note)];
    pieces.extend(super::shown_or_folded(summary));
    let table = table(schedules);
    pieces.push(Piece::Folded(format!("All {} schedules", table.rows.len()), super::trimmed(table)));
    pieces
}

fn summary(schedules: &Schedules) -> Table {
    let mut table = super::table(
        "offload-gaps",
        "Over the sizes of a net and machine: how many schedules there are and how many equal the bound, the median and the worst \
         gap, and what the search took: median and slowest wall time of the whole run, and the most simulated iterations.",
        &[
            ("scheduler", "Scheduler"),
            ("schedules", "All"),
            ("proved", "At the bound"),
            ("median_gap", "Gap, median"),
            ("worst_gap", "worst"),
            ("scopes", "Scopes"),
            ("evidence", "Evidence"),
            ("median_ns", "Search"),
            ("most_ns", "slowest"),
            ("most_work", "Simulated"),
        ],
    );
    for case in &schedules.cases {
        let mut groups: BTreeMap<usize, Vec<&Run>> = BTreeMap::new();
        for run in case.runs.iter().filter(|run| run.iteration().is_some()) {
            groups.entry(run.series.number).or_default().push(run);
        }
        groups.values().for_each(|runs| table.push(line(case, runs)));
    }
    table
}

fn line(case: &Case, runs: &[&Run]) -> Vec<Value> {
    let gaps: Vec<f64> = runs.iter().filter_map(|run| run.row.gap()).collect();
    let times: Vec<f64> = runs.iter().filter_map(|run| run.row.elapsed_ns).map(real).collect();
    let (gap, took) = (middle_and_most(&gaps), middle_and_most(&times));
    let distinct = |of: fn(&Run) -> &str| {
        let names: BTreeSet<&str> = runs.iter().map(|run| of(run)).collect();
        Value::text(names.into_iter().collect::<Vec<_>>().join(", "))
    };
    let nanoseconds = |ns: Option<f64>| Value::or_missing(ns.map(Value::Nanoseconds));
    let is_equal = |run: &&&Run| run.row.gap() == Some(0.0);
    let inputs = super::range(runs.iter().filter_map(|run| run.input()));
    let mut values = subject(case, Value::or_missing(inputs.map(Value::Text)));
    values.extend([
        Value::text(runs[0].series.label.as_str()),
        Value::count(runs.len()),
        Value::count(runs.iter().filter(is_equal).count()),
        share(gap.map(|(median, _)| median)),
        share(gap.map(|(_, worst)| worst)),
        distinct(|run| &run.row.bound_scope),
        distinct(|run| &run.row.bound_evidence),
        nanoseconds(took.map(|(median, _)| median)),
        nanoseconds(took.map(|(_, most)| most)),
        Value::or_missing(runs.iter().map(|run| run.row.work).max().map(Value::Count)),
    ]);
    values
}

fn table(schedules: &Schedules) -> Table {
    let mut table = super::table(
        "offload-bounds",
        "Every schedule: its time, the bound with scope and evidence, and the search.",
        &[
            ("batch", "Batch"),
            ("scheduler", "Scheduler"),
            ("iteration_ns", "Iteration"),
            ("bound_ns", "Bound"),
            ("gap", "Gap"),
            ("scope", "Scope"),
            ("evidence", "Evidence"),
            ("stop", "Stopped"),
            ("elapsed_ns", "Search"),
            ("work", "Simulated"),
        ],
    );
    for (case, run) in schedules.runs().filter(|(_, run)| run.iteration().is_some()) {
        let row = &run.row;
        let mut values = subject_of(case, run);
        values.extend([
            Value::Count(row.batch),
            Value::text(run.series.label.as_str()),
            time(row.iteration_ns),
            time(Some(row.bound_ns)),
            share(row.gap()),
            Value::text(row.bound_scope.as_str()),
            Value::text(row.bound_evidence.as_str()),
            Value::or_missing(row.stop.map(|stop| Value::text(stop.name()))),
            time(row.elapsed_ns),
            Value::Count(row.work),
        ]);
        table.push(values);
    }
    table
}
