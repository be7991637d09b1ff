//! The summary and the page of gaps.

use maud::{Markup, html};
use planlab_results::audit::Finding;
use planlab_results::statistics::performance_profiles;
use planlab_results::{Record, Status};

use super::boards::limits_of;
use super::layout::plot;
use crate::ReportError;
use crate::drawing::Drawing;
use crate::format::{count, real};
use crate::model::Model;
use crate::plots::{gap, profile, time};
use crate::table::Table;

/// The tables of the summary.
pub(crate) struct Tables {
    pub(crate) failures: Table,
    pub(crate) leaderboard: Table,
    /// Online allocators, where there are any.
    pub(crate) allocators: Option<Table>,
    /// What was replayed, where something was.
    pub(crate) replayed: Option<String>,
    pub(crate) pairs: Option<Table>,
    pub(crate) gaps_by_group: Table,
    pub(crate) statuses: Table,
    pub(crate) machines: Table,
    pub(crate) workloads: Table,
}

/// A plot with its caption.
pub(crate) type Figure = (Drawing, String);

/// The body of the summary.
pub(crate) fn body(
    model: &Model,
    title: &str,
    findings: &[Finding],
    tables: &Tables,
    figures: &[Figure],
) -> Result<Markup, ReportError> {
    Ok(html! {
        h1 { (title) }
        p { (summary(model)) }
        @if let Some(replayed) = &tables.replayed { p { (replayed) } }
        h2 { "Unexplained failures" }
        (failures(findings, &tables.failures))
        h2 { "Leaderboard" }
        p.note { "By suite, with what was compared: " a href="boards.html" { "leaderboards" } "." }
        (tables.leaderboard.to_html(""))
        @if let Some(pairs) = &tables.pairs { (pairs.to_html("")) }
        @if let Some(allocators) = &tables.allocators {
            h3 { "Online allocators, beside the plans" }
            (allocators.to_html(""))
        }
        h2 { "Plots" }
        @for (drawing, caption) in figures {
            h3 { (drawing.title()) }
            (plot(drawing, caption)?)
        }
        p.note {
            "Memory and planning time of every net by batch: " a href="nets.html" { "nets" }
            ". Growth with the number of buffers: " a href="scale.html" { "scale" }
            ". What others published: " a href="claims.html" { "claims" } "."
        }
        h2 { "Gap by planner and workload" }
        p.note { "By single workload: " a href="gaps.html" { "gaps" } ". Every row: " a href="cells.html" { "all cells" } "." }
        (tables.gaps_by_group.to_html(""))
        h2 { "Workloads" }
        (tables.workloads.to_html(""))
        h2 { "What was run, and on what" }
        p { (limits(model)) }
        (tables.statuses.to_html(""))
        (tables.machines.to_html(""))
    })
}

/// The body of the page of nets.
pub(crate) fn nets_body(figures: &[(String, Figure)]) -> Result<Markup, ReportError> {
    Ok(html! {
        h1 { "Nets: memory and planning time by batch" }
        @if figures.is_empty() {
            p.note { "No workload is a net's: keys of nets look like " code { "route/net/train/b32" } "." }
        }
        @for (_, (drawing, caption)) in figures {
            h2 { (drawing.title()) }
            (plot(drawing, caption)?)
        }
    })
}

/// The body of the page of gaps.
pub(crate) fn gaps_body(table: &Table) -> Markup {
    html! {
        h1 { "Gap by workload and planner" }
        (table.to_html(""))
    }
}

fn failures(findings: &[Finding], table: &Table) -> Markup {
    let refuted = findings.iter().filter(|finding| finding.is_refutation()).count();
    let missing = findings.iter().filter(|finding| matches!(finding, Finding::MissingFile { .. })).count();
    html! {
        @if missing > 0 {
            p.alert {
                "The store is damaged: " (missing) " of the instances and plans that its rows name "
                "cannot be read. Their pictures are not here."
            }
        }
        @if refuted > 0 {
            p.alert { (refuted) " plans or bounds are false." }
        }
        @if table.rows.is_empty() {
            p.fine { "None: no planner crashed, was killed, ran out of memory or gave a false answer, and no row contradicts another." }
        } @else {
            (table.to_html(""))
        }
    }
}

fn summary(model: &Model) -> String {
    let answers = model.records().iter().filter(|record| record.status.is_answer()).count();
    let proved = model.records().iter().filter(|record| record.status == Status::Optimal).count();
    format!(
        "{} rows of {} cells: {} planners on {} workloads{}. {} rows have an answer, {} of them proved optimal.",
        count(model.records().len() as u64),
        count(model.cells.len() as u64),
        model.planners.len(),
        model.workloads.len(),
        suites(model.records()),
        count(answers as u64),
        count(proved as u64),
    )
}

