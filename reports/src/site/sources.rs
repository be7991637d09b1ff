//! The data that pages are made from, with what is drawn of it.

use std::path::Path;

use planlab_results::audit::Finding;
use planlab_results::table::CellValue;

use super::options::{KnownPlanner, ReportOptions};
use super::stored::{Drawn, Mapped, Stored};
use crate::data::frameworks::Frameworks;
use crate::data::planners::compare::planner_key;
use crate::data::planners::model::Model;
use crate::data::replays::Replays;
use crate::data::schedules::Schedules;

/// The data that pages are made from.
pub(crate) struct Site<'r> {
    /// The folder of the records.
    pub(crate) store: &'r Path,
    pub(crate) options: &'r ReportOptions,
    pub(crate) model: &'r Model,
    pub(crate) replays: &'r Replays,
    pub(crate) schedules: &'r Schedules,
    pub(crate) frameworks: &'r Frameworks,
    /// The findings of the audit.
    pub(crate) findings: &'r [Finding],
    /// The short names of the model's workloads.
    pub(crate) slugs: &'r [String],
    /// The short names of the model's planners.
    pub(crate) planner_slugs: &'r [String],
    /// The instances of the model's workloads, if the store has them; filled once they are drawn.
    pub(crate) instances: Vec<Option<Stored>>,
    /// The drawings of nets.
    pub(crate) drawn: Vec<Drawn>,
}

impl Site<'_> {
    /// The page of one of the model's workloads.
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

    /// The page of one of the model's planners.
    pub(crate) fn page_of_planner(&self, planner: usize) -> String {
        format!("planners/{}.html", self.planner_slugs[planner])
    }

    /// A planner with its mark and a link to its page.
    pub(crate) fn link_planner(&self, planner: usize) -> CellValue {
        CellValue::Link(self.model.marked_name(planner), self.page_of_planner(planner))
    }

    /// What is known of one of the model's planners.
    pub(crate) fn known_planner(&self, planner: usize) -> Option<&KnownPlanner> {
        let label = &self.model.all.planners[planner].label;
        self.options.planners.get(planner_key(label))
    }

    /// The plans of a workload with maps.
    pub(crate) fn maps_of(&self, workload: usize) -> &[Mapped] {
        self.instances[workload].as_ref().map_or(&[], |stored| &stored.mapped)
    }
}
