//! Compares online allocators with plans: on the summary, and on the page of each workload.

use std::collections::{BTreeMap, BTreeSet};

use planlab_dsa::performance::End;
use planlab_results::queries::GAP_SHIFT;
use planlab_results::statistics::shifted_geometric_mean;

use crate::data::planners::model::{Model, is_recorded};
use crate::data::replays::{Case, Replays};
use crate::format::{as_real, format_count};
use planlab_results::table::{CellValue, Table, columns};

/// The reserved bytes of an allocator on a workload, and its best plan.
struct Pair<'c> {
    case: &'c Case,
    /// The name of the quantity in tables.
    label: String,
    held: u64,
    best: u64,
}

impl Pair<'_> {
    fn over_requests(&self) -> Option<f64> {
        let row = self.case.summary_row();
        (row.requested_peak > 0).then(|| as_real(self.held) / as_real(row.requested_peak) - 1.0)
    }

    /// The share of the reserved bytes that the plan saves.
    fn share_saved(&self) -> Option<f64> {
        (self.held > 0).then(|| 1.0 - as_real(self.best) / as_real(self.held))
    }
}

/// A sentence on what was replayed; `None` without replays.
pub(crate) fn replay_sentence(replays: &Replays) -> Option<String> {
    let distinct = |of: fn(&Case) -> &str| replays.cases.iter().map(of).collect::<BTreeSet<&str>>();
    let devices = distinct(|case| &case.summary_row().device).into_iter().collect::<Vec<_>>().join(", ");
    (replays.rows > 0).then(|| {
        format!(
            "{} rows of {} online allocators and replayed plans on {} workloads, on the memory of: {devices}.",
            format_count(replays.rows as u64),
            distinct(|case| &case.series.label).len(),
            distinct(Case::workload).len(),
        )
    })
}

/// Each online allocator over the workloads that also have a plan.
pub(crate) fn summary_table(model: &Model, replays: &Replays) -> Table {
    let pairs = comparable_pairs(model, replays);
    let labels: BTreeSet<&str> = pairs.iter().map(|pair| pair.label.as_str()).collect();
    let mut rows: Vec<Savings<'_>> =
        labels.into_iter().filter_map(|label| saving_summary(label, &pairs)).collect();
    rows.sort_by(|a, b| a.mean.total_cmp(&b.mean));
    Table::from_rows(
        "online-allocators",
        "Online allocators on the workloads that also have a plan. They see one request at a time and make no plans, so \
         they are not ranked with the planners. Reserved: the most bytes held from the device over all propagations, on \
         simulated memory; its mean over the most bytes requested at once is geometric, shifted by 1 %. Saves: how much \
         less the best plan of the workload needs; the mean is that of the ratios. A pool serves the first propagation of \
         profile-guided, and its plan all later ones: one row has what it settles at, another the most that it held with \
         its first propagation.",
        rows,
        columns!(|row| [
            ("allocator", "Online allocator", CellValue::text(row.label)),
            ("workloads", "Workloads", CellValue::count(row.workloads)),
            ("mean_over_requests", "Reserved over requests", CellValue::share(row.over_requests)),
            ("mean_saving", "Best plan saves", CellValue::Share(row.mean)),
            ("least_saving", "Least", CellValue::Share(row.least)),
            ("most_saving", "Most", CellValue::Share(row.most.0)),
            ("most_workload", "Most on", CellValue::text(row.most.1)),
        ]),
    )
}

/// Online allocators by how close they come to the best plans.
pub(crate) struct Closeness {
    /// The number of workloads that all of them served.
    pub(crate) workloads: usize,
    /// Each allocator, and its reserved bytes over the height of the best plan, less 1; the closest first, never empty.
    pub(crate) ranked: Vec<(String, f64)>,
}

/// The names of contenders that know the future, or that bound the others: they are not compared.
const APART: [&str; 4] = ["profile-guided", "network-wise", "plan", "empty-loop"];

