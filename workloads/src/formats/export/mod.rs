//! Plans in the forms that other programs take: JSON, an offline plan of TensorFlow Lite Micro, a C header, a trace for
//! Perfetto, the requests of a caching allocator.

mod c_header;
mod perfetto;
mod plan_json;
mod requests;
mod tflite_into;
pub(super) mod tflite_micro;

pub use c_header::write_c_header;
pub use perfetto::write_perfetto;
pub use plan_json::write_plan_json;
pub use requests::write_requests;
pub use tflite_into::{IntoModelError, with_offline_plan};
pub use tflite_micro::write_offline_plan;

use planlab_dsa::{Bytes, Plan};

use super::{ExportError, Trace};

/// An error of a format that lacks something.
fn lacks(format: &'static str, what: impl Into<String>) -> ExportError {
    ExportError { format, what: what.into() }
}

/// The largest end in each arena.
///
/// # Panics
///
/// If the plan does not belong to the trace.
fn heights(trace: &Trace, plan: &Plan) -> Vec<Bytes> {
    plan.arena_heights(&trace.instance).expect("one offset for each buffer, and ends of 64 bits")
}

#[cfg(test)]
mod testing {
    use planlab_dsa::{Offset, Plan};

    use crate::formats::{ReadOptions, Trace, read_trace};

    /// Three buffers; the last takes the first one's place, with a plan of height 96.
    pub(super) fn planned() -> (Trace, Plan) {
        let text = "# workload: small net\nid,lower,upper,size,alignment,may_overwrite,category,op\n\
                    a,0,3,64,16,,input,\n\"b, \"\"quoted\"\"\",1,4,32,16,,activation,1:add\n2nd,2,5,48,16,a,,\n";
        let trace = read_trace("small", text.as_bytes(), &ReadOptions::default()).expect("valid");
        let in_place = trace.instance.in_place().to_vec();
        (trace, Plan { offsets: [0, 64, 0].map(Offset::new).to_vec(), in_place })
    }
}
