//! The page of leaderboards: which planner is best in which suite, and what was compared.

use std::collections::{BTreeMap, BTreeSet};

use planlab_results::queries::{Board, CellRow, Leader, Leaders};
use planlab_results::statistics::ShiftedMean;

use crate::data::planners::compare::{Comparison, complete_mean, planner_key};
use crate::data::planners::model::Model;
use crate::data::planners::tables;
use crate::format::{as_real, format_bytes, format_count, format_counted, format_nanoseconds};
use crate::site::page::{Menu, Page, Piece};
use crate::site::{Site, file_slug};
use planlab_results::table::{CellValue, Table, columns};

pub(crate) fn page(site: &Site<'_>) -> Option<Page> {
    let question = "Which planner should I use?";
    let model = site.model;
    let mut pieces = vec![Piece::note(
        "A mean compares only planners that ran on the same workloads. So the planners of each suite are compared on the \
         common workloads: those of all planners that ran on at least half of the suite. A table has one row for each \
         planner, with its best variant (order, parameters, limits). Below each table is one of all variants, \
         with their means over everything that they ran on. Runs at a fixed capacity are left out.",
    )];
    if model.boards.is_empty() {
        pieces.push(Piece::note("There are no rows."));
    }
    if let Some(compared) = &model.compared {
        pieces.push(Piece::heading(format!("All suites: {}", compared.scope)));
        pieces.push(Piece::text(scope_sentence(compared)));
        pieces.push(Piece::Table(family_table(site, compared, "")));
    }
    let (suites, rest): (Vec<_>, Vec<_>) =
        model.boards.iter().partition(|(board, _)| !board.suite.is_empty());
    for (board, leaders) in suites.into_iter().chain(rest) {
        let title = board_title(board);
        let slug = file_slug(&title);
        let table = board_table(site, leaders, &format!("leaderboard-{slug}"));
        let compared = board_scope(model, board, leaders).join(" ");
        pieces.extend([Piece::heading(title), Piece::text(compared)]);
        let common = Comparison::new("workloads", 0, leaders, &model.all.planners);
        let folded = format!("All {} variants", table.rows.len());
        match common {
            Some(common) => {
                pieces.push(Piece::Table(family_table(site, &common, &format!("families-{slug}"))));
                pieces.push(Piece::Folded(folded, table));
            }
            None => pieces.push(Piece::Table(table)),
        }
    }
    pieces.push(Piece::heading("Every planner"));
    pieces.push(Piece::note(
        "Over all that each ran on: these means cover different workloads, so that they do not compare.",
    ));
    let whole = tables::leaderboard_table(model, |planner| site.link_planner(planner));
    pieces.push(Piece::Folded(format!("All {} variants", whole.rows.len()), whole));
    let pairs = "Pairs: each against one reference".to_owned();
    pieces.extend(tables::pair_table(model).map(|table| Piece::Folded(pairs, table)));
    Some(Page::new("boards.html", question).in_menu(Menu::Planners, question).with(pieces))
}

/// What a comparison covers, in a sentence.
pub(crate) fn scope_sentence(compared: &Comparison) -> String {
    let Comparison { scope, of, workloads, ranked, left_out } = compared;
    let (variants, workloads) = (ranked.len(), workloads.len());
    let compares = format!("{variants} variants of planners on the same {workloads} of {of} {scope}.");
    let penalised = ranked.iter().any(|one| one.unanswered > 0);
    let penalty = if penalised { format!(" {PENALTY}") } else { String::new() };
    let left_out = left_out.iter().map(|(why, labels)| {
        let mut names: Vec<&str> = labels.iter().map(|label| planner_key(label)).collect();
        names.dedup();
        let more = names.len().saturating_sub(NAMED);
        names.truncate(NAMED);
        let more = if more == 0 { String::new() } else { format!(" and {more} more") };
        format!("{}{more} ({why})", names.join(", "))
    });
    let left_out: Vec<String> = left_out.collect();
    let others =
        if left_out.is_empty() { String::new() } else { format!(" Left out: {}.", left_out.join("; ")) };
    compares + &penalty + &others
}

