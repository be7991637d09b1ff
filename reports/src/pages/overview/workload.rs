//! The page of one workload: the results of the planners, and pictures of it.

use planlab_results::queries::CellRow;

use crate::data::nets::pools;
use crate::data::planners::model::Model;
use crate::data::planners::tables;
use crate::format::{exact_bytes, format_bytes, format_count};
use crate::site::page::{Page, Picture, Piece, Text};
use crate::site::{Mapped, Maps, Site, Stored};

pub(crate) fn page(site: &Site<'_>, workload: usize) -> Page {
    let (model, files) = (site.model, site.files_of(workload));
    let stored = site.instances[workload].as_ref();
    let page_of = |wanted: &CellRow| {
        let mut maps = site.maps_of(workload).iter();
        let found = maps.find(|map| std::ptr::eq(&raw const model.cells[map.cell], wanted));
        found.map(|map| map.page.clone())
    };
    let mut pieces = map_pieces(site, workload);
    let missing =
        || vec![Piece::note("The store does not hold this instance, so there are no pictures of it.")];
    pieces.extend(stored.map_or_else(missing, picture_pieces));
    pieces.extend([
        Piece::heading("Figures"),
        Piece::facts(number_facts(model, workload, stored)),
        Piece::heading("Results"),
        Piece::note(Text::from_marked(
            "*optimal*: the run itself proved that no plan is lower. *feasible*: the run has a valid plan and no such \
             proof. A feasible plan can be as low as an optimal one: then its gap to the best bound of all runs is 0.",
        )),
        Piece::Table(tables::cells_of(model, workload, &files, page_of)),
    ]);
    let allocators = pools::of_workload(model, workload, site.replays, &files);
    pieces.extend(Piece::section("Online allocators", allocators));
    pieces.push(Piece::note(Text::from_marked(
        "Any plans side by side: `planlab show TRACE PLAN... -o FILE.html`",
    )));
    Page::new(site.page_of(workload), &model.workloads[workload].key).with(pieces)
}

/// The placement maps, if any plan has one.
fn map_pieces(site: &Site<'_>, workload: usize) -> Vec<Piece> {
    let (model, mapped, baseline) = (site.model, site.maps_of(workload), &site.options.baseline);
    let Some(best) = mapped.first() else { return Vec::new() };
    let mut pieces = vec![Piece::heading("Placement maps")];
    if same_plan(model, workload, best, baseline) {
        pieces.push(Piece::note(format!("{baseline} found the plan of the first map too.")));
    }
    let label = |map: &Mapped| cell_caption(model, &model.cells[map.cell]);
    let viewer = site.instances[workload].as_ref().and_then(|stored| stored.viewer.clone());
    if let Some(viewer) = viewer {
        pieces.push(Piece::Viewer(viewer));
        return pieces;
    }
    pieces.push(Piece::note(format!(
        "Time across, address up, {}; on one axis, except for plans more than half higher than the best. The dashed lines \
         mark the first step of the highest load and the load itself. Buffers in use at that step have a dark edge, those that \
         reach the plan's height a red one.",
        best.colours
    )));
    let picture = |map: &Mapped| match &map.maps {
        Maps::Pictures { placement, size, .. } => Some(Picture::file(placement, *size, label(map))),
        Maps::Viewer(_) => None,
    };
    pieces.push(Piece::Pictures(mapped.iter().filter_map(picture).collect()));
    pieces
}

fn picture_pieces(stored: &Stored) -> Vec<Piece> {
    vec![
        Piece::heading("Load and sizes"),
        Piece::plot(stored.load_curve.clone(), "Bytes in use at each step, with the best height."),
        Piece::plot(stored.sizes.clone(), "Buffers and bytes by size."),
    ]
}

/// Whether the map shows the baseline's plan, although it belongs to another planner.
fn same_plan(model: &Model, workload: usize, map: &Mapped, baseline: &str) -> bool {
    let drawn = &model.cells[map.cell];
    let Some(planner) = model.planner_of(baseline) else { return false };
    let mut cells = model.free_cells(planner, workload);
    drawn.planner_number != planner && cells.next().is_some_and(|cell| cell.plan == drawn.plan)
}

fn cell_caption(model: &Model, cell: &CellRow) -> String {
    let height = cell.height.map_or_else(|| "no plan".to_owned(), format_bytes);
    format!("{}: {height}, {}", model.planner_of_cell(cell).label, cell.status.name())
}

fn number_facts<'s>(model: &Model, workload: usize, stored: Option<&'s Stored>) -> Vec<(&'s str, String)> {
    let subject = &model.workloads[workload];
    let arenas = stored.map_or(&[][..], |stored| &stored.arenas);
    let load = if arenas.is_empty() {
        exact_bytes(subject.load)
    } else {
        exact_bytes(subject.load) + ", the sum over the arenas"
    };
    let mut pairs = vec![("buffers", format_count(subject.buffers)), ("load", load)];
    pairs.extend(arenas.iter().map(|(name, load)| (name.as_str(), load.clone())));
    if let Some(stored) = stored {
        pairs.push(("steps", format_count(u64::from(stored.steps))));
        pairs.push(("sum of sizes", exact_bytes(stored.total)));
        if stored.in_place > 0 {
            pairs.push(("in-place permissions", format_count(stored.in_place as u64)));
        }
    }
    if let Some(best) = model.cells_of(workload).map(|cell| cell.best_bound).max() {
        let own = model.cells_of(workload).filter(|cell| cell.bound == best);
        let evidence = own.map(|cell| cell.bound_evidence.name()).min();
        pairs.push(("best bound", format!("{}, by {}", exact_bytes(best), evidence.unwrap_or("none"))));
    }
    pairs.push(("instance", subject.instance.clone()));
    pairs
}
