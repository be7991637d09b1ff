//! How high a plan is.

use planlab_dsa::{Bytes, Plan};

use crate::formats::Trace;

/// The largest end in each arena.
///
/// # Panics
///
/// If the plan does not belong to the trace.
pub(crate) fn heights(trace: &Trace, plan: &Plan) -> Vec<Bytes> {
    plan.arena_heights(&trace.instance).expect("one offset for each buffer, and ends of 64 bits")
}
