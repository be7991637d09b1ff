//! What the parent of a device's replay says to its child, and the answer: the device, then a line for each turn before
//! and after it, so that what was played is known when the child dies.

use planlab_dsa::Plan;
use planlab_replay::Performance;
use planlab_replay::cuda::{DeviceInfo, Protocol};
use serde::{Deserialize, Serialize};

use crate::cli::Device;
use crate::inputs::Source;

/// Contenders that take turns on one device, in one process.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Request {
    /// The propagations in their order.
    pub(crate) sources: Vec<Source>,
    /// The process that asks; the child does not outlive it.
    pub(crate) parent: u32,
    pub(crate) device: Device,
    pub(crate) contenders: Vec<Player>,
    pub(crate) protocol: Protocol,
    /// Nanoseconds of an operation, if all take the same.
    pub(crate) operation_ns: Option<u64>,
    /// Bytes that are left to the contenders.
    pub(crate) capacity: Option<u64>,
}

/// Who plays.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Player {
    pub(crate) key: String,
    pub(crate) plan: Option<Plan>,
}

/// What the child says.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Reply {
    /// A trace cannot be read, or a plan is none of it.
    Unreadable { reason: String },
    /// The device is not there.
    Unavailable { reason: String },
    /// What is played on.
    Device(DeviceInfo),
    /// A contender, by its place in the request, begins a turn.
    Begins { contender: usize },
    /// It has ended the turn, and came to this so far.
    Ended { contender: usize, performance: Box<Performance> },
    /// The last turn has broken the device for this process; whoever had none in it needs another.
    Broken { reason: String },
    /// The device did not take everything back, after all turns.
    Lost { reason: String },
    /// There are no more turns.
    Done,
}
