//! Pages as data, and their common writer for HTML, CSV, LaTeX and Markdown.

mod instances;
mod names;
mod options;
pub(crate) mod output;
pub(crate) mod page;
pub(crate) mod parts;
mod sources;
pub(crate) mod words;

pub(crate) use instances::{draw_instances, draw_nets};
pub(crate) use names::{file_slug, make_unique};
pub use options::{KnownNets, KnownPlanner, ReportOptions};
pub(crate) use sources::{Mapped, Maps, Site, Stored};
