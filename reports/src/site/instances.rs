//! What pages show of a store: its instances, the maps of its plans, and drawings of nets, one file each.

use std::borrow::Cow;
use std::collections::BTreeMap;

use planlab_dsa::{Bytes, Digest, Instance, Labels, VerifiedPlan};
use planlab_files::NewFolder;
use planlab_results::format::format_bytes;
use planlab_results::{Record, load_instance, load_plan};

use super::names::file_slug;
use super::sources::{Drawn, Mapped, Maps, Site, Stored};
use super::words::reason_pieces;
use crate::ReportError;
use crate::data::instances::clock::Clock;
use crate::data::nets::models::{Question, model_cases};
use crate::data::planners::chosen::choose_cells;
use crate::figures::{
    ArenaFacts, MapOptions, fragmentation_map, load_curve_plot, map_colours, placement_map,
    size_distribution_plot,
};
use crate::site::parts::viewer::{Panel, Scene, ViewerPart};

/// Larger instances have pictures instead of viewers, whose pages would take megabytes each.
const VIEWED: usize = 20_000;

/// The first rows of cells, by cell.
type Records = BTreeMap<String, Record>;

/// Draws the instances of all workloads, and writes the maps of the chosen plans into the folder. Unreadable files are
/// among the findings.
pub(crate) fn draw_instances(
    site: &Site<'_>,
    folder: &mut NewFolder,
) -> Result<Vec<Option<Stored>>, ReportError> {
    let chosen = choose_cells(site.model, &site.options.baseline, site.options.maps);
    let cells = chosen.iter().flatten().map(|&cell| &*site.model.cells[cell].cell);
    let records = site.model.tables.first_records(&cells.collect::<Vec<_>>())?.into_iter();
    let records: Records = records.map(|record| (record.cell.clone(), record)).collect();
    let stored =
        |(workload, chosen): (usize, &Vec<usize>)| store_pictures(site, folder, workload, (chosen, &records));
    chosen.iter().enumerate().map(stored).collect()
}

fn store_pictures(
    site: &Site<'_>,
    folder: &mut NewFolder,
    workload: usize,
    chosen: (&[usize], &Records),
) -> Result<Option<Stored>, ReportError> {
    let model = site.model;
    let digest = model.workloads[workload].instance.parse::<Digest>().ok();
    let Some((instance, labels)) = digest.and_then(|digest| load_instance(site.store, digest).ok()) else {
        return Ok(None);
    };
    let best = model.best_cell(workload).and_then(|cell| cell.height);
    let (mapped, panels) = draw_maps(site, folder, workload, (&instance, &labels), chosen)?;
    let viewer =
        (!panels.is_empty()).then(|| ViewerPart::new(&build_scene(&instance, &labels, panels), CAPTION));
    Ok(Some(Stored {
        steps: instance.horizon().get(),
        total: instance.total_size().get(),
        in_place: instance.in_place().len(),
        arenas: arena_loads(&instance, &labels),
        load_curve: load_curve_plot(&instance, best.map(Bytes::new)),
        sizes: size_distribution_plot(&instance),
        mapped,
        viewer,
    }))
}

const CAPTION: &str = "Time across, address up, on the same axes; above, the bytes in use at each step.";

fn build_scene<'a>(instance: &'a Instance, labels: &'a Labels, panels: Vec<Panel>) -> Scene<'a> {
    Scene { panels, ..Scene::new(Cow::Borrowed(instance), Cow::Borrowed(labels)) }
}

/// The load of each of several arenas, and its step as the file has it.
fn arena_loads(instance: &Instance, labels: &Labels) -> Vec<(String, String)> {
    let clock = Clock::from_labels(instance, labels);
    let line = |arena: ArenaFacts| {
        let step = clock.original_step(arena.load.step);
        let load = format!("load {} at step {step}", format_bytes(arena.load.bytes.get()));
        let capacity = arena.capacity.map(|capacity| format!(", capacity {}", format_bytes(capacity)));
        Some((arena.name?, load + &capacity.unwrap_or_default()))
    };
    ArenaFacts::list_arenas(instance).into_iter().filter_map(line).collect()
}

