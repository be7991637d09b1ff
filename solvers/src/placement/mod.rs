//! Planners that give each buffer an offset.

pub mod approximation;
pub mod baseline;
mod canonical;
mod carry;
pub(crate) mod columns;
mod demands;
pub mod exact;
pub(crate) mod first_at_most;
pub mod flow;
pub mod greedy;
pub(crate) mod luby;
mod occupancy;
mod order;
mod plan_cache;
mod portfolio;
mod range_max;
mod scaled;
pub mod search;
pub mod sharing;
pub mod skyline;
mod start_from_hints;
#[cfg(test)]
pub(crate) mod testing;
mod top_padding;
mod tops;

pub use canonical::Canonical;
pub use carry::{CarryError, carry};
pub use order::Order;
pub use plan_cache::{CachedPlan, Effort, PlanCache};
pub use portfolio::Portfolio;
pub use scaled::Scaled;
