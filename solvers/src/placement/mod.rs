//! Planners that give each buffer an offset.

pub mod approximation;
pub mod baseline;
pub mod exact;
pub mod flow;
pub mod greedy;
mod order;
mod portfolio;
mod scaling;
pub mod search;
pub mod sharing;
pub mod skyline;
mod start_from_hints;
#[cfg(test)]
pub(crate) mod testing;
mod top_padding;

pub use order::Order;
pub use portfolio::Portfolio;
pub use scaling::{CachedPlan, Canonical, CarryError, Effort, PlanCache, Scaled, carry};
