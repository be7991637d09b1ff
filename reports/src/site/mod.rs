//! Pages as data, and the one writer that turns them into HTML, CSV, LaTeX and Markdown.

pub(crate) mod grid;
mod html;
mod instances;
pub(crate) mod markdown;
mod names;
pub(crate) mod page;
pub(crate) mod report;
mod writer;

use planlab_results::audit::Finding;
use planlab_results::table::Value;

use crate::ReportOptions;
use crate::data::model::Model;
use crate::data::replays::Replays;

pub(crate) use html::page_alone;
pub(crate) use instances::{Mapped, Stored};
pub(crate) use names::slug;

/// What pages are made of.
pub(crate) struct Site<'r> {
    pub(crate) options: &'r ReportOptions,
    pub(crate) model: &'r Model,
    pub(crate) replays: &'r Replays,
    /// What the audit found.
    pub(crate) findings: &'r [Finding],
    /// The short names of the model's workloads.
    slugs: &'r [String],
    /// The instances of the model's workloads, where the store holds them.
    pub(crate) instances: Vec<Option<Stored>>,
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

    /// A workload, with the way to its page where it has one.
    pub(crate) fn link(&self, workload: &str) -> Value {
        match self.model.workloads.iter().position(|known| known.key == workload) {
            Some(at) => Value::Link(workload.to_owned(), self.page_of(at)),
            None => Value::text(workload),
        }
    }

    /// The plans of a workload that have maps.
    pub(crate) fn mapped(&self, workload: usize) -> &[Mapped] {
        self.instances[workload].as_ref().map_or(&[], |stored| &stored.mapped)
    }
}
