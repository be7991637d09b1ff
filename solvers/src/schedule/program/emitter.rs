//! Emits the events of the compute engine, with every buffer's allocation and release: what all programs share.
//!
//! Gradients are new buffers, one for each use of a map. Sums of two of them are new buffers, too, as in Chainer; a sum
//! passes its output's gradient on.

use planlab_dsa::{BufferId, Bytes};
use planlab_graph::{
    BufferIds, Content, Engine, Event, FunctionId, FunctionKind, MapId, Schedule, SchedulingProblem, Task,
};

use super::{Departure, Program, Return};

/// Marks no buffer: buffer ids begin at 0 in each program and stay below this.
const NOWHERE: u32 = u32::MAX;

/// The events so far, and what the device holds after them.
pub(in crate::schedule) struct Emitter<'p> {
    pub(in crate::schedule) problem: &'p SchedulingProblem,
    /// A map that has no bytes: neither it nor its gradients take memory, and adding two of them costs only a launch.
    vanished: Option<MapId>,
    pub(in crate::schedule) schedule: Schedule,
    pub(in crate::schedule) events: Vec<Event>,
    /// For each map: the buffer that holds it now.
    pub(in crate::schedule) device: Vec<Option<BufferId>>,
    /// For each map: the numbers of buffers that it and its gradient have had.
    versions: Vec<(u32, u32)>,
    /// For each map: the buffer with the sum of the gradients of its uses so far.
    gradients: Vec<Option<BufferId>>,
    /// For each buffer: the number of maps whose gradient it holds.
    shares: Vec<u32>,
    /// For each buffer: the first and the last event that read it; [`NOWHERE`] if none did.
    reads: Vec<(u32, u32)>,
}

impl<'p> Emitter<'p> {
    /// Before the first event; inputs of the net that a function reads are on the device.
    pub(in crate::schedule) fn new(problem: &'p SchedulingProblem, vanished: Option<MapId>) -> Self {
        let net = &problem.net;
        let maps = net.maps().len();
        let schedule = Schedule {
            net: net.name().to_owned(),
            batch: Some(net.batch()),
            machine: problem.machine.name.clone(),
            base: problem.base(),
            ..Schedule::default()
        };
        let mut emitter = Self {
            problem,
            vanished,
            schedule,
            events: Vec::with_capacity(4 * net.functions().len()),
            device: vec![None; maps],
            versions: vec![(0, 0); maps],
            gradients: vec![None; maps],
            shares: Vec::new(),
            reads: Vec::new(),
        };
        for map in net.map_ids().filter(|&map| !net.has_gradient(map) && net.last_use(map).is_some()) {
            let buffer = emitter.map_buffer(map);
            emitter.schedule.resident.push(buffer);
        }
        emitter
    }

    /// The first and the last event that read a buffer; `None` if no event did.
    pub(in crate::schedule) fn reads_of(&self, buffer: BufferId) -> Option<(usize, usize)> {
        let (first, last) = self.reads[buffer.index()];
        (first != NOWHERE).then_some((first as usize, last as usize))
    }

    fn add_buffer(&mut self, content: Content) -> BufferId {
        let (map, version) = match content {
            Content::Map(map) => (map, &mut self.versions[map.index()].0),
            Content::Gradient(map) => (map, &mut self.versions[map.index()].1),
        };
        let is_vanished = self.vanished == Some(map);
        let bytes = if is_vanished { Bytes::ZERO } else { self.problem.net.map(map).bytes };
        let id = self.schedule.add_buffer(content, *version, bytes);
        *version += 1;
        self.shares.push(0);
        self.reads.push((NOWHERE, NOWHERE));
        id
    }

    pub(in crate::schedule) fn map_buffer(&mut self, map: MapId) -> BufferId {
        let buffer = self.add_buffer(Content::Map(map));
        self.device[map.index()] = Some(buffer);
        buffer
    }

    /// The buffers of maps that are on the device, each once.
    pub(in crate::schedule) fn held_buffers(&self, maps: &[MapId]) -> BufferIds {
        let mut held = BufferIds::new();
        for buffer in maps.iter().filter_map(|map| self.device[map.index()]) {
            if !held.contains(&buffer) {
                held.push(buffer);
            }
        }
        held
    }

