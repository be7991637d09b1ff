//! Skyline planners: the lowest point of the plan's outline decides what is placed next.

mod best_fit;
mod best_fit_reference;
mod longest_within;

pub use best_fit::BestFit;
pub(crate) use best_fit::best_fit;
pub use best_fit_reference::BestFitReference;