/// The most planners that are named as left out for one reason.
const NAMED: usize = 6;

/// How a cell without an answer counts, in words.
const PENALTY: &str =
    "A cell without an answer counts with a gap of 100 % and its time limit; no gap counts for more.";

/// One row for each family, with its best variant; the best first.
pub(crate) fn family_table(site: &Site<'_>, compared: &Comparison, name: &str) -> Table {
    Table::from_rows(
        name,
        format!(
            "One row for each planner, by its best variant. Gap: height over the best bound that any planner proved, \
             less 1; the mean is geometric, shifted by 1 %. Time: geometric mean of the medians, shifted by 1 ms, if each \
             cell ran alone. No answer: cells that failed, found nothing or ran out of time. {PENALTY}"
        ),
        compared.ranked_families(),
        columns!(|family| {
            let best = family.best;
            let summary =
                site.known_planner(best.planner).map(|known| CellValue::text(known.summary.replace('`', "")));
            [
                ("family", "Planner", CellValue::text(family.name)),
                ("best", "Best variant", site.link_planner(best.planner)),
                ("variants", "Variants", CellValue::count(family.variants)),
                ("mean_gap", "Mean gap", CellValue::Share(best.gap)),
                ("mean_time_ns", "Mean time", CellValue::nanoseconds(best.time_ns)),
                ("no_answer", "No answer", CellValue::count(best.unanswered)),
                ("summary", "What it does", summary.unwrap_or_else(|| CellValue::text(""))),
            ]
        }),
    )
}

fn board_title(board: &Board) -> String {
    let suite = if board.suite.is_empty() { "Without a suite" } else { &board.suite };
    board.route.as_ref().map_or_else(|| suite.to_owned(), |route| format!("{suite}: {route}"))
}

fn is_on(board: &Board, cell: &CellRow) -> bool {
    let is_of_route = board.route.as_ref().is_none_or(|route| cell.workload.split('/').next() == Some(route));
    *cell.suite == *board.suite && is_of_route && cell.target_bytes.is_none()
}

fn board_table(site: &Site<'_>, leaders: &Leaders, name: &str) -> Table {
    let mut rows: Vec<_> = leaders.all.iter().map(|leader| (leader, common_means(leaders, leader))).collect();
    let rank = |(leader, [gap, _]): &(&Leader, [Option<f64>; 2])| {
        [*gap, leader.mean_gap().mean].map(|gap| gap.unwrap_or(f64::INFINITY))
    };
    rows.sort_by(|a, b| {
        let ([a_common, a_gap], [b_common, b_gap]) = (rank(a), rank(b));
        a_common.total_cmp(&b_common).then_with(|| a_gap.total_cmp(&b_gap))
    });
    Table::from_rows(
        name,
        format!(
            "Gap: height over the best bound that any planner proved, less 1; its mean is geometric, shifted by \
             1 %. Time: geometric mean of the medians, shifted by 1 ms, of cells that ran alone. Common: over the \
             common workloads, if the planner ran on all of them. No answer: cells that failed, found nothing or ran out \
             of time. {PENALTY} Optimal: at the bound. \u{21c4}: hands memory over in place where the instance permits \
             it; the others never do, and their gap says so."
        ),
        rows,
        columns!(|(leader, [common_gap, common_time])| [
            ("planner", "Planner", site.link_planner(leader.planner_number)),
            ("common_gap", "Gap, common", CellValue::share(common_gap)),
            ("common_time_ns", "Time, common", CellValue::nanoseconds(common_time)),
            ("workloads", "Workloads", CellValue::count(leader.workloads)),
            ("cells", "Cells", CellValue::count(leader.cells)),
            ("answers", "Answers", CellValue::count(leader.answers)),
            ("optimal", "Optimal", CellValue::count(leader.optimal)),
            ("mean_gap", "Gap, all", CellValue::share(leader.mean_gap().mean)),
            ("mean_time_ns", "Time, all", CellValue::nanoseconds(leader.mean_time().mean)),
            ("no_answer", "No answer", CellValue::count(leader.unanswered)),
            ("failures", "Failures", CellValue::count(leader.failures)),
        ]),
    )
}