fn suites(records: &[Record]) -> String {
    let names: std::collections::BTreeSet<&str> =
        records.iter().map(|record| record.suite.as_str()).filter(|suite| !suite.is_empty()).collect();
    let names: Vec<&str> = names.into_iter().collect();
    match names.len() {
        0 => String::new(),
        1 => format!(" (suite {})", names[0]),
        _ => format!(" (suites {})", names.join(", ")),
    }
}

fn limits(model: &Model) -> String {
    let mut limits: std::collections::BTreeSet<(Option<u64>, Option<u64>)> =
        std::collections::BTreeSet::new();
    limits.extend(model.records().iter().map(|record| (record.wall_limit_ns, record.memory_limit_bytes)));
    let texts: Vec<String> = limits.into_iter().map(|(wall, memory)| limits_of(wall, memory)).collect();
    format!("Limits of a cell: {}.", texts.join("; "))
}

/// Time against size, the profile of heights, gap by planner.
pub(crate) fn figures(model: &Model) -> Vec<Figure> {
    let drawings = [
        (
            gap::plot(&gaps(model)),
            "A dot for each workload; the bar marks the median. The scale is linear near 0 and logarithmic \
             far from it.",
        ),
        (
            profile::plot(&profiles(model)),
            "Dolan-Mor\u{e9} profile: the share of the workloads that a planner ran on, on which its height is within \
             a factor of the lowest height that any planner had there. In brackets: the share on which it has \
             the lowest. Of the planners that ran on at least half of the workloads that any ran on, the 14 best; \
             those that hand memory over in place are left out.",
        ),
        (
            time::plot("Planning time against size", &timings(model)),
            "Median of the samples of cells that ran alone. The lines are least-squares fits over workloads of \
             50 buffers and more; the legend gives their exponents.",
        ),
    ];
    drawings.into_iter().filter_map(|(drawing, caption)| Some((drawing?, caption.to_owned()))).collect()
}

fn gaps(model: &Model) -> Vec<gap::Gaps> {
    let mut all: Vec<gap::Gaps> = (0..model.planners.len())
        .map(|planner| {
            let cells: Vec<_> =
                (0..model.workloads.len()).flat_map(|workload| model.free_cells(planner, workload)).collect();
            let gap = |cell: &&crate::model::Cell| {
                Some((model.row(cell).workload.to_string(), model.answer_gap(cell)?.max(0.0)))
            };
            let gaps: Vec<(String, f64)> = cells.iter().filter_map(gap).collect();
            gap::Gaps { series: model.series(planner), failures: cells.len() - gaps.len(), gaps }
        })
        .filter(|row| !row.gaps.is_empty() || row.failures > 0)
        .collect();
    let mean = |row: &gap::Gaps| {
        let values = row.gaps.iter().map(|(_, gap)| Some(*gap));
        planlab_results::statistics::shifted_geometric_mean(values, super::tables::GAP_SHIFT)
            .mean
            .unwrap_or(f64::INFINITY)
    };
    all.sort_by(|a, b| mean(a).total_cmp(&mean(b)));
    all
}

/// Each planner's profile over the workloads that it ran on, against the best of all plain planners there.
fn profiles(model: &Model) -> Vec<(crate::plots::Series, planlab_results::statistics::Profile)> {
    let plain: Vec<usize> =
        (0..model.planners.len()).filter(|&planner| !model.planners[planner].in_place).collect();
    let cost = |planner: usize, workload: usize| model.height(planner, workload).map(real);
    let ran = |planner: usize| -> Vec<usize> {
        (0..model.workloads.len()).filter(|&workload| model.ran(planner, workload)).collect()
    };
    let best: Vec<Option<f64>> = (0..model.workloads.len())
        .map(|workload| plain.iter().filter_map(|&planner| cost(planner, workload)).min_by(f64::total_cmp))
        .collect();
    let most = plain.iter().map(|&planner| ran(planner).len()).max().unwrap_or(0);
    plain
        .into_iter()
        .filter(|&planner| 2 * ran(planner).len() >= most)
        .filter_map(|planner| {
            let ran = ran(planner);
            let own = ran.iter().map(|&workload| cost(planner, workload)).collect();
            let least = ran.iter().map(|&workload| best[workload]).collect();
            let profile = performance_profiles(&[own, least]).swap_remove(0);
            (profile.total > 0).then(|| (model.series(planner), profile))
        })
        .collect()
}

fn timings(model: &Model) -> Vec<time::Timings> {
    let times = |planner: usize| {
        let cells = model.planners[planner].cells.iter().map(|&cell| &model.cells[cell]);
        let timing = |cell: &crate::model::Cell| {
            let row = model.row(cell);
            if row.target_bytes.is_some() {
                return None;
            }
            Some(time::Timing {
                workload: row.workload.to_string(),
                buffers: real(row.buffers.max(1)),
                nanoseconds: cell.time_ns?.max(1.0),
                is_cut: row.is_cut(),
            })
        };
        (model.series(planner), cells.filter_map(timing).collect())
    };
    (0..model.planners.len()).map(times).collect()
}
