//! What the parent of a replay says to its child. The child answers with a [`Report`] on one line.

use planlab_dsa::Plan;
use planlab_replay::Work;
use planlab_replay::host::Report;
use serde::{Deserialize, Serialize};

use crate::inputs::Source;

/// One contender on one trace, or on several in turn.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Request {
    pub(crate) sources: Vec<Source>,
    /// The process that asks; the child does not outlive it.
    pub(crate) parent: u32,
    /// `plan`, or the key of an allocator.
    pub(crate) contender: String,
    /// What `plan` plays.
    pub(crate) plan: Option<Plan>,
    pub(crate) work: Work,
    pub(crate) threads: u32,
    /// Bytes, for each thread.
    pub(crate) capacity: Option<u64>,
    pub(crate) budget_ns: u64,
    pub(crate) iterations: Option<u32>,
    /// Propagations before the timed ones, if not as many as is usual.
    pub(crate) warm_up: Option<u32>,
}

/// What the child says.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Reply {
    /// The trace cannot be read, or the plan is none of it; the child ends.
    Unreadable {
        reason: String,
    },
    Played(Box<Report>),
}
