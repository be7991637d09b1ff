//! Greedy planners: an order of the buffers and a rule for the offset of each.

mod best_fit_gap;
mod by_breadth;
mod by_size;
mod first_fit;
mod placer;

pub use best_fit_gap::BestFitGap;
pub use by_breadth::GreedyByBreadth;
pub use by_size::GreedyBySize;
pub use first_fit::FirstFit;
pub(crate) use placer::{Rule, place_in_order, plan_in_order};

use planlab_dsa::Honours;

/// What every greedy planner here takes into account: all that an instance may say.
pub(crate) const HONOURS: Honours = Honours {
    in_place: true,
    pins: true,
    pauses: true,
    alignment: true,
    arenas: true,
    apart: true,
    hint: false,
    work_limit: true,
    threads: false,
};
