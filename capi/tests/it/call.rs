//! Calls as C makes them, with arrays that are as long as they should be.
#![allow(unsafe_code, reason = "calls as C makes them")]

use std::ffi::CStr;
use std::ptr;

use planlab_c::{planlab_options, planlab_plan, planlab_result, planlab_status};
use planlab_dsa::{Columns, Instance};

/// What lies in offsets before a call.
pub(crate) const UNTOUCHED: u64 = 0xdead_beef_dead_beef;

/// Lower step, upper step, size.
pub(crate) type Row = (i64, i64, u64);

/// A problem as a caller in C has it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Problem {
    pub(crate) lower: Vec<i64>,
    pub(crate) upper: Vec<i64>,
    pub(crate) sizes: Vec<u64>,
    pub(crate) alignments: Option<Vec<u64>>,
    pub(crate) pins: Option<Vec<i64>>,
}

/// What a call came to.
#[derive(Clone, Debug)]
pub(crate) struct Told {
    pub(crate) status: planlab_status,
    pub(crate) offsets: Vec<u64>,
    pub(crate) result: planlab_result,
}

impl Told {
    pub(crate) fn message(&self) -> String {
        let bytes: Vec<u8> = self.result.message.iter().map(|&byte| byte.to_ne_bytes()[0]).collect();
        let text = CStr::from_bytes_until_nul(&bytes).expect("it ends with 0");
        text.to_str().expect("UTF-8").to_owned()
    }

    pub(crate) fn is_untouched(&self) -> bool {
        self.offsets.iter().all(|&offset| offset == UNTOUCHED)
    }

    /// The buffer that an error is about.
    pub(crate) fn buffer(&self) -> Option<u64> {
        (self.result.buffer != u64::MAX).then_some(self.result.buffer)
    }
}

impl Problem {
    pub(crate) fn new(rows: &[Row]) -> Self {
        Self {
            lower: rows.iter().map(|row| row.0).collect(),
            upper: rows.iter().map(|row| row.1).collect(),
            sizes: rows.iter().map(|row| row.2).collect(),
            ..Self::default()
        }
    }

    pub(crate) fn of(instance: &Instance) -> Self {
        let buffers = instance.buffers();
        Self {
            lower: buffers.iter().map(|buffer| buffer.live.start().get().into()).collect(),
            upper: buffers.iter().map(|buffer| buffer.live.end().get().into()).collect(),
            sizes: buffers.iter().map(|buffer| buffer.size.get()).collect(),
            alignments: Some(buffers.iter().map(|buffer| buffer.align.get()).collect()),
            pins: None,
        }
    }

    pub(crate) fn columns(&self) -> Columns<'_> {
        Columns {
            lower: &self.lower,
            upper: &self.upper,
            size: &self.sizes,
            align: self.alignments.as_deref(),
            pin: self.pins.as_deref(),
        }
    }

    pub(crate) fn plan(&self, options: planlab_options, planner: Option<&CStr>) -> Told {
        let count = self.sizes.len();
        let lengths = [self.lower.len(), self.upper.len()];
        let optional = [self.alignments.as_ref().map(Vec::len), self.pins.as_ref().map(Vec::len)];
        assert!(lengths.iter().chain(optional.iter().flatten()).all(|&length| length == count));
        let options = planlab_options {
            alignments: self.alignments.as_ref().map_or(ptr::null(), |column| column.as_ptr()),
            pins: self.pins.as_ref().map_or(ptr::null(), |column| column.as_ptr()),
            planner: planner.map_or(ptr::null(), CStr::as_ptr),
            ..options
        };
        let mut offsets = vec![UNTOUCHED; count];
        let told = Raw::new(self, &raw const options, offsets.as_mut_ptr()).call();
        Told { offsets, ..told }
    }
}

/// The arguments of a call, which a test may spoil.
pub(crate) struct Raw {
    pub(crate) count: usize,
    pub(crate) lower: *const i64,
    pub(crate) upper: *const i64,
    pub(crate) sizes: *const u64,
    pub(crate) options: *const planlab_options,
    pub(crate) offsets: *mut u64,
}

impl Raw {
    /// Arguments that are in order, if there are as many offsets as buffers.
    pub(crate) fn new(problem: &Problem, options: *const planlab_options, offsets: *mut u64) -> Self {
        let (lower, upper, sizes) = (problem.lower.as_ptr(), problem.upper.as_ptr(), problem.sizes.as_ptr());
        Self { count: problem.sizes.len(), lower, upper, sizes, options, offsets }
    }

    /// Calls with a result that is in order.
    pub(crate) fn call(&self) -> Told {
        let mut result = planlab_result::default();
        Told { status: self.call_into(&raw mut result), offsets: Vec::new(), result }
    }

    /// Calls with any result.
    pub(crate) fn call_into(&self, result: *mut planlab_result) -> planlab_status {
        let Self { count, lower, upper, sizes, options, offsets } = *self;
        // SAFETY: the arrays have `count` entries each; of what is tested, bad pointers are null or misaligned, bad
        // sizes are refused, a bad count is refused unread, and memory may be the same where it is allowed to be.
        unsafe { planlab_plan(count, lower, upper, sizes, options, offsets, result) }
    }
}
