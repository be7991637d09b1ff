//! What the compute engine does in an iteration, and how its program becomes a schedule with copies.

mod emitter;
mod residency;

use planlab_dsa::BufferId;
use planlab_graph::{Engine, Event, MapId, Schedule};

pub(super) use emitter::Emitter;
pub use residency::{DoesNotFit, Part, Prefetch};
pub(super) use residency::{draft_schedule, least_room, memory_by_step};

/// A map's way to the host.
#[derive(Clone, Debug)]
pub(super) struct Departure {
    pub(super) map: MapId,
    pub(super) buffer: BufferId,
    /// The number of compute events that have to be complete before its copy starts.
    pub(super) ready: usize,
    /// The compute event after which it can leave.
    pub(super) after: usize,
}

/// A map's way back.
#[derive(Clone, Debug)]
pub(super) struct Return {
    pub(super) map: MapId,
    pub(super) buffer: BufferId,
    /// The index of the departure that it follows.
    pub(super) departure: usize,
    /// The first compute event beside which it may come.
    pub(super) earliest: usize,
    /// The first and the last compute event that read it.
    pub(super) first: usize,
    pub(super) last: usize,
}

/// The events of the compute engine, before the copies are scheduled.
#[derive(Clone, Debug)]
pub(super) struct Program {
    /// Compute events only. Those that read a map that comes back do not wait for it yet, and none frees it.
    pub(super) schedule: Schedule,
    /// In the order in which they can leave.
    pub(super) departures: Vec<Departure>,
    /// In the order in which they are used.
    pub(super) returns: Vec<Return>,
}

impl Program {
    pub(super) fn compute_steps(&self) -> &[Event] {
        self.schedule.events_of(Engine::Compute)
    }
}
