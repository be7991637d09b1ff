//! The page of one workload.

use maud::{Markup, html};
use planlab_dsa::{Bytes, Instance};

use super::layout::{facts, picture, plot};
use crate::format::{bytes, count};
use crate::model::{Cell, Model};
use crate::table::Table;
use crate::{ReportError, load_curve_plot, size_distribution_plot};

/// A plan of a workload that has maps.
#[derive(Clone, Debug)]
pub(crate) struct Mapped {
    /// The cell's number in the model.
    pub(crate) cell: usize,
    /// The cell's page, from the report's folder.
    pub(crate) page: String,
    /// The placement map, from the report's folder.
    pub(crate) placement: String,
    /// The fragmentation map, from the report's folder.
    pub(crate) free: String,
    /// The pictures' size in pixels.
    pub(crate) size: (u32, u32),
}

/// The body of a workload's page; `instance` is `None` where the store does not have it.
pub(crate) fn body(
    model: &Model,
    workload: usize,
    instance: Option<&Instance>,
    mapped: &[Mapped],
    baseline: &str,
    (cells, allocators): (&Table, Option<&Table>),
) -> Result<Markup, ReportError> {
    let subject = &model.workloads[workload];
    let best = model.best_cell(workload).and_then(|cell| model.row(cell).height);
    let label = |map: &Mapped| caption(model, &model.cells[map.cell]);
    Ok(html! {
        h1 { (subject.key) }
        (facts(&numbers(model, workload, instance)))
        (cells.to_html("../"))
        @if let Some(allocators) = allocators {
            h2 { "Online allocators" }
            (allocators.to_html("../"))
        }
        @if !mapped.is_empty() {
            h2 { "Placement maps" }
            p.note {
                "Time across, address up, colour by category; all on one axis. The dashed lines mark the first \
                 step of the highest load and the load itself; buffers in use at that step have a dark edge, \
                 those that reach the plan's height a red one."
            }
            @if mapped.first().is_some_and(|best| same_plan(model, workload, best, baseline)) {
                p.note { "The plan of " (baseline) " is the first one." }
            }
            div.pair {
                @for map in mapped { (picture(&format!("../{}", map.placement), map.size, &label(map))) }
            }
        }
        @if let Some(instance) = instance {
            h2 { "Load and sizes" }
            (plot(&load_curve_plot(instance, best.map(Bytes::new)), "Bytes in use at each step, with the best height.")?)
            (plot(&size_distribution_plot(instance), "Buffers and bytes by size.")?)
        } @else {
            p.note { "The store does not hold this instance, so there are no pictures of it." }
        }
        p.note { "Maps of any other plan: " code { "planlab show TRACE PLAN -o FILE.html" } }
    })
}

/// Whether the baseline's plan is the one that is drawn, though it is another planner's.
fn same_plan(model: &Model, workload: usize, map: &Mapped, baseline: &str) -> bool {
    let drawn = &model.cells[map.cell];
    let Some(planner) = model.planners.iter().position(|planner| planner.label == baseline) else {
        return false;
    };
    let mut cells = model.free_cells(planner, workload);
    drawn.planner != planner && cells.next().is_some_and(|cell| model.row(cell).plan == model.row(drawn).plan)
}

/// A cell in a few words.
pub(crate) fn caption(model: &Model, cell: &Cell) -> String {
    let row = model.row(cell);
    let height = row.height.map_or_else(|| "no plan".to_owned(), bytes);
    format!("{}: {height}, {}", model.planner(cell).label, row.status.name())
}

fn numbers(model: &Model, workload: usize, instance: Option<&Instance>) -> Vec<(&'static str, String)> {
    let subject = &model.workloads[workload];
    let exact = |number: u64| format!("{} ({} bytes)", bytes(number), count(number));
    let mut pairs = vec![("buffers", count(subject.buffers)), ("load", exact(subject.load))];
    if let Some(instance) = instance {
        pairs.push(("steps", count(u64::from(instance.horizon().get()))));
        pairs.push(("sum of sizes", exact(instance.total().get())));
        if !instance.in_place().is_empty() {
            pairs.push(("in-place permissions", count(instance.in_place().len() as u64)));
        }
        if instance.arenas().len() > 1 {
            pairs.push(("arenas", count(instance.arenas().len() as u64)));
        }
    }
    let bound =
        subject.cells.iter().map(|&cell| &model.cells[cell]).filter(|cell| model.row(cell).hand_overs == 0);
    if let Some(best) = bound.max_by_key(|cell| cell.bound) {
        let rows = subject.cells.iter().map(|&cell| model.row(&model.cells[cell]));
        let evidence = rows.filter(|row| row.bound == best.bound).map(|row| row.bound_evidence.name()).min();
        pairs.push(("best bound", format!("{}, by {}", exact(best.bound), evidence.unwrap_or("none"))));
    }
    pairs.push(("instance", subject.instance.clone()));
    pairs
}
