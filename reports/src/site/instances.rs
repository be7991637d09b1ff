//! The instances of a store, and the maps of its plans, for pages.

use std::collections::BTreeMap;

use planlab_dsa::{Bytes, Digest, Instance, Labels};
use planlab_files::NewFolder;
use planlab_results::{Record, load_instance, load_plan};

use super::Site;
use super::names::slug;
use crate::ReportError;
use crate::data::chosen::choose;
use crate::figures::{
    Drawing, MapOptions, fragmentation_map, load_curve_plot, map_colours, placement_map,
    size_distribution_plot,
};

/// An instance of the store.
pub(crate) struct Stored {
    pub(crate) steps: u32,
    /// Sum of the sizes, bytes.
    pub(crate) total: u64,
    /// Permissions to overwrite in place.
    pub(crate) in_place: usize,
    pub(crate) arenas: usize,
    pub(crate) load_curve: Drawing,
    pub(crate) sizes: Drawing,
    pub(crate) mapped: Vec<Mapped>,
}

/// A plan with maps; file names are relative to the report's folder.
#[derive(Clone, Debug)]
pub(crate) struct Mapped {
    /// The cell's index in the model.
    pub(crate) cell: usize,
    /// Its first row, with all fields.
    pub(crate) row: Record,
    /// The cell's page.
    pub(crate) page: String,
    pub(crate) placement: String,
    /// The fragmentation map.
    pub(crate) free: String,
    /// The pictures' size in pixels.
    pub(crate) size: (u32, u32),
    /// What the colours mean: `colour by category`.
    pub(crate) colours: &'static str,
}

impl Mapped {
    /// What the placement map shows.
    pub(crate) fn caption(&self) -> String {
        format!("Placement: time across, address up, {}.", self.colours)
    }
}

/// The first rows of cells, by cell.
type Records = BTreeMap<String, Record>;

/// Draws the instances of all workloads, and writes the maps of the chosen plans into the folder. Unreadable files are
/// among the findings.
pub(crate) fn draw(site: &Site<'_>, folder: &mut NewFolder) -> Result<Vec<Option<Stored>>, ReportError> {
    let chosen = choose(site.model, &site.options.baseline, site.options.maps);
    let cells = chosen.iter().flatten().map(|&cell| &*site.model.cells[cell].cell);
    let records = site.model.tables.first_records(&cells.collect::<Vec<_>>())?.into_iter();
    let records: Records = records.map(|record| (record.cell.clone(), record)).collect();
    let stored =
        |(workload, chosen): (usize, &Vec<usize>)| stored(site, folder, workload, (chosen, &records));
    chosen.iter().enumerate().map(stored).collect()
}

fn stored(
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
    Ok(Some(Stored {
        steps: instance.horizon().get(),
        total: instance.total().get(),
        in_place: instance.in_place().len(),
        arenas: instance.arenas().len(),
        load_curve: load_curve_plot(&instance, best.map(Bytes::new)),
        sizes: size_distribution_plot(&instance),
        mapped: maps(site, folder, workload, (&instance, &labels), chosen)?,
    }))
}

fn maps(
    site: &Site<'_>,
    folder: &mut NewFolder,
    workload: usize,
    (instance, labels): (&Instance, &Labels),
    (chosen, records): (&[usize], &Records),
) -> Result<Vec<Mapped>, ReportError> {
    let model = site.model;
    let heights = || chosen.iter().filter_map(|&cell| model.cells[cell].height);
    // One axis for all, but not so high for a bad plan that the good ones cannot be seen.
    let least = heights().min().unwrap_or(0);
    let top = heights().filter(|&height| height <= least.saturating_add(least / 2)).max().unwrap_or(0);
    let mut mapped: Vec<Mapped> = Vec::new();
    for &number in chosen {
        let cell = &model.cells[number];
        let digest = cell.plan.as_deref().and_then(|plan| plan.parse::<Digest>().ok());
        let Some(digest) = digest else { continue };
        let Some(row) = records.get(&*cell.cell) else { continue };
        // A stored plan is only a claim; the audit reports missing or false ones.
        let Ok(plan) = load_plan(site.store, digest) else { continue };
        let Ok(plan) = instance.verify(plan) else { continue };
        let label = slug(&model.planner(cell).label);
        let again = match mapped
            .iter()
            .filter(|map| model.cells[map.cell].planner_number == cell.planner_number)
            .count()
        {
            0 => String::new(),
            before => format!("-{}", before + 1),
        };
        let name = format!("{}--{label}{again}", site.slugs[workload]);
        let title = format!("{} on {}", model.planner(cell).label, model.workloads[workload].key);
        let options = MapOptions::default()
            .with_size(900, 560)
            .with_top(top.max(cell.height.unwrap_or(0)))
            .with_title(title);
        let drawing = placement_map(instance, labels, Some(&plan), &options);
        let map = Mapped {
            cell: number,
            row: row.clone(),
            page: format!("cells/{name}.html"),
            placement: format!("maps/{name}.png"),
            free: format!("maps/{name}-free.png"),
            size: drawing.size(),
            colours: map_colours(instance, labels),
        };
        folder.put(&map.placement, &drawing.to_png()?)?;
        folder.put(&map.free, &fragmentation_map(instance, &plan, &options).to_png()?)?;
        mapped.push(map);
    }
    Ok(mapped)
}
