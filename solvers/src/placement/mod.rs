//! Planners that give each buffer an offset.

pub mod approximation;
pub mod baseline;
pub(crate) mod columns;
mod demands;
pub mod exact;
pub mod greedy;
mod occupancy;
mod order;
mod portfolio;
mod range_max;
pub mod search;
pub mod skyline;
mod start_from_hints;

pub use order::Order;
pub use portfolio::Portfolio;
