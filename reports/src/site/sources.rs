//! The data that pages are made from, with what is drawn of it.

use std::path::Path;

use planlab_results::audit::Finding;
use planlab_results::table::CellValue;
use planlab_results::{Record, WorkloadKey};

use super::options::{KnownPlanner, ReportOptions};
use super::page::Piece;
use super::parts::viewer::ViewerPart;
use crate::data::frameworks::Frameworks;
use crate::data::planners::compare::planner_key;
use crate::data::planners::model::Model;
use crate::data::replays::Replays;
use crate::data::schedules::Schedules;
use crate::figures::Drawing;

pub(crate) struct Site<'r> {
    /// The folder of the records.
    pub(crate) store: &'r Path,
    pub(crate) options: &'r ReportOptions,
    pub(crate) model: &'r Model,
    pub(crate) replays: &'r Replays,
    pub(crate) schedules: &'r Schedules,
    pub(crate) frameworks: &'r Frameworks,
    pub(crate) findings: &'r [Finding],
    /// The short names of the model's workloads.
    pub(crate) slugs: &'r [String],
    /// The short names of the model's planners.
    pub(crate) planner_slugs: &'r [String],
    /// The instances of the model's workloads, if the store has them; filled once they are drawn.
    pub(crate) instances: Vec<Option<Stored>>,
    pub(crate) drawn: Vec<Drawn>,
}

impl Site<'_> {
    pub(crate) fn page_of(&self, workload: usize) -> String {
        format!("workloads/{}.html", self.slugs[workload])
    }

    /// The name of the files of one of the model's workloads.
    pub(crate) fn files_of(&self, workload: usize) -> String {
        format!("workloads/{}", self.slugs[workload])
    }

    /// A workload, with a link to its page if it has one.
    pub(crate) fn workload_link(&self, workload: &str) -> CellValue {
        match self.model.workload_of(workload) {
            Some(at) => CellValue::Link(workload.to_owned(), self.page_of(at)),
            None => CellValue::text(workload),
        }
    }

    pub(crate) fn page_of_planner(&self, planner: usize) -> String {
        format!("planners/{}.html", self.planner_slugs[planner])
    }

    /// A planner with its mark and a link to its page.
    pub(crate) fn link_planner(&self, planner: usize) -> CellValue {
        CellValue::Link(self.model.marked_name(planner), self.page_of_planner(planner))
    }

    pub(crate) fn known_planner(&self, planner: usize) -> Option<&KnownPlanner> {
        let label = &self.model.all.planners[planner].label;
        self.options.planners.get(planner_key(label))
    }

    /// The plans of a workload with maps.
    pub(crate) fn maps_of(&self, workload: usize) -> &[Mapped] {
        self.instances[workload].as_ref().map_or(&[], |stored| &stored.mapped)
    }
}

/// An instance of the store.
pub(crate) struct Stored {
    pub(crate) steps: u32,
    /// Sum of the sizes, bytes.
    pub(crate) total: u64,
    /// Permissions to overwrite in place.
    pub(crate) in_place: usize,
    /// Each arena and its load, if there are several.
    pub(crate) arenas: Vec<(String, String)>,
    pub(crate) load_curve: Drawing,
    pub(crate) sizes: Drawing,
    pub(crate) mapped: Vec<Mapped>,
    /// All mapped plans on the same axes, unless there are pictures instead.
    pub(crate) viewer: Option<ViewerPart>,
}

/// A plan with maps; file names are relative to the report's folder.
#[derive(Clone, Debug)]
pub(crate) struct Mapped {
    /// The cell's index in the model.
    pub(crate) cell: usize,
    /// Its first row, with all fields.
    pub(crate) row: Record,
    pub(crate) page: String,
    pub(crate) maps: Maps,
    /// Why the plan is not lower.
    pub(crate) why: Vec<Piece>,
    /// What the colours of pictures mean: `colour by category`.
    pub(crate) colours: &'static str,
}

/// How a plan is shown.
#[derive(Clone, Debug)]
pub(crate) enum Maps {
    Viewer(ViewerPart),
    Pictures {
        placement: String,
        /// The fragmentation map.
        free: String,
        /// In pixels.
        size: (u32, u32),
    },
}

/// A drawing of a net.
#[derive(Clone, Debug)]
pub(crate) struct Drawn {
    pub(crate) key: WorkloadKey,
    /// The file, relative to the report's folder.
    pub(crate) file: String,
    /// Width and height in pixels.
    pub(crate) size: (u32, u32),
}
