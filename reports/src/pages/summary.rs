//! The summary: what was run, which planner is best, and what failed.

use std::collections::BTreeSet;

use planlab_results::Status;
use planlab_results::audit::Finding;
use planlab_results::queries::{GAP_SHIFT, PlannerGaps, Profile};
use planlab_results::statistics::shifted_geometric_mean;
use planlab_results::table::{Table, Value};

use super::boards::limits_of;
use super::{nets, offload};
use crate::data::model::Model;
use crate::data::{pools, tables};
use crate::figures::{Drawing, Series, gap, profile, time};
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
        .with(schedules(site))
        .with(damage(site))
        .table_or(failures(site), || {
            Piece::fine(
                "None: no planner crashed, was killed, ran out of memory or gave a false answer, and no row \
                 contradicts another.",
            )
        });
    Some(page.with(leaders(site)).with(plots(site)).with(gaps_and_workloads(site)).with(conditions))
}

/// Failures of planners, allocators and schedulers.
fn failures(site: &Site<'_>) -> Table {
    let mut table = tables::failures(&site.model.failures, site.replays, site.findings);
    for row in &site.schedules.failures {
        table.push(vec![
            Value::text(format!("{} on {}", row.scheduler, row.machine)),
            Value::text(row.status.name()),
            Value::Count(1),
            Value::text(row.workload.as_str()),
            Value::text(row.reason.as_str()),
            Value::text(tables::exit(row.signal, row.exit_code)),
            Value::text(tables::last_line(&row.stderr_tail)),
        ]);
    }
    table
}

/// The questions to schedulers, with a link to their page.
fn schedules(site: &Site<'_>) -> Option<Piece> {
    site.schedules.cases.first()?;
    let text = Text::default().link("What if it does not fit?", "offload.html").plain(" ");
    Some(Piece::text(text.plain(offload::asked(site.schedules))))
}

/// The damage found in the store and its contents.
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
    // Only nets whose own pool is known are compared with it here; their page has all nets.
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
        model.all.statuses.iter().filter(|((_, status), _)| keep(*status)).map(|(_, rows)| rows).sum()
    };
    format!(
        "{} rows of {} cells: {} planners on {} workloads{}. {} rows have an answer, {} of them proved optimal.",
        count(model.rows()),
        count(model.cells.len() as u64),
        model.all.planners.len(),
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

/// Time over size, the profile of heights, gap by planner.
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
    let of = |of: &PlannerGaps| gap::Gaps {
        series: model.series(of.planner_number),
        failures: of.cells - of.gaps.len(),
        gaps: of.workloads.iter().cloned().zip(of.gaps.iter().map(|gap| gap.max(0.0))).collect(),
    };
    let mut all: Vec<gap::Gaps> = model.planner_gaps.iter().map(of).collect();
    let mean = |row: &gap::Gaps| {
        let values = row.gaps.iter().map(|(_, gap)| Some(*gap));
        shifted_geometric_mean(values, GAP_SHIFT).mean.unwrap_or(f64::INFINITY)
    };
    all.sort_by(|a, b| mean(a).total_cmp(&mean(b)));
    all
}

/// Each planner's profile over its workloads, relative to the best plain planner on each.
fn profiles(model: &Model) -> Vec<(Series, Profile)> {
    model.profiles.iter().map(|profile| (model.series(profile.planner_number), profile.clone())).collect()
}

fn timings(model: &Model) -> Vec<time::Timings> {
    let mut all: Vec<time::Timings> =
        (0..model.all.planners.len()).map(|planner| (model.series(planner), Vec::new())).collect();
    for cell in model.cells.iter().filter(|cell| cell.target_bytes.is_none()) {
        let Some(time) = cell.time_ns else { continue };
        all[cell.planner_number].1.push(time::Timing {
            workload: cell.workload.to_string(),
            buffers: real(cell.buffers.max(1)),
            nanoseconds: time.max(1.0),
            is_cut: cell.is_cut(),
        });
    }
    all
}
