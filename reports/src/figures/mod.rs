//! Figures: charts of records and instances, and maps of plans.
//!
//! [`figure`](drawing::figure) makes one of a closure over a drawing area of plotters. [`chart`] contains the common parts of charts: axes
//! with our units, marks, the legend.

mod arenas;
mod backend;
pub(crate) mod chart;
pub(crate) mod coord;
mod drawing;
pub(crate) mod layout;
mod maps;
pub(crate) mod palette;
pub(crate) mod plots;
pub(crate) mod raster;
#[cfg(test)]
pub(crate) mod samples;

pub(crate) use arenas::ArenaFacts;
pub use drawing::Drawing;
pub(crate) use drawing::{Area, Drawn, figure};
pub use maps::{MapOptions, placement_map};
pub(crate) use maps::{fragmentation_map, map_colours};
pub(crate) use palette::Series;
pub use plots::load::load_curve_plot;
pub(crate) use plots::sizes::size_distribution_plot;
