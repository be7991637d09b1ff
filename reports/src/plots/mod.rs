//! Plots of records and of instances.

pub(crate) mod bars;
pub(crate) mod gap;
pub(crate) mod lines;
mod load;
pub(crate) mod memory;
pub(crate) mod profile;
mod sizes;
pub(crate) mod strip;
pub(crate) mod time;

pub use load::load_curve_plot;
pub use sizes::size_distribution_plot;

use crate::drawing::palette::{self, Rgb};

/// The look of a planner: the same in every plot of a report.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Series {
    pub(crate) label: String,
    /// Its number among all planners of the report.
    pub(crate) number: usize,
}

impl Series {
    pub(crate) const fn color(&self) -> Rgb {
        palette::series(self.number)
    }

    pub(crate) const fn shape(&self) -> crate::drawing::Shape {
        palette::shape(self.number)
    }
}
