//! Skyline planners: the lowest point of the plan's outline decides what comes next.

mod best_fit_reference;

pub use best_fit_reference::BestFitReference;