/// A planner's mean gap and mean time over the common workloads, if it ran on all of them.
fn common_means(leaders: &Leaders, leader: &Leader) -> [Option<f64>; 2] {
    let own = leaders.common.iter().find(|common| common.planner_number == leader.planner_number);
    let mean = |of: fn(&Leader) -> ShiftedMean| own.and_then(|own| complete_mean(of(own)));
    [mean(Leader::mean_gap), mean(Leader::mean_time)]
}

/// The most groups of workloads that are named.
const GROUPS: usize = 12;

/// The scope of a board: workloads by kind, planners, limits, seeds, machines.
fn board_scope(model: &Model, board: &Board, leaders: &Leaders) -> Vec<String> {
    let cells: Vec<&CellRow> = model.cells.iter().filter(|cell| is_on(board, cell)).collect();
    let workloads: BTreeSet<usize> = cells.iter().map(|cell| cell.workload_number).collect();
    let mut groups: BTreeMap<&str, usize> = BTreeMap::new();
    for &workload in &workloads {
        *groups.entry(model.workloads[workload].key.group()).or_default() += 1;
    }
    let more = groups.len().saturating_sub(GROUPS);
    let mut groups: Vec<String> =
        groups.iter().take(GROUPS).map(|(group, workloads)| format!("{group} {workloads}")).collect();
    if more > 0 {
        groups.push(format!("and {more} more groups"));
    }
    let sizes = workloads.iter().map(|&workload| model.workloads[workload].buffers);
    let (least, most) = (sizes.clone().min().unwrap_or(0), sizes.max().unwrap_or(0));
    let partial = leaders.all.len() - leaders.common.len();
    vec![
        format!(
            "{} planners on {} of {} ({}).",
            leaders.all.len(),
            format_counted(workloads.len() as u64, "workload"),
            if least == most {
                format_counted(most, "buffer")
            } else {
                format!("{} to {} buffers", format_count(least), format_count(most))
            },
            groups.join(", ")
        ),
        match (leaders.common_workloads.len(), partial) {
            (common, 0) if common == workloads.len() => "All of them ran on all of these.".to_owned(),
            (common, 0) => format!("All of them ran on {common} of these, which are compared."),
            (common, partial) => format!(
                "Compared on {common} of these; left out: {}, not run on all of those.",
                format_counted(partial as u64, "variant")
            ),
        },
        cell_conditions(&cells),
    ]
}

fn cell_conditions(cells: &[&CellRow]) -> String {
    let rows = || cells.iter();
    let listed = |texts: BTreeSet<String>| texts.into_iter().collect::<Vec<_>>().join(" or ");
    let limits = listed(rows().map(|row| limits_of(row.wall_limit_ns, row.memory_limit_bytes)).collect());
    let seeds: BTreeSet<u64> = rows().map(|row| row.seed).collect();
    let seeds: Vec<String> = seeds.iter().take(10).map(u64::to_string).collect();
    let hosts: BTreeSet<&str> = rows().map(|row| &*row.machine_host).collect();
    let alone = rows().filter(|row| row.lane == planlab_results::Lane::Timing).count();
    format!(
        "Each cell had {limits}; seeds {}; {} host{}; {} of {} cells ran alone.",
        seeds.join(", "),
        hosts.len(),
        if hosts.len() == 1 { "" } else { "s, so that times do not compare" },
        format_count(alone as u64),
        format_count(cells.len() as u64),
    )
}

pub(crate) fn limits_of(wall: Option<u64>, memory: Option<u64>) -> String {
    let wall = wall.map_or("no time limit".to_owned(), |ns| format_nanoseconds(as_real(ns)));
    let memory = memory.map_or("no memory limit".to_owned(), format_bytes);
    format!("{wall} and {memory}")
}
