//! A free list with a window: blocks by reference counts, tensors in execution order.
//!
//! Each tensor counts its readers. In execution order, a tensor takes a block of the free list if the ratio of
//! their sizes lies in a window, else a new block. Then each input of its operation has one reader less, and a
//! block without readers goes to the free list. The windows 1, 2, 4, 8 and 16 are tried, and the plan with the
//! least memory is kept.
//!
//! # References
//!
//! 1. A Chinese patent on training with checkpoints and a free list (Zhejiang), its claims on allocation. Its number
//!    is not known here, and it publishes no figures to compare with.
//! 2. NNVM, `PlanMemory` with `NNVM_AUTO_SEARCH_MATCH_RANGE`, the source of the free list and the windows.
//!
//! # Complexity
//!
//! O(n log n) for each window.
//!
//! # Deviations from the claims
//!
//! - The claims do not say which of several blocks is taken: here the smallest that is large enough, else the
//!   largest, which grows to the size of the tensor, as in `mxnet-sharing`.
//! - The claims do not mention operations that overwrite an input; here no operation does. With in-place
//!   operations, as in NNVM, the planner would be `mxnet-sharing`, except for the order of tensors that begin
//!   together (here the lower id first, there the larger tensor).
//! - The search for checkpoints is left out, since it changes the graph.

use planlab_dsa::{Descriptor, Halt, Planner, Run};

use super::block_sharing::BlockSharing;
use super::mxnet::{MATCH_RANGES, try_match_ranges};
use crate::placement::sharing::objects::HONOURS;

/// Blocks of a free list within a window; key `patent-free-list`.
#[derive(Clone, Copy, Debug, Default)]
pub struct PatentFreeList;

impl PatentFreeList {
    /// The rules for each window.
    #[must_use]
    pub fn window_rules() -> BlockSharing {
        BlockSharing::default().with_in_place(false).with_largest_first(false)
    }
}

impl Planner for PatentFreeList {
    fn descriptor(&self) -> Descriptor {
        Descriptor {
            key: "patent-free-list".into(),
            summary: "free list by reference counts, sizes within a window (1 to 16, the best kept)".into(),
            honours: HONOURS,
            reference: "a Chinese patent (Zhejiang) on checkpoints with a free list; NNVM's PlanMemory",
            complexity: "n log n",
            ..Descriptor::default()
        }
    }

    fn plan(&self, run: &mut Run<'_>) -> Result<(), Halt> {
        try_match_ranges(run, Self::window_rules().with_exact_range(true), &MATCH_RANGES)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::placement::sharing::MxnetSharing;
    use crate::placement::testing::{planned_offsets, test_instance};

    #[test]
    fn the_window_is_searched() {
        // With a window of 1, 4 leaves the 8 to the buffer after it; with any other it takes it.
        let rows = test_instance(&[(8, 0, 1), (4, 1, 2), (8, 1, 2)]);
        assert_eq!(planned_offsets(&PatentFreeList, &rows), [0, 8, 0]);
    }

    #[test]
    fn buffers_that_begin_together_take_blocks_in_the_order_of_their_ids() {
        let rows = test_instance(&[(8, 0, 1), (5, 1, 2), (9, 1, 2)]);
        assert_eq!(planned_offsets(&PatentFreeList, &rows), [0, 0, 8]);
        assert_eq!(planned_offsets(&MxnetSharing::default(), &rows), [0, 9, 0]);
    }
}
