//! What crosses the border. The comments here are those of `planlab.h`, for readers of C.
#![allow(non_camel_case_types, reason = "the names that C has them by")]

use std::ffi::c_char;
use std::mem::size_of;

/// The version of this interface. It counts up when a program that was compiled with an older header would no longer
/// work; structs grow at their end without it (see struct_size).
pub const PLANLAB_ABI_VERSION: u32 = 1;

/// Bytes of planlab_result.message, the terminating 0 included.
pub const PLANLAB_MESSAGE_SIZE: usize = 256;

/// What came of a call. Negative: the question was wrong or could not be answered, and nothing is written to offsets.
#[repr(i32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum planlab_status {
    /// There is a plan, and it is proved that none is lower.
    PLANLAB_OPTIMAL = 0,
    /// There is a plan. A lower one may exist: no planner proved otherwise within the limits, or the plan fits the
    /// capacity, which is all that was asked for.
    PLANLAB_FEASIBLE = 1,
    /// It is proved that no plan fits the capacity. Nothing is written to offsets.
    PLANLAB_INFEASIBLE = 2,
    /// No plan (that fits the capacity) was found within the limits. Nothing is written to offsets.
    PLANLAB_UNKNOWN = 3,
    /// A pointer that must not be null is null.
    PLANLAB_ERROR_NULL = -1,
    /// A pointer is not aligned for what it points to.
    PLANLAB_ERROR_MISALIGNED = -2,
    /// A struct_size is smaller than the struct of version 1, or so large that it cannot be a size.
    PLANLAB_ERROR_STRUCT_SIZE = -3,
    /// An option is out of its range, or one that this version of the library does not know is not 0.
    PLANLAB_ERROR_OPTION = -4,
    /// There is no planner of that key.
    PLANLAB_ERROR_PLANNER = -5,
    /// A buffer is never live, has no bytes, an alignment of 0 or an impossible pin, or the sizes do not fit 64 bits.
    PLANLAB_ERROR_BUFFER = -6,
    /// There are more than 2^32 - 1 buffers.
    PLANLAB_ERROR_TOO_MANY = -7,
    /// The planner cannot honour alignments or pins.
    PLANLAB_ERROR_UNSUPPORTED = -8,
    /// The planner failed. This is a fault of the library, or of a machine that has no thread to spare.
    PLANLAB_ERROR_FAILED = -9,
}

/// Limits and wishes. Set struct_size and leave all else 0 for the defaults:
/// `planlab_options options = {.struct_size = sizeof options};`
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct planlab_options {
    /// sizeof(planlab_options). Later versions of the library add fields at the end; the size says which fields exist.
    pub struct_size: usize,
    /// What each offset has to be a multiple of, in bytes: count numbers, not only powers of two. Null: 1 for all.
    pub alignments: *const u64,
    /// Fixed offsets in bytes: count numbers, -1 where a buffer may lie anywhere. Null: no buffer has one.
    pub pins: *const i64,
    /// The arena's size in bytes, if it is given: planning ends with the first plan that fits it. 0: the lowest plan
    /// is looked for.
    pub capacity: u64,
    /// Wall time in seconds. 0: 10 seconds. INFINITY: until a plan is proved optimal, which may take for ever.
    pub time_limit: f64,
    /// Work in the planner's own steps. With one thread and time enough, equal questions with an equal work limit have
    /// equal answers on every machine. 0: no limit.
    pub work_limit: u64,
    /// What random choices depend on.
    pub seed: u64,
    /// The planner's key, a string of UTF-8 that ends with 0: "portfolio", "best-fit", ... Null: "portfolio", which tries
    /// greedy planners first and then searches until the limits are reached or a plan is proved optimal.
    pub planner: *const c_char,
    /// Threads that the planner may use, 1,024 at most. 0: one for each processor.
    pub threads: u32,
    /// Has to be 0.
    pub flags: u32,
}

/// What is known after a call. Set struct_size before it: `planlab_result result = {.struct_size = sizeof result};`
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct planlab_result {
    /// sizeof(planlab_result). No byte beyond this size is written.
    pub struct_size: usize,
    /// The size of the arena that the plan needs, in bytes; 0 if there is no plan.
    pub height: u64,
    /// No plan needs less than this, in bytes. 0 after an error.
    pub bound: u64,
    /// The most bytes that are live at one step. 0 after an error.
    pub load: u64,
    /// Wall time of the call in seconds.
    pub seconds: f64,
    /// The buffer that an error is about, counted from 0; UINT64_MAX if it is about none.
    pub buffer: u64,
    /// What is wrong, or why planning ended, in English; UTF-8 that ends with 0.
    pub message: [c_char; PLANLAB_MESSAGE_SIZE],
}

impl Default for planlab_options {
    fn default() -> Self {
        Self {
            struct_size: size_of::<Self>(),
            alignments: std::ptr::null(),
            pins: std::ptr::null(),
            capacity: 0,
            time_limit: 0.0,
            work_limit: 0,
            seed: 0,
            planner: std::ptr::null(),
            threads: 0,
            flags: 0,
        }
    }
}

impl Default for planlab_result {
    fn default() -> Self {
        Self {
            struct_size: size_of::<Self>(),
            height: 0,
            bound: 0,
            load: 0,
            seconds: 0.0,
            buffer: u64::MAX,
            message: [0; PLANLAB_MESSAGE_SIZE],
        }
    }
}
