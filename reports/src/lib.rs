//! Tables, plots and pages, made from records alone.
//!
//! A [`Report`] is one folder that opens from disk, without a server or network. The same records give the same bytes
//! every time. The pictures of a single instance or plan ([`placement_map`], [`fragmentation_map`],
//! [`load_curve_plot`], [`size_distribution_plot`], [`ShowPage`]) need no records.

mod data;
mod error;
mod figures;
mod pages;
mod report;
mod site;

pub use data::nets::{PoolTotal, PoolTotals};
pub use data::own::{Held, OwnPlacement};
pub use data::ratios::Named;
pub use error::ReportError;
pub use figures::{
    Drawing, MapOptions, fragmentation_map, load_curve_plot, placement_map, size_distribution_plot,
};
pub use pages::ratios::Comparison;
pub use pages::scale::scale_files;
pub use pages::show::ShowPage;
pub use planlab_results::format;
pub use report::{Report, Written};
pub use site::viewer::CallStacks;
pub use site::{KnownNets, KnownPlanner, ReportOptions};
