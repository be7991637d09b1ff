//! Plans of one net at several batch sizes: a common form, plans carried over, and plans kept for the next time.

mod canonical;
mod carry;
mod plan_cache;
mod scaled;

pub use canonical::Canonical;
pub use carry::{CarryError, carry};
pub use plan_cache::{CachedPlan, Effort, PlanCache};
pub use scaled::Scaled;
