//! Plans in the forms that other programs take: JSON, an offline plan of TensorFlow Lite Micro, a C header, a trace for
//! Perfetto (schedules, too), the requests of a caching allocator.

mod c_header;
mod perfetto;
mod plan_json;
mod requests;
#[cfg(test)]
mod testing;
mod tflite_into;
pub(crate) mod tflite_micro;

pub use c_header::write_c_header;
pub use perfetto::{write_perfetto, write_schedule_perfetto};
pub use plan_json::write_plan_json;
pub use requests::write_requests;
pub use tflite_into::{IntoModelError, with_offline_plan};
pub use tflite_micro::write_offline_plan;

use planlab_dsa::{Bytes, Plan};

use super::Trace;

/// The largest end in each arena.
///
/// # Panics
///
/// If the plan does not belong to the trace.
fn heights(trace: &Trace, plan: &Plan) -> Vec<Bytes> {
    plan.arena_heights(&trace.instance).expect("one offset for each buffer, and ends of 64 bits")
}
