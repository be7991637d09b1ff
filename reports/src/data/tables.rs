//! Makes the tables of a report from the model.

use std::collections::BTreeMap;

use planlab_results::audit::Finding;
use planlab_results::queries::{CellRow, Failure, Gap, GroupGaps, HeightPairs, Leader};
use planlab_results::statistics::{bootstrap, holm, wilcoxon};
use planlab_results::{Provenance, Status};

use crate::data::compare::key;
use crate::data::model::{Model, natural, order};
use crate::data::replays::Replays;
use crate::format::{count, count_real, nanoseconds, real};
use planlab_results::table::{Column, Table, Value};

/// Failures that need an explanation, refutations first; rows that differ only in the workload are combined.
pub(crate) fn failures(failed: &[Failure], replays: &Replays, findings: &[Finding]) -> Table {
    let mut table = Table::named(
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
    for finding in findings {
        // Rows with such a status have rows of their own below.
        if !matches!(finding, Finding::Refuted { .. }) {
            let kind = match finding {
                Finding::MissingFile { .. } | Finding::MissingShard(_) => "missing file",
                finding if finding.is_refutation() => "refuted",
                _ => "inconsistent",
            };
            let mut row = vec![Value::text("(audit)"), Value::text(kind), Value::Count(1)];
            row.extend([Value::Missing, Value::text(finding.to_string()), Value::Missing, Value::Missing]);
            table.push(row);
        }
    }
    let mut groups: BTreeMap<(bool, &str, Status, &str), Vec<&Failure>> = BTreeMap::new();
    for failure in failed {
        let key =
            (!failure.status.is_lie(), failure.planner.as_str(), failure.status, failure.reason.as_str());
        groups.entry(key).or_default().push(failure);
    }
    for ((_, planner, status, reason), failures) in groups {
        let rows = failures.iter().map(|failure| failure.rows).sum();
        let Some(first) = failures.into_iter().min_by(|a, b| natural(&a.workload, &b.workload)) else {
            continue;
        };
        table.push(vec![
            Value::text(planner),
            Value::text(status.name()),
            Value::Count(rows),
            Value::text(&first.workload),
            Value::text(reason),
            Value::text(exit(first.signal, first.exit_code)),
            Value::text(last_line(&first.stderr_tail)),
        ]);
    }
    for case in &replays.cases {
        for (reason, rows) in case.failures() {
            table.push(vec![
                Value::text(format!("{} on {}", case.series.label, case.place().name())),
                Value::text("failed"),
                Value::count(rows),
                Value::text(case.workload()),
                Value::text(reason),
                Value::Missing,
                Value::Missing,
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
pub(crate) fn exit(signal: Option<i32>, exit_code: Option<i32>) -> String {
    match (signal, exit_code) {
        (Some(signal), _) => format!("signal {signal}"),
        (None, None | Some(0)) => String::new(),
        (None, Some(code)) => format!("code {code}"),
    }
}

/// Rows by planner and status.
pub(crate) fn statuses(model: &Model) -> Table {
    let is_used = |status: &Status| model.all.statuses.keys().any(|(_, own)| own == status);
    let used: Vec<Status> = Status::ALL.into_iter().filter(is_used).collect();
    let mut table = Table::named("statuses", "Rows by planner and status.", &[("planner", "Planner")]);
    table.columns.extend(used.iter().map(|s| Column { key: s.name().into(), title: s.name().into() }));
    for (number, planner) in model.all.planners.iter().enumerate() {
        let mut row = vec![Value::text(&planner.label)];
        let rows = |status: &Status| model.all.statuses.get(&(number, *status)).copied();
        row.extend(used.iter().map(|status| Value::or_missing(rows(status).map(Value::Count))));
        table.push(row);
    }
    table
}

/// The machines and builds of the rows.
pub(crate) fn machines(machines: &[(Provenance, String, u64)]) -> Table {
    let mut table = Table::named(
        "machines",
        "Machines and builds. Times compare only between rows of one host.",
        &[
            ("host", "Host"),
            ("rows", "Rows"),
            ("cpu", "CPU"),
            ("cores", "Cores"),
            ("kernel", "Kernel"),
            ("governor", "Governor"),
            ("turbo", "Turbo"),
            ("concurrency", "Side by side"),
            ("commit", "Commit"),
            ("rustc", "Compiler"),
            ("flags", "Build"),
            ("limits_by", "Limits by"),
        ],
    );
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
    for (key, rows) in groups {
        let mut values: Vec<Value> = key.into_iter().map(Value::Text).collect();
        values.insert(1, Value::Count(rows));
        table.push(values);
    }
    table
}

/// The results of each planner over all its cells.
pub(crate) fn leaderboard(model: &Model, planner: impl Fn(usize) -> Value) -> Table {
    let mut table = Table::named(
        "leaderboard",
        "Planners that ran on the most workloads come first, of these the one with the least mean gap. Gap: height \
         over the best bound that any planner proved, less 1; its mean is geometric, shifted by 1 %, over the \
         number of cells beside it. A cell without an answer counts with a gap of 100 %, or the largest on its workload, \
         and with its time limit. Optimal: at that bound; proved: the planner itself proved it. Time: geometric mean \
          of the medians, shifted by 1 ms, of cells that ran alone. \u{21c4}: hands memory over in place where the \
          instance permits it; the others never do, and their gap says so. Runs at a fixed capacity are left out.",
        &[
            ("planner", "Planner"),
            ("workloads", "Workloads"),
            ("cells", "Cells"),
            ("answers", "Answers"),
            ("optimal", "Optimal"),
            ("proved", "Proved"),
            ("mean_gap", "Mean gap"),
            ("gap_count", "of"),
            ("no_answer", "No answer"),
            ("failures", "Failures"),
            ("mean_time_ns", "Mean time"),
            ("time_count", "of"),
        ],
    );
    let mut leaders: Vec<&Leader> = model.leaders.iter().collect();
    leaders.sort_by(|a, b| order(a, b));
    table.rows.extend(leaders.into_iter().map(|of| leader(planner(of.planner_number), of)));
    table
}

fn leader(planner: Value, of: &Leader) -> Vec<Value> {
    let (gap, time) = (of.mean_gap(), of.mean_time());
    vec![
        planner,
        Value::count(of.workloads),
        Value::count(of.cells),
        Value::count(of.answers),
        Value::count(of.optimal),
        Value::count(of.proved),
        Value::or_missing(gap.mean.map(Value::Share)),
        Value::count(gap.count),
        Value::count(of.unanswered),
        Value::count(of.failures),
        Value::or_missing(time.mean.map(Value::Nanoseconds)),
        Value::count(time.count),
    ]
}

/// Each planner compared with the reference, on the workloads for which both have a height.
pub(crate) fn pairs(model: &Model) -> Option<Table> {
    let (reference, pairs) = model.pairs.as_ref()?;
    let name = &model.all.planners[*reference].label;
    let mut table = Table::named(
        "pairs",
        format!(
            "Every planner against {name} on the workloads for which both have a plan. Ratio: geometric mean of \
             the heights' ratios, with its 95 % bootstrap interval over workloads; above 1 is worse than \
             {name}. p: Wilcoxon signed-rank test of the log ratios, adjusted by Holm."
        ),
        &[
            ("planner", "Planner"),
            ("workloads", "Workloads"),
            ("lower", "Lower"),
            ("equal", "Equal"),
            ("higher", "Higher"),
            ("ratio", "Ratio"),
            ("ratio_low", "from"),
            ("ratio_high", "to"),
            ("p", "p"),
        ],
    );
    let mut logs: Vec<(usize, Vec<f64>)> =
        pairs.iter().map(|pairs| (pairs.planner_number, log_ratios(pairs))).collect();
    let mean = |logs: &[f64]| logs.iter().sum::<f64>() / count_real(logs.len());
    logs.sort_by(|a, b| mean(&a.1).total_cmp(&mean(&b.1)));
    let p: Vec<f64> = logs.iter().map(|(_, logs)| wilcoxon(logs).p).collect();
    for ((planner, logs), p) in logs.iter().zip(holm(&p)) {
        table.push(pair(&model.all.planners[*planner].label, logs, p));
    }
    if table.rows.is_empty() { None } else { Some(table) }
}

fn log_ratios(pairs: &HeightPairs) -> Vec<f64> {
    let both = pairs.own.iter().zip(&pairs.other);
    both.map(|(&own, &other)| (real(own) / real(other)).ln()).collect()
}

fn pair(label: &str, logs: &[f64], p: f64) -> Vec<Value> {
    let mean = |logs: &[f64]| logs.iter().sum::<f64>() / count_real(logs.len());
    let interval = bootstrap(logs, mean, 0.95, 2000, 1);
    let counted = |keep: fn(f64) -> bool| Value::count(logs.iter().filter(|log| keep(**log)).count());
    vec![
        Value::text(label),
        Value::count(logs.len()),
        counted(|log| log < 0.0),
        counted(|log| log == 0.0),
        counted(|log| log > 0.0),
        Value::Number(mean(logs).exp()),
        Value::or_missing(interval.map(|interval| Value::Number(interval.low.exp()))),
        Value::or_missing(interval.map(|interval| Value::Number(interval.high.exp()))),
        Value::Number(p),
    ]
}

/// Mean gaps by group of workloads and planner.
pub(crate) fn gaps_by_group(model: &Model) -> Table {
    let mut table = heat_table(
        model,
        "gaps-by-group",
        "Mean gap (geometric, shifted by 1 %) by group of workloads and planner. A cell without an answer counts with a \
         gap of 100 %, or the largest on its workload; the tooltip has their number.",
        "Workloads",
    );
    for group in model.group_gaps.chunk_by(|a, b| a.workload_group == b.workload_group) {
        let values = group.iter().map(|of| (of.planner_number, mean_gap(of)));
        table.push(heat_row(model, Value::text(&group[0].workload_group), values));
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
        column.title = format!("{}{mark}{}", key(&column.title), remark(planner));
    }
    table
}

/// A table without files that has some of a table's columns, given by their indices.
pub(crate) fn with_columns(table: &Table, chosen: &[usize]) -> Table {
    let row = |row: &Vec<Value>| chosen.iter().map(|&column| row[column].clone()).collect();
    Table {
        name: String::new(),
        caption: table.caption.clone(),
        columns: chosen.iter().map(|&column| table.columns[column].clone()).collect(),
        rows: table.rows.iter().map(row).collect(),
        turned: table.turned,
    }
}

fn heat_table(model: &Model, name: &str, caption: &str, first: &str) -> Table {
    let mut table = Table::named(name, caption, &[("workload", first)]);
    table.turned = true;
    let planners = model.all.planners.iter().enumerate();
    table.columns.extend(
        planners.map(|(number, planner)| Column { key: planner.label.clone(), title: model.marked(number) }),
    );
    table
}

/// The first value, followed by the values of some planners.
fn heat_row(model: &Model, first: Value, values: impl Iterator<Item = (usize, Value)>) -> Vec<Value> {
    let mut row = vec![Value::Missing; model.all.planners.len() + 1];
    row[0] = first;
    values.for_each(|(planner, value)| row[planner + 1] = value);
    row
}

fn mean_gap(of: &GroupGaps) -> Value {
    let mean = of.mean();
    let unanswered = of.cells - of.answers;
    let remark = format!("{} answers, {unanswered} without", of.answers);
    match mean.mean.filter(|_| of.answers > 0) {
        Some(gap) => Value::Heat(gap.max(0.0), remark),
        None => Value::text(format!("{unanswered} \u{2717}")),
    }
}

/// The gap of each workload and planner.
pub(crate) fn gaps(model: &Model, page: impl Fn(usize) -> String) -> Table {
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
        let first = Value::Link(workload.key.to_string(), page(number));
        table.push(heat_row(model, first, own.map(|gap| (gap.planner_number, gap_of(gap)))));
    }
    table
}

fn gap_of(of: &Gap) -> Value {
    match (of.answer_gap, of.height) {
        (Some(gap), Some(height)) => Value::Heat(gap, format!("{} bytes", count(height))),
        _ => Value::text(of.status.name()),
    }
}

/// All workloads with their best plan.
pub(crate) fn workloads(model: &Model, page: impl Fn(usize) -> String) -> Table {
    let mut table = Table::named(
        "workloads",
        "Workloads, each with its best plan, of equally low ones the quickest; runs at a fixed capacity are left out.",
        &[
            ("workload", "Workload"),
            ("buffers", "Buffers"),
            ("load_bytes", "Load"),
            ("height_bytes", "Best height"),
            ("gap", "Gap"),
            ("planner", "Planner"),
            ("cells", "Cells"),
        ],
    );
    for (number, workload) in model.workloads.iter().enumerate() {
        let best = model.best_cell(number);
        table.push(vec![
            Value::Link(workload.key.to_string(), page(number)),
            Value::Count(workload.buffers),
            Value::Bytes(workload.load),
            Value::or_missing(best.and_then(|cell| cell.height).map(Value::Bytes)),
            Value::or_missing(best.and_then(|cell| cell.gap).map(Value::Share)),
            Value::or_missing(best.map(|cell| Value::text(&model.planner(cell).label))),
            Value::count(workload.cells.len()),
        ]);
    }
    table
}

/// The cells of one workload, the lowest height first.
pub(crate) fn cells_of(
    model: &Model,
    workload: usize,
    name: &str,
    page: impl Fn(&CellRow) -> Option<String>,
) -> Table {
    let mut table = Table::named(
        name,
        "Cells of this workload, the lowest height first. Times are medians; those of cells that may have run beside \
         others are in brackets.",
        &[
            ("planner", "Planner"),
            ("seed", "Seed"),
            ("status", "Status"),
            ("height_bytes", "Height"),
            ("bound_bytes", "Bound"),
            ("gap", "Gap"),
            ("fragmentation", "Fragmentation"),
            ("time", "Time"),
            ("peak_rss_bytes", "Memory"),
            ("reason", "Remark"),
        ],
    );
    let mut cells: Vec<&CellRow> = model.cells_of(workload).collect();
    cells.sort_by_key(|cell| cell.height.unwrap_or(u64::MAX));
    for cell in cells {
        let label = model.planner(cell).label.clone();
        let mark = if cell.hand_overs > 0 { " \u{21c4}" } else { "" };
        table.push(vec![
            match page(cell) {
                Some(page) => Value::Link(format!("{label}{mark}"), page),
                None => Value::text(format!("{label}{mark}")),
            },
            Value::Count(cell.seed),
            Value::text(cell.status.name()),
            Value::or_missing(cell.height.map(Value::Bytes)),
            Value::Bytes(cell.best_bound),
            Value::or_missing(cell.gap.map(Value::Share)),
            Value::or_missing(cell.fragmentation().map(Value::Share)),
            time(cell),
            Value::or_missing(cell.peak_rss_bytes.map(Value::Bytes)),
            Value::text(remark(cell.target_bytes, &cell.reason)),
        ]);
    }
    table
}

fn time(cell: &CellRow) -> Value {
    match (cell.time_ns, cell.median_ns) {
        (Some(time), _) => Value::Nanoseconds(time),
        (None, Some(time)) => Value::text(format!("({})", nanoseconds(real(time)))),
        (None, None) => Value::Missing,
    }
}

/// The reason of a row, and its given capacity.
pub(crate) fn remark(target_bytes: Option<u64>, reason: &str) -> String {
    let target = target_bytes.map(|target| format!("capacity {target} bytes"));
    let parts = [target.as_deref().unwrap_or_default(), reason];
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("; ")
}
