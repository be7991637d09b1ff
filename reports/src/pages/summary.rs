//! What was run, who did best, and what went wrong?

use std::collections::BTreeSet;

use planlab_results::Status;
use planlab_results::audit::Finding;
use planlab_results::statistics::performance_profiles;

use super::boards::limits_of;
use super::nets;
use crate::data::model::Model;
use crate::data::{pools, tables};
use crate::figures::Drawing;
use crate::figures::{gap, profile, time};
use crate::format::{count, real};
use crate::site::Site;
use crate::site::page::{Page, Piece, Text};

pub(super) fn page(site: &Site<'_>) -> Option<Page> {
    let conditions = [
        Piece::heading("What was run, and on what"),
        Piece::text(limits(site.model)),
        Piece::Table(tables::statuses(site.model)),
        Piece::Table(tables::machines(&site.model.machines)),
    ];
    let page = Page::new("index.html", &site.options.title)
        .named("Summary")
        .with([Piece::text(summary(site.model))])
        .with(pools::sentence(site.replays).map(Piece::text))
        .with(damage(site))
        .table_or(tables::failures(&site.model.failures, site.replays, site.findings), || {
            Piece::fine(
                "None: no planner crashed, was killed, ran out of memory or gave a false answer, and no row \
                 contradicts another.",
            )
        });
    Some(page.with(leaders(site)).with(plots(site)).with(gaps_and_workloads(site)).with(conditions))
}

/// What is wrong with the store and with what it holds.
fn damage(site: &Site<'_>) -> Vec<Piece> {
    let of = |kind: fn(&Finding) -> bool| site.findings.iter().filter(|finding| kind(finding)).count();
    let refuted = of(Finding::is_refutation);
    let missing = of(|finding| matches!(finding, Finding::MissingFile { .. }));
    let mut pieces = vec![Piece::heading("Unexplained failures")];
    if missing > 0 {
        pieces.push(Piece::alert(format!(
            "The store is damaged: {missing} of the instances and plans that its rows name cannot be read. Their \
             pictures are not here."
        )));
    }
    if refuted > 0 {
        pieces.push(Piece::alert(format!("{refuted} plans or bounds are false.")));
    }
    pieces
}

fn leaders(site: &Site<'_>) -> Vec<Piece> {
    let model = site.model;
    let boards =
        Text::from("By suite, with what was compared: ").link("leaderboards", "boards.html").plain(".");
    let mut pieces =
        vec![Piece::heading("Leaderboard"), Piece::note(boards), Piece::Table(tables::leaderboard(model))];
    pieces.extend(tables::pairs(model).map(Piece::Table));
    if let Some(allocators) = pools::summary(model, site.replays) {
        pieces.push(Piece::Subheading("Online allocators, beside the plans".to_owned()));
        pieces.push(Piece::Table(allocators));
    }
    pieces
}

fn plots(site: &Site<'_>) -> Vec<Piece> {
    let mut pieces = vec![Piece::heading("Plots")];
    pieces.extend(figures(site.model).into_iter().map(|(drawing, caption)| Piece::figure(drawing, caption)));
    // The nets whose own pool is known are compared with it here; all are on their page.
    let known = site.options.totals.iter().filter(|(_, total)| total.pool.is_some());
    let routes: BTreeSet<&str> = known.filter_map(|(key, _)| key.split('/').next()).collect();
    let nets = nets::figures(site).into_iter().filter(|(route, _)| routes.contains(route.as_str()));
    pieces.extend(nets.map(|(_, (drawing, caption))| Piece::figure(drawing, caption)));
    let more = Text::from("Memory and planning time of every net by batch: ")
        .link("nets", "nets.html")
        .plain(". Growth with the number of buffers: ")
        .link("scale", "scale.html")
        .plain(". What others published: ")
        .link("claims", "claims.html")
        .plain(".");
    pieces.push(Piece::note(more));
    pieces
}

fn gaps_and_workloads(site: &Site<'_>) -> [Piece; 5] {
    let more = Text::from("By single workload: ")
        .link("gaps", "gaps.html")
        .plain(". Every row: ")
        .link("all cells", "cells.html")
        .plain(".");
    [
        Piece::heading("Gap by planner and workload"),
        Piece::note(more),
        Piece::Table(tables::gaps_by_group(site.model)),
        Piece::heading("Workloads"),
        Piece::Table(tables::workloads(site.model, |number| site.page_of(number))),
    ]
}

fn summary(model: &Model) -> String {
    let counted = |keep: fn(Status) -> bool| -> u64 {
        model.statuses.iter().filter(|((_, status), _)| keep(*status)).map(|(_, rows)| rows).sum()
    };
    format!(
        "{} rows of {} cells: {} planners on {} workloads{}. {} rows have an answer, {} of them proved optimal.",
        count(model.rows()),
        count(model.cells.len() as u64),
        model.planners.len(),
        model.workloads.len(),
        suites(&model.suites),
        count(counted(Status::is_answer)),
        count(counted(|status| status == Status::Optimal)),
    )
}

fn suites(suites: &BTreeSet<String>) -> String {
    let names: Vec<&str> = suites.iter().map(String::as_str).collect();
    match names.len() {
        0 => String::new(),
        1 => format!(" (suite {})", names[0]),
        _ => format!(" (suites {})", names.join(", ")),
    }
}

fn limits(model: &Model) -> String {
    let texts: Vec<String> = model.limits.iter().map(|&(wall, memory)| limits_of(wall, memory)).collect();
    format!("Limits of a cell: {}.", texts.join("; "))
}

/// Time against size, the profile of heights, gap by planner.
fn figures(model: &Model) -> Vec<(Drawing, String)> {
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
            let gap = |cell: &&crate::data::model::Cell| {
                Some((model.row(cell).workload.to_string(), model.answer_gap(cell)?.max(0.0)))
            };
            let gaps: Vec<(String, f64)> = cells.iter().filter_map(gap).collect();
            gap::Gaps { series: model.series(planner), failures: cells.len() - gaps.len(), gaps }
        })
        .filter(|row| !row.gaps.is_empty() || row.failures > 0)
        .collect();
    let mean = |row: &gap::Gaps| {
        let values = row.gaps.iter().map(|(_, gap)| Some(*gap));
        planlab_results::statistics::shifted_geometric_mean(values, tables::GAP_SHIFT)
            .mean
            .unwrap_or(f64::INFINITY)
    };
    all.sort_by(|a, b| mean(a).total_cmp(&mean(b)));
    all
}

/// Each planner's profile over the workloads that it ran on, against the best of all plain planners there.
fn profiles(model: &Model) -> Vec<(crate::figures::Series, planlab_results::statistics::Profile)> {
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
        let timing = |cell: &crate::data::model::Cell| {
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
