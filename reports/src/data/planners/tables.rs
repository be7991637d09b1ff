//! Makes the tables of a report from the model.

use std::collections::BTreeMap;

use planlab_results::audit::{Fault, Finding};
use planlab_results::queries::{CellRow, Failure, Gap, GroupGaps, HeightPairs, Leader};
use planlab_results::statistics::{Interval, bootstrap_interval, holm_adjustment, wilcoxon_probability};
use planlab_results::{Provenance, Status};

use crate::data::natural::natural;
use crate::data::planners::compare::planner_key;
use crate::data::planners::model::{Model, compare_leaders};
use crate::data::replays::Replays;
use crate::data::rows::group_by;
use crate::format::{as_real, count_real, format_count, format_nanoseconds};
use planlab_results::table::{CellValue, Column, Table, columns};

fn finding_row(finding: &Finding) -> Vec<CellValue> {
    let kind = match finding.fault {
        Fault::MissingFile | Fault::MissingShard => "missing file",
        _ if finding.is_refutation() => "refuted",
        _ => "inconsistent",
    };
    let mut row = vec![CellValue::text("(audit)"), CellValue::text(kind), CellValue::Count(1)];
    let reason = CellValue::text(finding.to_string());
    row.extend([CellValue::Missing, reason, CellValue::Missing, CellValue::Missing]);
    row
}

/// Failures that need an explanation, refutations first; rows that differ only in the workload are combined.
pub(crate) fn failure_table(failed: &[Failure], replays: &Replays, findings: &[Finding]) -> Table {
    let mut table = Table::for_page(
        "failures",
        "Failures: planners that crashed, were killed, ran out of memory or gave a false answer, and rows \
         that contradict each other. Rows of one kind are one line.",
        &[
            ("planner", "Planner"),
            ("status", "Status"),
            ("rows", "Rows"),
            ("workload", "First workload"),
            ("reason", "Reason"),
            ("exit", "Exit"),
            ("stderr", "Last line of stderr"),
        ],
    );
    // Refuted rows have rows of their own below.
    let audited = findings.iter().filter(|finding| finding.fault != Fault::Refuted);
    audited.for_each(|finding| table.push(finding_row(finding)));
    let groups = group_by(failed, |failure| {
        (!failure.status.is_lie(), failure.planner.as_str(), failure.status, failure.reason.as_str())
    });
    for ((_, planner, status, reason), failures) in groups {
        let rows = failures.iter().map(|failure| failure.rows).sum();
        let Some(first) = failures.into_iter().min_by(|a, b| natural(&a.workload, &b.workload)) else {
            continue;
        };
        table.push(vec![
            CellValue::text(planner),
            CellValue::text(status.name()),
            CellValue::Count(rows),
            CellValue::text(&first.workload),
            CellValue::text(reason),
            CellValue::text(describe_exit(first.signal, first.exit_code)),
            CellValue::text(last_line(&first.stderr_tail)),
        ]);
    }
    for case in &replays.cases {
        for (reason, rows) in case.failures_by_reason() {
            table.push(vec![
                CellValue::text(format!("{} on {}", case.series.label, case.place.name())),
                CellValue::text("failed"),
                CellValue::count(rows),
                CellValue::text(case.workload()),
                CellValue::text(reason),
                CellValue::Missing,
                CellValue::Missing,
            ]);
        }
    }
    table
}

/// The last non-blank line of a child's output.
pub(crate) fn last_line(text: &str) -> &str {
    text.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("")
}

/// The abnormal end of a child: its signal or its exit code.
pub(crate) fn describe_exit(signal: Option<i32>, exit_code: Option<i32>) -> String {
    match (signal, exit_code) {
        (Some(signal), _) => format!("signal {signal}"),
        (None, None | Some(0)) => String::new(),
        (None, Some(code)) => format!("code {code}"),
    }
}

pub(crate) fn status_table(model: &Model) -> Table {
    let is_used = |status: &Status| model.all.statuses.keys().any(|(_, own)| own == status);
    let used: Vec<Status> = Status::ALL.into_iter().filter(is_used).collect();
    let mut table = Table::for_page("statuses", "Rows by planner and status.", &[("planner", "Planner")]);
    table.columns.extend(used.iter().map(|s| Column { key: s.name().into(), title: s.name().into() }));
    for (number, planner) in model.all.planners.iter().enumerate() {
        let mut row = vec![CellValue::text(&planner.label)];
        let rows = |status: &Status| model.all.statuses.get(&(number, *status)).copied();
        row.extend(used.iter().map(|status| CellValue::or_missing(rows(status).map(CellValue::Count))));
        table.push(row);
    }
    table
}

