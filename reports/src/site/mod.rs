//! Pages as data, and their common writer for HTML, CSV, LaTeX and Markdown.

mod drawn;
mod instances;
mod names;
mod options;
pub(crate) mod output;
pub(crate) mod page;
pub(crate) mod parts;
mod sources;
mod stored;
pub(crate) mod words;

pub(crate) use drawn::draw_nets;
pub(crate) use instances::draw_instances;
pub(crate) use names::{file_slug, make_unique};
pub use options::{KnownNets, KnownPlanner, ReportOptions};
pub(crate) use sources::Site;
pub(crate) use stored::{Mapped, Maps, Stored};
