//! Statuses in words. Apart from the types, so that the header does not get it.

use std::ffi::CStr;

use crate::types::planlab_status;

impl planlab_status {
    /// Every status, in words.
    pub const TEXTS: [(Self, &'static CStr); 13] = [
        (Self::PLANLAB_OPTIMAL, c"there is a plan, and none is lower"),
        (Self::PLANLAB_FEASIBLE, c"there is a plan; a lower one may exist"),
        (Self::PLANLAB_INFEASIBLE, c"no plan fits the capacity"),
        (Self::PLANLAB_UNKNOWN, c"no plan was found within the limits"),
        (Self::PLANLAB_ERROR_NULL, c"a pointer is null that must not be"),
        (Self::PLANLAB_ERROR_MISALIGNED, c"a pointer is not aligned for what it points to"),
        (Self::PLANLAB_ERROR_STRUCT_SIZE, c"a struct_size is not the size of the struct"),
        (Self::PLANLAB_ERROR_OPTION, c"an option is out of its range"),
        (Self::PLANLAB_ERROR_PLANNER, c"there is no planner of that key"),
        (Self::PLANLAB_ERROR_BUFFER, c"a buffer is not well formed"),
        (Self::PLANLAB_ERROR_TOO_MANY, c"there are more than 2^32 - 1 buffers"),
        (Self::PLANLAB_ERROR_UNSUPPORTED, c"the planner cannot honour what the buffers ask for"),
        (Self::PLANLAB_ERROR_FAILED, c"the planner failed"),
    ];

    /// Whether offsets were written.
    #[must_use]
    pub const fn has_plan(self) -> bool {
        matches!(self, Self::PLANLAB_OPTIMAL | Self::PLANLAB_FEASIBLE)
    }
}