    pub(in crate::schedule) fn emit_event(&mut self, event: Event) {
        let place = u32::try_from(self.events.len()).unwrap_or(NOWHERE);
        for buffer in &event.reads {
            let (first, last) = &mut self.reads[buffer.index()];
            *first = (*first).min(place);
            *last = place;
        }
        self.events.push(event);
    }

    /// A run of a function that reads what is on the device.
    pub(in crate::schedule) fn run_function(&mut self, task: Task, id: FunctionId) -> Event {
        let function = self.problem.net.function(id);
        let mut event = Event::new(task, self.problem.times.forward()[id.index()]);
        event.reads = self.held_buffers(&function.inputs);
        event.writes.push(self.map_buffer(function.output));
        event
    }

    /// Emits a function's backward pass; what it needs is on the device.
    pub(in crate::schedule) fn emit_backward(&mut self, id: FunctionId) {
        let function = self.problem.net.function(id);
        let gradient = self.gradients[function.output.index()].take();
        match gradient {
            Some(gradient) if function.kind == FunctionKind::Add => self.pass_on(id, gradient),
            _ => self.emit_gradient(id, gradient),
        }
    }

    /// Passes the output's gradient on to each input.
    fn pass_on(&mut self, id: FunctionId, gradient: BufferId) {
        let net = &self.problem.net;
        for &input in net.function(id).inputs.iter().filter(|&&input| net.has_gradient(input)) {
            self.shares[gradient.index()] += 1;
            self.add_gradient(input, gradient);
        }
        if let Some(mut last) = self.events.pop() {
            self.drop_share(gradient, &mut last);
            self.events.push(last);
        }
    }

    fn emit_gradient(&mut self, id: FunctionId, gradient: Option<BufferId>) {
        let net = &self.problem.net;
        let function = net.function(id);
        let mut event = Event::new(Task::Backward(id), self.problem.times.backward()[id.index()]);
        event.reads = self.held_buffers(&function.needs);
        event.reads.extend(gradient);
        let mut parts = Vec::with_capacity(function.inputs.len());
        for &input in function.inputs.iter().filter(|&&input| net.has_gradient(input)) {
            let part = self.add_buffer(Content::Gradient(input));
            self.shares[part.index()] = 1;
            parts.push((input, part));
        }
        event.writes.extend(parts.iter().map(|&(_, part)| part));
        if let Some(gradient) = gradient {
            self.drop_share(gradient, &mut event);
        }
        self.emit_event(event);
        for (input, part) in parts {
            self.add_gradient(input, part);
        }
    }

    fn drop_share(&mut self, gradient: BufferId, event: &mut Event) {
        let shares = &mut self.shares[gradient.index()];
        *shares -= 1;
        if *shares == 0 {
            event.frees.push(gradient);
        }
    }

    /// Keeps the first gradient of a map in place; adds the next one to it, in a third buffer.
    fn add_gradient(&mut self, map: MapId, part: BufferId) {
        let Some(before) = self.gradients[map.index()] else {
            self.gradients[map.index()] = Some(part);
            return;
        };
        let is_vanished = self.vanished == Some(map);
        let seconds = if is_vanished {
            self.problem.machine.launch
        } else {
            self.problem.times.accumulate_times()[map.index()]
        };
        let mut event = Event::new(Task::Accumulate(map), seconds);
        event.reads.extend([before, part]);
        let sum = self.add_buffer(Content::Gradient(map));
        self.shares[sum.index()] = 1;
        event.writes.push(sum);
        self.drop_share(before, &mut event);
        self.drop_share(part, &mut event);
        self.emit_event(event);
        self.gradients[map.index()] = Some(sum);
    }

    /// The program of these events; the returns are put in the order in which they are used.
    pub(in crate::schedule) fn finish_program(
        mut self,
        departures: Vec<Departure>,
        mut returns: Vec<Return>,
    ) -> Program {
        returns.sort_by_key(|back| (back.first, back.map));
        self.schedule.events[Engine::Compute.index()] = self.events;
        Program { schedule: self.schedule, departures, returns }
    }
}
