//! The messages between the parent of a device's replay and its child. The child names the device, then writes a line
//! before and after each turn, so the parent knows what was played if the child dies.

use planlab_dsa::Plan;
use planlab_replay::Performance;
use planlab_replay::cuda::{DeviceInfo, Protocol};
use serde::{Deserialize, Serialize};

use crate::cli::Device;
use crate::inputs::Source;

/// A request to play contenders in turns on one device, in one process.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Request {
    /// The propagations in order.
    pub(crate) sources: Vec<Source>,
    /// The id of the asking process, which the child does not outlive.
    pub(crate) parent: u32,
    pub(crate) device: Device,
    pub(crate) contenders: Vec<Player>,
    pub(crate) protocol: Protocol,
    /// The time of an operation in nanoseconds, if all take the same.
    pub(crate) operation_ns: Option<u64>,
    /// Device memory left to the contenders, in bytes.
    pub(crate) capacity: Option<u64>,
}

/// A contender of the request.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Player {
    pub(crate) key: String,
    pub(crate) plan: Option<Plan>,
}

/// A line from the child.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Reply {
    /// A trace cannot be read, or a plan does not belong to it.
    Unreadable { reason: String },
    /// The device is missing.
    Unavailable { reason: String },
    /// The device that is played on.
    Device(DeviceInfo),
    /// A contender, by its place in the request, begins a turn.
    Begins { contender: usize },
    /// The contender has ended its turn, with these figures so far.
    Ended { contender: usize, performance: Box<Performance> },
    /// The last turn has broken the device for this process. Contenders without a turn need a new process.
    Broken { reason: String },
    /// The device did not take everything back, after all turns.
    Lost { reason: String },
    /// There are no more turns.
    Done,
}
