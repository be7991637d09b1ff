//! The page on gaps: how close each planner comes to the best bound, over all and on each workload.

use std::collections::BTreeMap;

use planlab_results::queries::{GAP_SHIFT, PlannerGaps};
use planlab_results::statistics::shifted_geometric_mean;
use planlab_results::table::Table;

use crate::data::compare::family;
use crate::data::model::Model;
use crate::data::tables;
use crate::figures::gap;
use crate::site::Site;
use crate::site::page::{Menu, Page, Piece, Text};

/// The planners whose columns are in view at once: with the names of the workloads they fill a screen.
const SHOWN: usize = 12;

pub(super) fn page(site: &Site<'_>) -> Option<Page> {
    let question = "How close do plans come?";
    let model = site.model;
    let order = by_quality(model);
    let (groups, all) = (tables::gaps_by_group(model), tables::gaps(model, |number| site.page_of(number)));
    let mut page = Page::new("gaps.html", question).named(Menu::Planners, question);
    page.pieces.push(Piece::note(
        "The gap of a plan: its height over the best bound that any planner proved, less 1. A gap of 0 is optimal. Here \
         is one variant of each planner, the one with the least mean gap, and the best planner first; the files have \
         all variants.",
    ));
    let caption = "A dot for each workload; the bar marks the median. The scale is linear near 0 and logarithmic \
                   far from it. Planners ran on different workloads.";
    page.pieces.extend(gap::plot(&gaps(model, &order)).map(|drawing| Piece::chapter(drawing, caption)));
    for (heading, table) in [("By group of workloads", groups), ("By workload", all)] {
        page.pieces.push(Piece::heading(heading));
        page.pieces.extend(by_planner(&table, &order));
        let (csv, tex) = (format!("tables/{}.csv", table.name), format!("tables/{}.tex", table.name));
        page.pieces
            .push(Piece::note(Text::from("All variants: ").link("CSV", csv).plain(" ").link("LaTeX", tex)));
        page.files.push(table);
    }
    Some(page)
}

/// The columns of the best planners, and those of the others on demand.
fn by_planner(table: &Table, order: &[usize]) -> Vec<Piece> {
    let (best, others) = order.split_at(order.len().min(SHOWN));
    let mut pieces = vec![Piece::Table(tables::with_planners(table, best))];
    if !others.is_empty() {
        let title = format!("{} more planner{}", others.len(), if others.len() == 1 { "" } else { "s" });
        pieces.push(Piece::Folded(title, tables::with_planners(table, others)));
    }
    pieces
}

/// The best variant of each family, by mean gap. A planner that ran on many workloads is not behind one that ran on a
/// few: those on at least a tenth of the most workloads come first.
fn by_quality(model: &Model) -> Vec<usize> {
    let most = model.planner_gaps.iter().map(|own| own.cells).max().unwrap_or(0);
    let mean = |own: &PlannerGaps| {
        let gaps = own.gaps.iter().map(|gap| Some(gap.max(0.0)));
        shifted_geometric_mean(gaps, GAP_SHIFT).mean.unwrap_or(f64::INFINITY)
    };
    let rank = |own: &PlannerGaps| {
        let is_in_place = model.all.planners[own.planner_number].is_in_place;
        (is_in_place, own.cells * 10 < most, mean(own))
    };
    let mut best: BTreeMap<&str, ((bool, bool, f64), usize)> = BTreeMap::new();
    for own in &model.planner_gaps {
        let name = family(&model.all.planners[own.planner_number].label);
        let entry = (rank(own), own.planner_number);
        best.entry(name)
            .and_modify(|known| {
                if before(&entry.0, &known.0) {
                    *known = entry;
                }
            })
            .or_insert(entry);
    }
    let mut best: Vec<((bool, bool, f64), usize)> = best.into_values().collect();
    best.sort_by(|(a, _), (b, _)| (a.0, a.1).cmp(&(b.0, b.1)).then_with(|| a.2.total_cmp(&b.2)));
    best.into_iter().map(|(_, planner)| planner).collect()
}

fn before(a: &(bool, bool, f64), b: &(bool, bool, f64)) -> bool {
    (a.0, a.1).cmp(&(b.0, b.1)).then_with(|| a.2.total_cmp(&b.2)).is_lt()
}

/// The gaps of these planners.
fn gaps(model: &Model, order: &[usize]) -> Vec<gap::Gaps> {
    let of = |&planner: &usize| {
        let own = model.planner_gaps.iter().find(|own| own.planner_number == planner)?;
        Some(gap::Gaps {
            series: model.series(planner),
            failures: own.cells - own.gaps.len(),
            gaps: own.workloads.iter().cloned().zip(own.gaps.iter().map(|gap| gap.max(0.0))).collect(),
        })
    };
    order.iter().filter_map(of).collect()
}
