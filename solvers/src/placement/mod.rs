//! Planners that give each buffer an offset.

pub mod approximation;
pub mod baseline;
pub mod exact;
pub mod flow;
pub mod greedy;
mod order;
pub(crate) mod portfolio;
pub mod search;
pub mod sharing;
pub mod skyline;
mod start_from_hints;
#[cfg(test)]
pub(crate) mod testing;

pub use order::Order;
pub use portfolio::{
    CachedPlan, Canonical, CarryError, Effort, PlanCache, Portfolio, Scaled, carry_plan, plan_in_any_case,
};