pub(crate) fn machine_table(machines: &[(Provenance, String, u64)]) -> Table {
    let mut groups: BTreeMap<[String; 11], u64> = BTreeMap::new();
    for (p, mechanism, rows) in machines {
        let dirty = if p.git_dirty { " (changed)" } else { "" };
        let key = [
            p.host.clone(),
            p.cpu.clone(),
            p.cores.to_string(),
            p.kernel.clone(),
            p.governor.clone(),
            p.turbo.clone(),
            p.concurrency.to_string(),
            format!("{}{dirty}", p.git_commit),
            p.rustc.clone(),
            p.flags.clone(),
            mechanism.clone(),
        ];
        *groups.entry(key).or_default() += rows;
    }
    Table::from_rows(
        "machines",
        "Machines and builds. Times compare only between rows of one host.",
        groups.into_iter().map(|(key, rows)| (key.map(CellValue::Text), rows)),
        columns!(|(key, rows)| {
            let [host, cpu, cores, kernel, governor, turbo, concurrency, commit, rustc, flags, mechanism] =
                key;
            [
                ("host", "Host", host),
                ("rows", "Rows", CellValue::Count(rows)),
                ("cpu", "CPU", cpu),
                ("cores", "Cores", cores),
                ("kernel", "Kernel", kernel),
                ("governor", "Governor", governor),
                ("turbo", "Turbo", turbo),
                ("concurrency", "Side by side", concurrency),
                ("commit", "Commit", commit),
                ("rustc", "Compiler", rustc),
                ("flags", "Build", flags),
                ("limits_by", "Limits by", mechanism),
            ]
        }),
    )
}

pub(crate) fn leaderboard_table(model: &Model, planner: impl Fn(usize) -> CellValue) -> Table {
    let mut leaders: Vec<&Leader> = model.leaders.iter().collect();
    leaders.sort_by(|a, b| compare_leaders(a, b));
    Table::from_rows(
        "leaderboard",
        "Planners that ran on the most workloads come first, of these the one with the least mean gap. Gap: height \
         over the best bound that any planner proved, less 1; its mean is geometric, shifted by 1 %, over the \
         number of cells beside it. A cell without an answer counts with a gap of 100 % \
         and with its time limit; no gap counts for more. Optimal: at that bound; proved: the planner itself proved it. Time: geometric mean \
          of the medians, shifted by 1 ms, of cells that ran alone. \u{21c4}: hands memory over in place where the \
          instance permits it; the others never do, and their gap says so. Runs at a fixed capacity are left out.",
        leaders,
        columns!(|of| {
            let gap = of.mean_gap();
            let time = of.mean_time();
            [
                ("planner", "Planner", planner(of.planner_number)),
                ("workloads", "Workloads", CellValue::count(of.workloads)),
                ("cells", "Cells", CellValue::count(of.cells)),
                ("answers", "Answers", CellValue::count(of.answers)),
                ("optimal", "Optimal", CellValue::count(of.optimal)),
                ("proved", "Proved", CellValue::count(of.proved)),
                ("mean_gap", "Mean gap", CellValue::share(gap.mean)),
                ("gap_count", "of", CellValue::count(gap.count)),
                ("no_answer", "No answer", CellValue::count(of.unanswered)),
                ("failures", "Failures", CellValue::count(of.failures)),
                ("mean_time_ns", "Mean time", CellValue::nanoseconds(time.mean)),
                ("time_count", "of", CellValue::count(time.count)),
            ]
        }),
    )
}

/// Each planner compared with the reference, on the workloads for which both have a height.
pub(crate) fn pair_table(model: &Model) -> Option<Table> {
    let (reference, pairs) = model.pairs.as_ref()?;
    let name = &model.all.planners[*reference].label;
    let mut logs: Vec<(usize, Vec<f64>)> =
        pairs.iter().map(|pairs| (pairs.planner_number, log_ratios(pairs))).collect();
    let mean = |logs: &[f64]| logs.iter().sum::<f64>() / count_real(logs.len());
    logs.sort_by(|a, b| mean(&a.1).total_cmp(&mean(&b.1)));
    let p: Vec<f64> = logs.iter().map(|(_, logs)| wilcoxon_probability(logs)).collect();
    let table = Table::from_rows(
        "pairs",
        format!(
            "Every planner against {name} on the workloads for which both have a plan. Ratio: geometric mean of \
             the heights' ratios, with its 95 % bootstrap interval over workloads; above 1 is worse than \
             {name}. p: Wilcoxon signed-rank test of the log ratios, adjusted by Holm."
        ),
        logs.iter().zip(holm_adjustment(&p)),
        columns!(|((planner, logs), p)| {
            let interval = bootstrap_interval(logs, mean, 0.95, 2000, 1);
            let end = |of: fn(Interval) -> f64| {
                CellValue::or_missing(interval.map(|i| CellValue::Number(of(i).exp())))
            };
            let counted =
                |keep: fn(f64) -> bool| CellValue::count(logs.iter().filter(|log| keep(**log)).count());
            [
                ("planner", "Planner", CellValue::text(&model.all.planners[*planner].label)),
                ("workloads", "Workloads", CellValue::count(logs.len())),
                ("lower", "Lower", counted(|log| log < 0.0)),
                ("equal", "Equal", counted(|log| log == 0.0)),
                ("higher", "Higher", counted(|log| log > 0.0)),
                ("ratio", "Ratio", CellValue::Number(mean(logs).exp())),
                ("ratio_low", "from", end(|interval| interval.low)),
                ("ratio_high", "to", end(|interval| interval.high)),
                ("p", "p", CellValue::Number(p)),
            ]
        }),
    );
    if table.rows.is_empty() { None } else { Some(table) }
}

