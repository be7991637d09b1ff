//! What a replay on the host came to.

use planlab_dsa::performance::{End, Performance};
use serde::{Deserialize, Serialize};

/// What a replay on the host came to, and what its figures do not say.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// The figures. The physical peak is what became resident, if the blocks were touched.
    pub performance: Performance,
    /// Bytes of addresses that a thread's allocator asked for at once and did not get, if memory ended for that.
    pub refused_range: Option<u64>,
    /// What the allocator says of its version and the options in force; empty where there is nothing to say.
    pub options: String,
    /// Whether every byte was written and looked for before anything was timed; else only addresses were checked.
    pub is_pattern_checked: bool,
}

impl Report {
    /// Of a contender that cannot do what was asked.
    pub(super) fn unavailable(reason: impl Into<String>) -> Self {
        let performance = Performance::failed(End::Unavailable, reason.into());
        Self { performance, ..Self::default() }
    }
}
