//! Greedy planners: an order of the buffers and a rule that chooses the offset of each.

mod by_breadth;
mod by_size;
mod executorch;
mod executorch_closest;
mod fit;
mod oneflow;
mod placer;
mod somas;
mod tflite_arena;
mod tflm_greedy;
mod tvm;
mod xla;

pub use by_breadth::GreedyByBreadth;
pub(crate) use by_breadth::broadest_first;
pub use by_size::GreedyBySize;
pub use executorch::Executorch;
pub use executorch_closest::ExecutorchClosest;
pub use fit::Fit;
pub use oneflow::{Insertion as OneFlowInsertion, OneFlow, Order as OneFlowOrder};
pub(crate) use placer::{Rule, first_fit, place_at_most, place_in_order, plan_in_order};
pub use somas::Somas;
pub use tflite_arena::TfliteArena;
pub use tflm_greedy::TflmGreedy;
pub use tvm::Tvm;
pub use xla::Xla;

use planlab_dsa::Honours;

/// What most greedy planners here support: every feature of an instance.
pub(crate) const HONOURS: Honours = Honours {
    in_place: true,
    pins: true,
    pauses: true,
    alignment: true,
    arenas: true,
    apart: true,
    work_limit: true,
    ..Honours::NONE
};
