//! The state of an audit.

use std::collections::BTreeMap;

use crate::{Completions, Engine, Event, EventId, FunctionId, MapId, Schedule, SchedulingProblem};

/// The start of an event, and what is surely complete by then.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct EventStart {
    pub(super) seconds: f64,
    pub(super) clock: Completions,
}

/// A value that a buffer may hold; each has a number.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Value {
    Map(MapId),
    /// The contribution of a function's backward pass to the gradient of the input with this index.
    Part(FunctionId, usize),
    /// A sum of values by number, ascending.
    Sum(Vec<usize>),
}

pub(super) struct Audit<'a> {
    pub(super) problem: &'a SchedulingProblem,
    pub(super) schedule: &'a Schedule,
    /// For each buffer, the event that writes it; `None` if it exists from the start.
    pub(super) writers: Vec<Option<EventId>>,
    /// For each buffer and engine, the completions after which the engine needs the buffer no more; 0 if none of its
    /// events frees it.
    pub(super) frees: Vec<Completions>,
    pub(super) starts: [Vec<EventStart>; 3],
    pub(super) numbers: BTreeMap<Value, usize>,
    /// The sums, by number.
    pub(super) sums: BTreeMap<usize, Vec<usize>>,
    /// For each map, the values whose sum is its gradient, ascending. Empty if nothing uses the map.
    pub(super) terms: Vec<Vec<usize>>,
    /// For each map, its gradient, if anything uses the map.
    pub(super) gradients: Vec<Option<usize>>,
    /// The value of each buffer.
    pub(super) values: Vec<Option<usize>>,
}

impl<'a> Audit<'a> {
    pub(super) fn new(problem: &'a SchedulingProblem, schedule: &'a Schedule) -> Self {
        let (maps, buffers) = (problem.net.maps().len(), schedule.buffers.len());
        Self {
            problem,
            schedule,
            writers: vec![None; buffers],
            frees: vec![Completions::default(); buffers],
            starts: Engine::ALL.map(|_| Vec::new()),
            numbers: BTreeMap::new(),
            sums: BTreeMap::new(),
            terms: vec![Vec::new(); maps],
            gradients: vec![None; maps],
            values: vec![None; buffers],
        }
    }

    pub(super) fn events(&self) -> impl Iterator<Item = (EventId, &'a Event)> + use<'a> {
        self.schedule.numbered_events()
    }

    pub(super) fn find_event(&self, id: EventId) -> &'a Event {
        self.schedule.find_event(id)
    }

    pub(super) fn knows_map(&self, map: MapId) -> bool {
        map.index() < self.problem.net.maps().len()
    }
}
