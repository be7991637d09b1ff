//! The page on gaps: how close each planner comes to the best bound, over all and on each workload.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use planlab_results::queries::Leader;
use planlab_results::table::Table;

use crate::data::planners::compare::{complete_mean, planner_family};
use crate::data::planners::model::Model;
use crate::data::planners::tables;
use crate::figures::Series;
use crate::figures::plots::strip::{self, Strip};
use crate::site::Site;
use crate::site::page::{Menu, Page, Piece, Text};

/// The planners whose columns are in view at once: with the names of the workloads they fill a screen.
const SHOWN: usize = 12;

pub(crate) fn page(site: &Site<'_>) -> Option<Page> {
    let question = "How close do plans come?";
    let model = site.model;
    let coverage = Coverage::from_model(model);
    let order = by_quality(model, &coverage);
    let (groups, all) =
        (tables::gaps_by_group(model), tables::gap_table(model, |number| site.page_of(number)));
    let mut page = Page::new("gaps.html", question).in_menu(Menu::Planners, question);
    page.pieces.push(Piece::note(format!(
        "The gap of a plan: its height over the best bound that any planner proved, less 1. A gap of 0 is optimal. Here \
         is one variant of each planner, the best planner first: {} The files have all variants.",
        coverage.order_sentence(model)
    )));
    let caption = "A dot for each workload; the bar marks the median. The scale is linear near 0 and logarithmic \
                   far from it. Behind a name: the workloads that the planner ran on, if it did not run on all.";
    let strips = planner_gaps(model, &order, &coverage);
    page.pieces.extend(strip::plot_gaps(&strips).map(|drawing| Piece::chapter(drawing, caption)));
    for (heading, table) in [("By group of workloads", groups), ("By workload", all)] {
        page.pieces.push(Piece::heading(heading));
        page.pieces.extend(by_planner(&table, &order, &coverage));
        let (csv, tex) = (format!("tables/{}.csv", table.name), format!("tables/{}.tex", table.name));
        page.pieces
            .push(Piece::note(Text::from("All variants: ").link("CSV", csv).plain(" ").link("LaTeX", tex)));
        page.files.push(table);
    }
    Some(page)
}

/// The columns of the best planners, and those of the others on demand.
fn by_planner(table: &Table, order: &[usize], coverage: &Coverage) -> Vec<Piece> {
    let (best, others) = order.split_at(order.len().min(SHOWN));
    let with = |planners| tables::with_planners(table, planners, |planner| coverage.coverage_remark(planner));
    let mut pieces = vec![Piece::Table(with(best))];
    if !others.is_empty() {
        let title = format!("{} more planner{}", others.len(), if others.len() == 1 { "" } else { "s" });
        pieces.push(Piece::Folded(title, with(others)));
    }
    pieces
}

/// The number of workloads that each planner ran on, of all on which one did.
struct Coverage {
    /// By planner.
    own: BTreeMap<usize, usize>,
    of: usize,
}

impl Coverage {
    fn from_model(model: &Model) -> Self {
        let workloads: BTreeSet<usize> = model.gaps.iter().map(|gap| gap.workload_number).collect();
        let own = model.whole.all.iter().map(|leader| (leader.planner_number, leader.workloads)).collect();
        Self { own, of: workloads.len() }
    }

    fn workload_count(&self, planner: usize) -> usize {
        self.own.get(&planner).copied().unwrap_or(0)
    }

    /// ` (2 of 8)` for a planner that did not run on all workloads.
    fn coverage_remark(&self, planner: usize) -> String {
        match self.workload_count(planner) {
            own if own < self.of => format!(" ({own} of {})", self.of),
            _ => String::new(),
        }
    }

    fn order_sentence(&self, model: &Model) -> String {
        match model.whole.common_workloads.len() {
            0 => "those on more workloads, and of these the least mean gap.".to_owned(),
            common => format!(
                "the least mean gap on the {common} of {} workloads that all planners on at least half of them ran on. \
                 Behind them are those that did not run on all of these, the ones on more workloads first.",
                self.of
            ),
        }
    }
}

/// A planner's place among others: those that did not run on all common workloads come last, as they do not compare by
/// their means: the ones on more workloads come first. Means are not negative, so that their bits sort like them.
fn place(model: &Model, coverage: &Coverage, leader: &Leader) -> (bool, Reverse<usize>, u64) {
    let planner = leader.planner_number;
    let common = model.whole.common.iter().find(|common| common.planner_number == planner);
    let compared = common.and_then(|common| complete_mean(common.mean_gap()));
    let covered = if compared.is_some() { usize::MAX } else { coverage.workload_count(planner) };
    let mean = compared.or(leader.mean_gap().mean).map_or(f64::INFINITY, |mean| mean.max(0.0).abs());
    (compared.is_none(), Reverse(covered), mean.to_bits())
}

/// The best variant of each family, the best first.
fn by_quality(model: &Model, coverage: &Coverage) -> Vec<usize> {
    let mut best: BTreeMap<&str, _> = BTreeMap::new();
    for leader in &model.whole.all {
        let planner = leader.planner_number;
        let place = place(model, coverage, leader);
        let known =
            best.entry(planner_family(&model.all.planners[planner].label)).or_insert((place, planner));
        if place < known.0 {
            *known = (place, planner);
        }
    }
    let mut best: Vec<_> = best.into_values().collect();
    best.sort_by_key(|&(place, _)| place);
    best.into_iter().map(|(_, planner)| planner).collect()
}

fn planner_gaps(model: &Model, order: &[usize], coverage: &Coverage) -> Vec<Strip> {
    let of = |&planner: &usize| {
        let own = model.planner_gaps.iter().find(|own| own.planner_number == planner)?;
        let label = model.all.planners[planner].label.clone() + &coverage.coverage_remark(planner);
        let unanswered = own.cells - own.gaps.len();
        Some(Strip {
            series: Series { label, number: planner },
            remark: if unanswered > 0 { unanswered.to_string() } else { String::new() },
            values: own.workloads.iter().cloned().zip(own.gaps.iter().map(|gap| gap.max(0.0))).collect(),
        })
    };
    order.iter().filter_map(of).collect()
}
