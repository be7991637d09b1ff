//! The messages between the parent of a replay and its child, which answers with a [`Report`] on one line.

use planlab_dsa::Plan;
use planlab_replay::Work;
use planlab_replay::host::Report;
use serde::{Deserialize, Serialize};

use crate::inputs::Source;

/// A request to play one contender on one trace, or on several in turn.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Request {
    pub(crate) sources: Vec<Source>,
    /// The id of the asking process, which the child does not outlive.
    pub(crate) parent: u32,
    /// `plan`, or the key of an allocator.
    pub(crate) contender: String,
    /// The plan that `plan` plays.
    pub(crate) plan: Option<Plan>,
    pub(crate) work: Work,
    pub(crate) threads: u32,
    /// The limit in bytes, for each thread.
    pub(crate) capacity: Option<u64>,
    pub(crate) budget_ns: u64,
    pub(crate) iterations: Option<u32>,
    /// Propagations before the timed ones, if not the default number.
    pub(crate) warm_up: Option<u32>,
}

/// The child's answer.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Reply {
    /// The trace cannot be read, or the plan does not belong to it; the child ends.
    Unreadable {
        reason: String,
    },
    Played(Box<Report>),
}
