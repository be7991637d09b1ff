//! Tables, plots and pages, made from records alone.
//!
//! A [`Report`] is one folder that opens from disk: no server, no network, and the same bytes whenever it is
//! made again from the same records. The pictures of a single instance or plan ([`placement_map`],
//! [`fragmentation_map`], [`load_curve_plot`], [`size_distribution_plot`], [`show_page`]) need no records.

mod chosen;
mod claims;
mod drawing;
mod error;
pub mod format;
mod maps;
mod model;
mod nets;
mod pages;
mod paper;
mod plots;
mod replays;
mod report;
mod table;

pub use drawing::Drawing;
pub use error::ReportError;
pub use maps::{MapOptions, fragmentation_map, placement_map};
pub use nets::{PoolTotal, PoolTotals};
pub use pages::show::show_page;
pub use plots::{load_curve_plot, size_distribution_plot};
pub use report::{Report, ReportOptions, Written};