fn log_ratios(pairs: &HeightPairs) -> Vec<f64> {
    let both = pairs.own.iter().zip(&pairs.other);
    both.map(|(&own, &other)| (as_real(own) / as_real(other)).ln()).collect()
}

pub(crate) fn gaps_by_group(model: &Model) -> Table {
    let mut table = heat_table(
        model,
        "gaps-by-group",
        "Mean gap (geometric, shifted by 1 %) by group of workloads and planner. A cell without an answer counts with a \
         gap of 100 %, and no gap for more; the tooltip has their number.",
        "Workloads",
    );
    for group in model.group_gaps.chunk_by(|a, b| a.workload_group == b.workload_group) {
        let values = group.iter().map(|of| (of.planner_number, mean_gap(of)));
        table.push(heat_row(model, CellValue::text(&group[0].workload_group), values));
    }
    table
}

/// A table with some of the planners' columns, given by their indices, in their order; its titles are their keys and
/// what `remark` says of a planner.
pub(crate) fn with_planners(table: &Table, planners: &[usize], remark: impl Fn(usize) -> String) -> Table {
    let chosen: Vec<usize> = std::iter::once(0).chain(planners.iter().map(|planner| planner + 1)).collect();
    let mut table = with_columns(table, &chosen);
    for (column, &planner) in table.columns.iter_mut().skip(1).zip(planners) {
        let mark = if column.title.ends_with('\u{21c4}') { " \u{21c4}" } else { "" };
        column.title = format!("{}{mark}{}", planner_key(&column.title), remark(planner));
    }
    table
}

/// A table without files that has some of a table's columns, given by their indices.
pub(crate) fn with_columns(table: &Table, chosen: &[usize]) -> Table {
    let row = |row: &Vec<CellValue>| chosen.iter().map(|&column| row[column].clone()).collect();
    Table {
        name: String::new(),
        caption: table.caption.clone(),
        columns: chosen.iter().map(|&column| table.columns[column].clone()).collect(),
        rows: table.rows.iter().map(row).collect(),
        turned: table.turned,
    }
}

/// The table without those of the columns with these keys that have no value.
pub(crate) fn without_empty(mut table: Table, keys: &[&str]) -> Table {
    for at in (0..table.columns.len()).rev() {
        let is_empty = table.rows.iter().all(|row| row[at] == CellValue::Missing);
        if is_empty && keys.contains(&table.columns[at].key.as_str()) {
            table.columns.remove(at);
            table.rows.iter_mut().for_each(|row| drop(row.remove(at)));
        }
    }
    table
}

fn heat_table(model: &Model, name: &str, caption: &str, first: &str) -> Table {
    let mut table = Table::for_page(name, caption, &[("workload", first)]);
    table.turned = true;
    let planners = model.all.planners.iter().enumerate();
    table.columns.extend(
        planners
            .map(|(number, planner)| Column { key: planner.label.clone(), title: model.marked_name(number) }),
    );
    table
}

/// The first value, followed by the values of some planners.
fn heat_row(
    model: &Model,
    first: CellValue,
    values: impl Iterator<Item = (usize, CellValue)>,
) -> Vec<CellValue> {
    let mut row = vec![CellValue::Missing; model.all.planners.len() + 1];
    row[0] = first;
    values.for_each(|(planner, value)| row[planner + 1] = value);
    row
}