/// Compares the allocators on the recorded nets (without one, on all workloads) of all allocators that served at least half;
/// `None` without any.
pub(crate) fn allocator_closeness(model: &Model, replays: &Replays) -> Option<Closeness> {
    let is_online = |label: &str| !APART.iter().any(|apart| label.starts_with(apart));
    let mut held: BTreeMap<&str, BTreeMap<&str, f64>> = BTreeMap::new();
    let pairs = comparable_pairs(model, replays);
    let is_recorded = |pair: &&Pair<'_>| is_recorded(&pair.case.summary_row().workload);
    // Models were played on one or two pools alone, so they would crowd the others out.
    let has_nets = pairs.iter().any(|pair| is_recorded(&pair));
    let counts =
        |pair: &&Pair<'_>| pair.best > 0 && is_online(&pair.label) && (!has_nets || is_recorded(pair));
    for pair in pairs.iter().filter(counts) {
        let own = held.entry(pair.label.as_str()).or_default();
        own.insert(pair.case.workload(), as_real(pair.held) / as_real(pair.best) - 1.0);
    }
    let all: BTreeSet<&str> = held.values().flat_map(BTreeMap::keys).copied().collect();
    held.retain(|_, own| 2 * own.len() >= all.len());
    let mut common = all;
    common.retain(|workload| held.values().all(|own| own.contains_key(workload)));
    let mean = |own: &BTreeMap<&str, f64>| {
        let of_common = own.iter().filter(|(workload, _)| common.contains(*workload));
        // A pool may lie below a plan that is not optimal.
        shifted_geometric_mean(of_common.map(|(_, over)| Some(over.max(0.0))), GAP_SHIFT).mean
    };
    let mut ranked: Vec<(String, f64)> =
        held.iter().filter_map(|(label, own)| Some(((*label).to_owned(), mean(own)?))).collect();
    ranked.sort_by(|a, b| a.1.total_cmp(&b.1));
    (!ranked.is_empty()).then_some(Closeness { workloads: common.len(), ranked })
}

/// One pair for each held quantity of a case in tables; at least one.
fn held_pairs(case: &Case, best: u64) -> Vec<Pair<'_>> {
    case.held_bytes().into_iter().map(|(label, held)| Pair { case, label, held, best }).collect()
}

fn comparable_pairs<'c>(model: &Model, replays: &'c Replays) -> Vec<Pair<'c>> {
    let pair = |case: &'c Case| {
        let workload = model.workload_of(case.workload())?;
        let best = model.best_cell(workload)?.height?;
        (case.summary_row().performance.status == End::Complete).then(|| held_pairs(case, best))
    };
    replays.simulated_cases().filter_map(pair).flatten().collect()
}

/// What the best plans save of an allocator's memory.
struct Savings<'p> {
    label: &'p str,
    workloads: usize,
    over_requests: Option<f64>,
    mean: f64,
    least: f64,
    /// The most, and its workload.
    most: (f64, &'p str),
}

fn saving_summary<'p>(label: &'p str, pairs: &'p [Pair<'_>]) -> Option<Savings<'p>> {
    let own: Vec<&Pair<'_>> = pairs.iter().filter(|pair| pair.label == label).collect();
    let over_requests = shifted_geometric_mean(own.iter().map(|pair| pair.over_requests()), GAP_SHIFT).mean;
    let savings: Vec<(f64, &str)> =
        own.iter().filter_map(|pair| Some((pair.share_saved()?, pair.case.workload()))).collect();
    let kept = shifted_geometric_mean(savings.iter().map(|(saving, _)| Some(1.0 - saving)), 0.0).mean;
    let least = savings.iter().map(|(saving, _)| *saving).min_by(f64::total_cmp)?;
    let most = *savings.iter().max_by(|a, b| a.0.total_cmp(&b.0))?;
    Some(Savings { label, workloads: own.len(), over_requests, mean: 1.0 - kept?, least, most })
}

/// The online allocators that ran on a workload, those with the least reserved bytes first.
pub(crate) fn of_workload(model: &Model, workload: usize, replays: &Replays, name: &str) -> Table {
    let subject = &model.workloads[workload];
    let best = model.best_cell(workload).and_then(|cell| cell.height);
    let cases = replays.plain_cases().filter(|case| subject.key == case.workload());
    let mut pairs: Vec<Pair<'_>> =
        cases.filter_map(|case| held_pairs(case, best.unwrap_or(0)).into_iter().next()).collect();
    pairs.sort_by_key(|pair| pair.held);
    Table::from_rows(
        format!("{name}-allocators"),
        "Online allocators on this workload: they make no plans and are not ranked with the planners. Reserved: the most \
         bytes held from the device; settled: the most that is held in the last propagation. Over requests, and what \
         the best plan saves, are of the most reserved; of profile-guided, of what it settles at. Time: for one \
         propagation, of allocators that had served one before.",
        pairs,
        columns!(|pair| {
            let case = pair.case;
            let row = case.summary_row();
            [
                ("allocator", "Online allocator", CellValue::text(&case.series.label)),
                ("device", "Device", CellValue::text(case.place.name())),
                ("status", "Status", CellValue::text(row.performance.status.name())),
                ("reserved_bytes", "Reserved", CellValue::Bytes(row.performance.reserved_peak)),
                ("settled_bytes", "Settled", CellValue::bytes(case.settled_bytes())),
                ("over_requests", "Over requests", CellValue::share(pair.over_requests())),
                ("saving", "Best plan saves", CellValue::share(best.and(pair.share_saved()))),
                ("search_steps", "Search steps", CellValue::Count(row.performance.search_steps)),
                ("time_ns", "Time", CellValue::nanoseconds(case.propagation_ns().map(|time| time.median))),
                ("reason", "Remark", CellValue::text(&row.performance.reason)),
            ]
        }),
    )
}
