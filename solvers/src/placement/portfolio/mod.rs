//! Planners made of other planners, and plans that are used again: for another batch size, and the next time.

mod canonical;
mod carry;
mod plan_cache;
mod planner;
mod scaled;
mod top_padding;

pub use canonical::Canonical;
pub use carry::{CarryError, carry_plan};
pub use plan_cache::{CachedPlan, Effort, PlanCache};
pub use planner::{Portfolio, plan_in_any_case};
pub use scaled::Scaled;
