//! What the tests of readers share.

use crate::formats::Trace;

/// Name, live range and size of each buffer.
pub(crate) fn lives(trace: &Trace) -> Vec<(&str, (u32, u32), u64)> {
    let buffers = trace.instance.buffers().iter().zip(&trace.labels.buffers);
    buffers.map(|(buffer, label)| (label.name.as_str(), buffer.live.into(), buffer.size.get())).collect()
}