/// The chosen plans that can be read, and how the viewer shows them.
fn draw_maps(
    site: &Site<'_>,
    folder: &mut NewFolder,
    workload: usize,
    (instance, labels): (&Instance, &Labels),
    (chosen, records): (&[usize], &Records),
) -> Result<(Vec<Mapped>, Vec<Panel>), ReportError> {
    let model = site.model;
    let heights = || chosen.iter().filter_map(|&cell| model.cells[cell].height);
    // One axis for all, but not so high for a bad plan that the good ones cannot be seen.
    let least = heights().min().unwrap_or(0);
    let top = heights().filter(|&height| height <= least.saturating_add(least / 2)).max().unwrap_or(0);
    let (mut mapped, mut panels): (Vec<Mapped>, Vec<Panel>) = (Vec::new(), Vec::new());
    for &number in chosen {
        let cell = &model.cells[number];
        let digest = cell.plan.as_deref().and_then(|plan| plan.parse::<Digest>().ok());
        let Some(digest) = digest else { continue };
        let Some(row) = records.get(&*cell.cell) else { continue };
        // A stored plan is only a claim; the audit reports missing or false ones.
        let Ok(plan) = load_plan(site.store, digest) else { continue };
        let Ok(plan) = instance.verify(plan) else { continue };
        let label = &model.planner_of_cell(cell).label;
        let is_same = |map: &&Mapped| model.cells[map.cell].planner_number == cell.planner_number;
        let again = match mapped.iter().filter(is_same).count() {
            0 => String::new(),
            before => format!("-{}", before + 1),
        };
        let name = format!("{}--{}{again}", site.slugs[workload], file_slug(label));
        // A scene shows one arena.
        let alone = (instance.arenas().len() == 1).then(|| {
            let panel = Panel::from_plan(label, instance, &plan);
            Scene { bound: Some(cell.best_bound), ..build_scene(instance, labels, vec![panel]) }
        });
        let why = alone.as_ref().map(reason_pieces).unwrap_or_default();
        let maps = match alone {
            Some(alone) if instance.len() <= VIEWED => {
                let viewer = ViewerPart::new(&alone, CAPTION);
                panels.extend(alone.panels);
                Maps::Viewer(viewer)
            }
            _ => {
                let title = format!("{label} on {}", model.workloads[workload].key);
                let top = top.max(cell.height.unwrap_or(0));
                let options =
                    MapOptions { top: Some(top), title, ..MapOptions::default().with_size(900, 560) };
                draw_pictures(folder, &name, (instance, labels), &plan, &options)?
            }
        };
        let (page, colours) = (format!("cells/{name}.html"), map_colours(instance, labels));
        mapped.push(Mapped { cell: number, row: row.clone(), page, maps, why, colours });
    }
    Ok((mapped, panels))
}

fn draw_pictures(
    folder: &mut NewFolder,
    name: &str,
    (instance, labels): (&Instance, &Labels),
    plan: &VerifiedPlan<'_>,
    options: &MapOptions,
) -> Result<Maps, ReportError> {
    let (placement, free) = (format!("maps/{name}.png"), format!("maps/{name}-free.png"));
    let drawing = placement_map(instance, labels, Some(plan), options);
    folder.put_file(&placement, &drawing.to_png()?)?;
    folder.put_file(&free, &fragmentation_map(instance, plan, options).to_png()?)?;
    Ok(Maps::Pictures { placement, free, size: drawing.size() })
}

/// Draws each net with questions about its graph, at its smallest batch, inference before training.
pub(crate) fn draw_nets(site: &Site<'_>, folder: &mut NewFolder) -> Result<Vec<Drawn>, ReportError> {
    let mut cases = model_cases(site.model, site.replays);
    cases.retain(|case| case.question == Question::Plan && case.orders.is_some());
    cases.sort_by_key(|case| (case.key.group().to_owned(), case.is_trained(), case.batch, case.key.len()));
    cases.dedup_by(|a, b| a.key.group() == b.key.group());
    let mut drawn = Vec::new();
    for case in cases {
        let Some(svg) = (site.options.nets.draw)(&case.key) else { continue };
        let file = format!("nets/{}.svg", file_slug(&case.key));
        folder.put_file(&file, svg.as_bytes())?;
        drawn.push(Drawn { size: picture_size(&svg), file, key: case.key });
    }
    Ok(drawn)
}

/// Width and height of a picture. Graphviz gives points; 4 of them are about 5 pixels.
fn picture_size(svg: &str) -> (u32, u32) {
    let number = |name: &str| {
        let (_, rest) = svg.split_once(name)?;
        rest.split(|c: char| !c.is_ascii_digit()).next()?.parse::<u32>().ok()
    };
    let of = |name| number(name).unwrap_or(800).saturating_mul(5) / 4;
    (of(" width=\""), of(" height=\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_picture_says_its_size() {
        assert_eq!(picture_size("<svg width=\"400pt\" height=\"88.5pt\">"), (500, 110));
        assert_eq!(picture_size("<svg>"), (1000, 1000));
    }
}