fn mean_gap(of: &GroupGaps) -> CellValue {
    let mean = of.shifted_mean();
    let unanswered = of.cells - of.answers;
    let remark = format!("{} answers, {unanswered} without", of.answers);
    match mean.mean.filter(|_| of.answers > 0) {
        Some(gap) => CellValue::Heat(gap.max(0.0), remark),
        None => CellValue::text(format!("{unanswered} \u{2717}")),
    }
}

pub(crate) fn gap_table(model: &Model, page: impl Fn(usize) -> String) -> Table {
    let mut table = heat_table(
        model,
        "gaps",
        "Gap by workload and planner: height over the best bound that any planner proved, less 1. Without a plan, \
         the status.",
        "Workload",
    );
    // A workload whose cells all have a given capacity gets a row without a gap.
    for (number, workload) in model.workloads.iter().enumerate() {
        let from = model.gaps.partition_point(|gap| gap.workload_number < number);
        let own = model.gaps[from..].iter().take_while(|gap| gap.workload_number == number);
        let first = CellValue::Link(workload.key.to_string(), page(number));
        table.push(heat_row(model, first, own.map(|gap| (gap.planner_number, gap_of(gap)))));
    }
    table
}

fn gap_of(of: &Gap) -> CellValue {
    match (of.answer_gap, of.height) {
        (Some(gap), Some(height)) => CellValue::Heat(gap, format!("{} bytes", format_count(height))),
        _ => CellValue::text(of.status.name()),
    }
}

pub(crate) fn workload_table(model: &Model, page: impl Fn(usize) -> String) -> Table {
    Table::from_rows(
        "workloads",
        "Workloads, each with its best plan, of equally low ones the quickest; runs at a fixed capacity are left out.",
        model.workloads.iter().enumerate(),
        columns!(|(number, workload)| {
            let best = model.best_cell(number);
            let label = best.map(|cell| &*model.planner_of_cell(cell).label);
            [
                ("workload", "Workload", CellValue::Link(workload.key.to_string(), page(number))),
                ("buffers", "Buffers", CellValue::Count(workload.buffers)),
                ("load_bytes", "Load", CellValue::Bytes(workload.load)),
                ("height_bytes", "Best height", CellValue::bytes(best.and_then(|cell| cell.height))),
                ("gap", "Gap", CellValue::share(best.and_then(|cell| cell.gap))),
                ("planner", "Planner", CellValue::or_missing(label.map(CellValue::text))),
                ("cells", "Cells", CellValue::count(workload.cells.len())),
            ]
        }),
    )
}

/// The cells of one workload, the lowest height first.
pub(crate) fn cells_of(
    model: &Model,
    workload: usize,
    name: &str,
    page: impl Fn(&CellRow) -> Option<String>,
) -> Table {
    let mut cells: Vec<&CellRow> = model.cells_of(workload).collect();
    cells.sort_by_key(|cell| cell.height.unwrap_or(u64::MAX));
    Table::from_rows(
        name,
        "Cells of this workload, the lowest height first. Times are medians; those of cells that may have run beside \
         others are in brackets.",
        cells,
        columns!(|cell| {
            let label = model.planner_of_cell(cell).label.clone();
            let mark = if cell.hand_overs > 0 { " \u{21c4}" } else { "" };
            let name = format!("{label}{mark}");
            let planner =
                page(cell).map_or_else(|| CellValue::text(&name), |page| CellValue::Link(name.clone(), page));
            [
                ("planner", "Planner", planner),
                ("seed", "Seed", CellValue::Count(cell.seed)),
                ("status", "Status", CellValue::text(cell.status.name())),
                ("height_bytes", "Height", CellValue::bytes(cell.height)),
                ("bound_bytes", "Bound", CellValue::Bytes(cell.best_bound)),
                ("gap", "Gap", CellValue::share(cell.gap)),
                ("fragmentation", "Fragmentation", CellValue::share(cell.fragmentation())),
                ("time", "Time", time_value(cell)),
                ("peak_rss_bytes", "Memory", CellValue::bytes(cell.peak_rss_bytes)),
                ("reason", "Remark", CellValue::text(row_remark(cell.target_bytes, &cell.reason))),
            ]
        }),
    )
}

fn time_value(cell: &CellRow) -> CellValue {
    match (cell.time_ns, cell.median_ns) {
        (Some(time), _) => CellValue::Nanoseconds(time),
        (None, Some(time)) => CellValue::text(format!("({})", format_nanoseconds(as_real(time)))),
        (None, None) => CellValue::Missing,
    }
}

pub(crate) fn row_remark(target_bytes: Option<u64>, reason: &str) -> String {
    let target = target_bytes.map(|target| format!("capacity {target} bytes"));
    let parts = [target.as_deref().unwrap_or_default(), reason];
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("; ")
}
