//! Who did best in which suite, and what was compared?

use std::collections::{BTreeMap, BTreeSet};

use planlab_results::statistics::shifted_geometric_mean;

use crate::data::model::{Cell, Model};
use crate::data::tables::{GAP_SHIFT, TIME_SHIFT};
use crate::format::{bytes, count, nanoseconds, real};
use crate::site::page::{Page, Piece};
use crate::site::{Site, slug};
use planlab_results::table::{Table, Value};

/// A leaderboard of some cells.
struct Board {
    title: String,
    /// What was compared, a sentence each.
    compared: Vec<String>,
    table: Table,
}

pub(super) fn page(site: &Site<'_>) -> Option<Page> {
    let boards = boards(site.model);
    let mut pieces = vec![Piece::note(
        "A mean compares only planners that ran on the same workloads. So each table has means over the common workloads, \
         by which it is sorted, and means over all that a planner ran on. Cells that were asked for a capacity are \
         another question and do not count.",
    )];
    if boards.is_empty() {
        pieces.push(Piece::note("There are no rows."));
    }
    for board in boards {
        let compared = board.compared.join(" ");
        pieces.extend([Piece::heading(board.title), Piece::text(compared), Piece::Table(board.table)]);
    }
    Some(Page::new("boards.html", "Leaderboards by suite").named("Suites").with(pieces))
}

/// The cells of a board; all were asked for the lowest height.
struct Field<'m> {
    model: &'m Model,
    /// By planner and workload.
    cells: BTreeMap<usize, BTreeMap<usize, Vec<&'m Cell>>>,
    /// Workloads on which all planners ran that ran on at least half of them.
    common: BTreeSet<usize>,
}

/// A board for each suite, and where a suite has workloads of several kinds one for each of those.
fn boards(model: &Model) -> Vec<Board> {
    let mut suites: BTreeMap<&str, BTreeMap<&str, Vec<&Cell>>> = BTreeMap::new();
    for cell in &model.cells {
        let row = model.row(cell);
        if row.target_bytes.is_none() {
            let kind = row.workload.split('/').next().unwrap_or_default();
            suites.entry(&row.suite).or_default().entry(kind).or_default().push(cell);
        }
    }
    let mut boards = Vec::new();
    for (suite, kinds) in suites {
        let name = if suite.is_empty() { "without a suite" } else { suite };
        let all: Vec<&Cell> = kinds.values().flatten().copied().collect();
        boards.push(board(model, name.to_owned(), &all));
        if kinds.len() > 1 {
            boards.extend(kinds.iter().map(|(kind, cells)| board(model, format!("{name}: {kind}"), cells)));
        }
    }
    boards
}

fn board<'m>(model: &'m Model, title: String, cells: &[&'m Cell]) -> Board {
    let field = Field::new(model, cells);
    let table = field.table(&format!("leaderboard-{}", slug(&title)));
    Board { compared: compared(model, cells, &field), table, title }
}

