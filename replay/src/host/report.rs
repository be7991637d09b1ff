//! The result of a replay on the host.

use planlab_dsa::performance::{End, Performance};
use serde::{Deserialize, Serialize};

/// The result of a replay on the host, with facts that its figures do not show.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// The figures. The physical peak is the growth of resident memory, if the blocks were touched.
    pub performance: Performance,
    /// Bytes of addresses that a thread's allocator requested at once and did not get, if that ended the replay.
    pub refused_range: Option<u64>,
    /// The allocator's version and the options in force; empty if it reports nothing.
    pub options: String,
    /// Whether every byte was written and checked before anything was timed; otherwise only addresses were checked.
    pub is_pattern_checked: bool,
}

impl Report {
    /// The report of a contender that cannot play the order.
    pub(super) fn from_absence(reason: impl Into<String>) -> Self {
        let performance = Performance::without_measurements(End::Unavailable, reason.into());
        Self { performance, ..Self::default() }
    }
}