impl<'m> Field<'m> {
    fn new(model: &'m Model, cells: &[&'m Cell]) -> Self {
        let mut by_planner: BTreeMap<usize, BTreeMap<usize, Vec<&Cell>>> = BTreeMap::new();
        for &cell in cells {
            by_planner.entry(cell.planner).or_default().entry(cell.workload).or_default().push(cell);
        }
        let all: BTreeSet<usize> = cells.iter().map(|cell| cell.workload).collect();
        let broad = by_planner.values().filter(|workloads| 2 * workloads.len() >= all.len());
        let common = broad.fold(all.clone(), |common, workloads| {
            common.into_iter().filter(|workload| workloads.contains_key(workload)).collect()
        });
        Self { model, cells: by_planner, common }
    }

    fn cells_of(&self, planner: usize) -> impl Iterator<Item = &'m Cell> {
        self.cells[&planner].values().flatten().copied()
    }

    fn covers_common(&self, planner: usize) -> bool {
        !self.common.is_empty()
            && self.common.iter().all(|workload| self.cells[&planner].contains_key(workload))
    }

    /// Mean gap and mean time over the common workloads.
    fn common_means(&self, planner: usize) -> Option<(Option<f64>, Option<f64>)> {
        if !self.covers_common(planner) {
            return None;
        }
        let cells = || self.cells_of(planner).filter(|cell| self.common.contains(&cell.workload));
        let gap = shifted_geometric_mean(cells().map(|cell| self.model.answer_gap(cell)), GAP_SHIFT);
        let time = shifted_geometric_mean(cells().map(|cell| cell.time_ns), TIME_SHIFT);
        // A mean that lacks some of the cells is none of the common ones.
        let whole = |mean: planlab_results::statistics::ShiftedMean| mean.mean.filter(|_| mean.failures == 0);
        Some((whole(gap), whole(time)))
    }

    fn table(&self, name: &str) -> Table {
        let mut table = Table::named(
            name,
            "Gap: height over the best bound that any planner proved, less 1; its mean is geometric, shifted by \
             1 %. Time: geometric mean of the medians, shifted by 1 ms, of cells that ran alone. Common: over the \
             common workloads, where the planner has an answer on all of them. Optimal: at the bound. \u{21c4}: \
             hands memory over in place, so that it may lie below the load; not to be ranked against the others.",
            &[
                ("planner", "Planner"),
                ("common_gap", "Gap, common"),
                ("common_time_ns", "Time, common"),
                ("workloads", "Workloads"),
                ("cells", "Cells"),
                ("answers", "Answers"),
                ("optimal", "Optimal"),
                ("mean_gap", "Gap, all"),
                ("mean_time_ns", "Time, all"),
                ("failures", "Failures"),
            ],
        );
        let mut rows: Vec<(f64, f64, Vec<Value>)> =
            self.cells.keys().map(|&planner| self.row(planner)).collect();
        rows.sort_by(|a, b| a.0.total_cmp(&b.0).then_with(|| a.1.total_cmp(&b.1)));
        rows.into_iter().for_each(|(_, _, row)| table.push(row));
        table
    }

    /// A planner's line behind its common gap and its gap, endless where it has none.
    fn row(&self, planner: usize) -> (f64, f64, Vec<Value>) {
        let model = self.model;
        let (common_gap, common_time) = self.common_means(planner).unwrap_or_default();
        let gap =
            shifted_geometric_mean(self.cells_of(planner).map(|cell| model.answer_gap(cell)), GAP_SHIFT).mean;
        let time = shifted_geometric_mean(self.cells_of(planner).map(|cell| cell.time_ns), TIME_SHIFT).mean;
        let counted = |keep: &dyn Fn(&Cell) -> bool| {
            Value::count(self.cells_of(planner).filter(|cell| keep(cell)).count())
        };
        let mark = if model.planners[planner].in_place { " \u{21c4}" } else { "" };
        let row = vec![
            Value::text(format!("{}{mark}", model.planners[planner].label)),
            Value::or_missing(common_gap.map(Value::Share)),
            Value::or_missing(common_time.map(Value::Nanoseconds)),
            Value::count(self.cells[&planner].len()),
            counted(&|_| true),
            counted(&|cell| model.row(cell).status.is_answer()),
            counted(&|cell| model.is_optimal(cell)),
            Value::or_missing(gap.map(Value::Share)),
            Value::or_missing(time.map(Value::Nanoseconds)),
            counted(&|cell| model.row(cell).status.is_failure()),
        ];
        (common_gap.unwrap_or(f64::INFINITY), gap.unwrap_or(f64::INFINITY), row)
    }
}

/// What a board compares: workloads by kind, planners, limits, seeds, machines.
fn compared(model: &Model, cells: &[&Cell], field: &Field<'_>) -> Vec<String> {
    let workloads: BTreeSet<usize> = cells.iter().map(|cell| cell.workload).collect();
    let mut groups: BTreeMap<&str, usize> = BTreeMap::new();
    for &workload in &workloads {
        *groups.entry(model.workloads[workload].group()).or_default() += 1;
    }
    let groups: Vec<String> =
        groups.iter().map(|(group, workloads)| format!("{group} {workloads}")).collect();
    let sizes = workloads.iter().map(|&workload| model.workloads[workload].buffers);
    let (least, most) = (sizes.clone().min().unwrap_or(0), sizes.max().unwrap_or(0));
    let partial = field.cells.keys().filter(|&&planner| !field.covers_common(planner)).count();
    vec![
        format!(
            "{} planners on {} workloads of {} to {} buffers ({}).",
            field.cells.len(),
            workloads.len(),
            count(least),
            count(most),
            groups.join(", ")
        ),
        format!(
            "Common are {} workloads, on which every planner ran that ran on at least half; {partial} planners did \
             not run on all of those.",
            field.common.len()
        ),
        conditions(model, cells),
    ]
}

fn conditions(model: &Model, cells: &[&Cell]) -> String {
    let rows = || cells.iter().map(|cell| model.row(cell));
    let listed = |texts: BTreeSet<String>| texts.into_iter().collect::<Vec<_>>().join(" or ");
    let limits = listed(rows().map(|row| limits_of(row.wall_limit_ns, row.memory_limit_bytes)).collect());
    let seeds: BTreeSet<u64> = rows().map(|row| row.seed).collect();
    let seeds: Vec<String> = seeds.iter().take(10).map(u64::to_string).collect();
    let hosts: BTreeSet<&str> = rows().map(|row| &*row.host).collect();
    let alone = rows().filter(|row| row.lane == planlab_results::Lane::Timing).count();
    format!(
        "Each cell had {limits}; seeds {}; {} host{}; {} of {} cells ran alone.",
        seeds.join(", "),
        hosts.len(),
        if hosts.len() == 1 { "" } else { "s, so that times do not compare" },
        count(alone as u64),
        count(cells.len() as u64),
    )
}

/// The limits of a cell, in words.
pub(crate) fn limits_of(wall: Option<u64>, memory: Option<u64>) -> String {
    let wall = wall.map_or("no time limit".to_owned(), |ns| nanoseconds(real(ns)));
    let memory = memory.map_or("no memory limit".to_owned(), bytes);
    format!("{wall} and {memory}")
}
