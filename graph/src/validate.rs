//! Whether a placed schedule is right: an audit that shares nothing with the simulator or with any scheduler.
//!
//! What is checked holds for *any* times: an order counts only if the events' conditions force it. Each event gets a
//! vector clock, the events of each engine that are surely complete when it starts. On it rest
//!
//! - **values**: every buffer holds one value, which is worked out from the net; each event must read exactly what its
//!   task reads. A map has one value whoever computes it, so a recomputation from anything but that function's own
//!   inputs is refused. A gradient is the sum of one part from each use of the map, each once.
//! - **life**: what is read is written before, and freed not before the reader is complete.
//! - **memory**: two buffers that share an address never live at once, and all lie between the base and the end.
//! - **the host**: a map comes back only after it went out.
//! - **time**: no function and no copy is faster than the machine; the time that the schedule claims is what it takes.
//!
//! # Complexity
//!
//! O(e + b^2) for e events and b buffers.

use std::collections::BTreeMap;

use planlab_dsa::{BufferId, Bytes};

use crate::feature_maps::{FunctionId, FunctionKind, MapId};
use crate::problem::SchedulingProblem;
use crate::schedule::{Completions, Content, Engine, Event, Schedule, Task};

/// Relative error that sums of seconds may have.
const TOLERANCE: f64 = 1e-9;

/// What a right schedule comes to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Audited {
    /// From the start to the last completion.
    pub seconds: f64,
    /// Memory that its offsets need, the base included.
    pub height: Bytes,
}

/// An event by its engine and its place there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventId {
    /// The engine.
    pub engine: Engine,
    /// Its place there, from 0.
    pub place: usize,
}

impl std::fmt::Display for EventId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "event {} of `{}`", self.place, self.engine.name())
    }
}

/// What is wrong with a schedule.
#[expect(missing_docs, reason = "the fields are named in the messages")]
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Violation {
    /// A map, function, buffer or event that does not exist.
    #[error("{event} names {what}, which does not exist")]
    Unknown { event: EventId, what: String },
    /// A task of another engine.
    #[error("{event} does what that engine cannot do")]
    WrongEngine { event: EventId },
    /// A buffer that two events write, or one writes that is there from the start.
    #[error("{event} writes buffer {buffer}, which is written already")]
    WrittenTwice { event: EventId, buffer: BufferId },
    /// A buffer that nothing writes.
    #[error("nothing writes buffer {0}")]
    NeverWritten(BufferId),
    /// A buffer that is freed twice.
    #[error("{event} frees buffer {buffer}, which is freed already")]
    FreedTwice { event: EventId, buffer: BufferId },
    /// A buffer that nothing frees: it would be missing in the next iteration.
    #[error("nothing frees buffer {0}")]
    NeverFreed(BufferId),
    /// A buffer of another size than what it holds.
    #[error("buffer {buffer} has {bytes} bytes; what it holds has {wanted}")]
    WrongSize { buffer: BufferId, bytes: Bytes, wanted: Bytes },
    /// A buffer without an offset.
    #[error("buffer {0} has no offset")]
    NoOffset(BufferId),
    /// A buffer in the reserved bytes.
    #[error("buffer {buffer} begins at {offset}, below the {base} bytes of the base")]
    BelowBase { buffer: BufferId, offset: u64, base: Bytes },
    /// A base that is smaller than what the machine reserves.
    #[error("the base is {base} bytes; the machine reserves {wanted}")]
    WrongBase { base: Bytes, wanted: Bytes },
    /// A buffer past the end of the memory.
    #[error("buffer {buffer} ends at {end}, past the {memory} bytes of memory")]
    OutsideMemory { buffer: BufferId, end: u64, memory: Bytes },
    /// Two buffers that share addresses, neither surely gone when the other comes.
    #[error(
        "buffers {first} and {second} share addresses, and neither is surely free when the other is written"
    )]
    Overlap { first: BufferId, second: BufferId },
    /// A circle of waits.
    #[error("{0} never starts: it waits for an event that waits for it")]
    NeverStarts(EventId),
    /// A buffer that may be read before it is written.
    #[error("{event} reads or frees buffer {buffer}, which is not surely written by then")]
    NotWritten { event: EventId, buffer: BufferId },
    /// A buffer that may be read after it is freed.
    #[error("{event} reads or writes buffer {buffer}, which may be free by then")]
    AfterFree { event: EventId, buffer: BufferId },
    /// An operand that the task does not read.
    #[error("{event} reads buffer {buffer}, whose value its task does not read")]
    WrongValue { event: EventId, buffer: BufferId },
    /// An operand that is missing.
    #[error("{event} does not read {what}")]
    MissingValue { event: EventId, what: String },
    /// A result for which there is no buffer, a buffer for no result, or a buffer of another name.
    #[error("{event} writes other buffers than its task does")]
    WrongResult { event: EventId },
    /// A function that runs forward not once.
    #[error("function {function} runs forward {times} times")]
    Forward { function: FunctionId, times: u32 },
    /// A function whose gradients are not computed once.
    #[error("function {function} runs backward {times} times")]
    Backward { function: FunctionId, times: u32 },
    /// A map that comes back without having gone out.
    #[error("{event} brings map {map} back, which is not surely on the host by then")]
    NotOnHost { event: EventId, map: MapId },
    /// A map on the device from the start that a function has to make.
    #[error("buffer {0} is there from the start, but it holds no input of the net")]
    NotAnInput(BufferId),
    /// Something that the machine cannot do so fast.
    #[error("{event} takes {seconds:e} s; on this machine it takes {least:e}")]
    TooFast { event: EventId, seconds: f64, least: f64 },
    /// A claim about the time that does not hold.
    #[error("the schedule claims {claimed:e} s; it takes {seconds:e}")]
    WrongClaim { claimed: f64, seconds: f64 },
}

/// Audits a placed schedule, in so many bytes of memory; without them, in as many as it takes.
///
/// # Errors
///
/// The first [`Violation`] that is found.
pub fn validate(
    problem: &SchedulingProblem,
    schedule: &Schedule,
    memory: Option<Bytes>,
) -> Result<Audited, Violation> {
    let mut audit = Audit::new(problem, schedule);
    audit.check_names()?;
    audit.check_base()?;
    audit.find_writers()?;
    audit.check_sizes()?;
    audit.find_clocks()?;
    audit.check_lives()?;
    audit.check_values()?;
    audit.check_counts()?;
    audit.check_times()?;
    let height = audit.check_memory(memory)?;
    Ok(Audited { seconds: audit.check_claim()?, height })
}

/// When an event starts, and what is surely complete by then.
#[derive(Clone, Copy, Debug, Default)]
struct Moment {
    seconds: f64,
    clock: Completions,
}

/// A number for each value that a buffer may hold.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Value {
    Map(MapId),
    /// What the backward pass of a function contributes to the gradient of its input of that number.
    Part(FunctionId, usize),
    /// A sum of values, by number, ascending.
    Sum(Vec<usize>),
}

struct Audit<'a> {
    problem: &'a SchedulingProblem,
    schedule: &'a Schedule,
    /// By buffer: what writes it; `None` if it is there from the start.
    writers: Vec<Option<EventId>>,
    frees: Vec<Option<EventId>>,
    starts: [Vec<Moment>; 3],
    numbers: BTreeMap<Value, usize>,
    /// By number.
    sums: BTreeMap<usize, Vec<usize>>,
    /// By map: the values whose sum is its gradient, ascending. Empty where nothing uses the map.
    terms: Vec<Vec<usize>>,
    /// By map: its gradient, if something uses the map.
    gradients: Vec<Option<usize>>,
    /// By buffer.
    values: Vec<Option<usize>>,
}

impl<'a> Audit<'a> {
    fn new(problem: &'a SchedulingProblem, schedule: &'a Schedule) -> Self {
        let (maps, buffers) = (problem.net.maps().len(), schedule.buffers.len());
        let mut audit = Self {
            problem,
            schedule,
            writers: vec![None; buffers],
            frees: vec![None; buffers],
            starts: Engine::ALL.map(|_| Vec::new()),
            numbers: BTreeMap::new(),
            sums: BTreeMap::new(),
            terms: vec![Vec::new(); maps],
            gradients: vec![None; maps],
            values: vec![None; buffers],
        };
        audit.find_gradients();
        audit
    }

    fn events(&self) -> impl Iterator<Item = (EventId, &'a Event)> + use<'a> {
        let schedule = self.schedule;
        Engine::ALL.into_iter().flat_map(move |engine| {
            let numbered = schedule.of(engine).iter().enumerate();
            numbered.map(move |(place, event)| (EventId { engine, place }, event))
        })
    }

    fn event(&self, id: EventId) -> &'a Event {
        &self.schedule.of(id.engine)[id.place]
    }

    fn check_names(&self) -> Result<(), Violation> {
        let (maps, functions) = (self.problem.net.maps().len(), self.problem.net.functions().len());
        for (event, data) in self.events() {
            let unknown = |what| Err(Violation::Unknown { event, what });
            let map = |id: MapId| (format!("map {id}"), id.index() < maps);
            let function = |id: FunctionId| (format!("function {id}"), id.index() < functions);
            let (what, is_known) = match data.task {
                Task::Forward(id) | Task::Recompute(id) | Task::Backward(id) => function(id),
                Task::Accumulate(id) | Task::CopyOut(id) | Task::CopyIn(id) => map(id),
            };
            if !is_known {
                return unknown(what);
            }
            let touched = data.reads.iter().chain(&data.writes).chain(&data.frees);
            if let Some(id) = touched.into_iter().find(|id| id.index() >= self.schedule.buffers.len()) {
                return unknown(format!("buffer {id}"));
            }
            let lengths = self.schedule.events.each_ref().map(Vec::len);
            if data.after.iter().zip(lengths).any(|(&wanted, length)| wanted as usize > length)
                || data.with.is_some_and(|place| place as usize >= lengths[0])
            {
                return unknown("an event to wait for".to_owned());
            }
            if data.task.engine() != event.engine {
                return Err(Violation::WrongEngine { event });
            }
        }
        Ok(())
    }

    fn check_base(&self) -> Result<(), Violation> {
        let (base, wanted) = (self.schedule.base, self.problem.base());
        if base < wanted { Err(Violation::WrongBase { base, wanted }) } else { Ok(()) }
    }

    fn find_writers(&mut self) -> Result<(), Violation> {
        let mut is_written = vec![false; self.schedule.buffers.len()];
        for &buffer in &self.schedule.resident {
            let Some(written) = is_written.get_mut(buffer.index()) else {
                return Err(Violation::NotAnInput(buffer));
            };
            let holds = self.schedule.buffer(buffer).content;
            let is_input =
                matches!(holds, Content::Map(map) if self.knows(map) && !self.problem.net.has_gradient(map));
            if std::mem::replace(written, true) || !is_input {
                return Err(Violation::NotAnInput(buffer));
            }
        }
        for (event, data) in self.events() {
            for &buffer in &data.writes {
                if std::mem::replace(&mut is_written[buffer.index()], true) {
                    return Err(Violation::WrittenTwice { event, buffer });
                }
                self.writers[buffer.index()] = Some(event);
            }
            for &buffer in &data.frees {
                if self.frees[buffer.index()].replace(event).is_some() {
                    return Err(Violation::FreedTwice { event, buffer });
                }
            }
        }
        if let Some(index) = is_written.iter().position(|written| !written) {
            return Err(Violation::NeverWritten(BufferId::from_index(index)));
        }
        match self.frees.iter().position(Option::is_none) {
            Some(index) => Err(Violation::NeverFreed(BufferId::from_index(index))),
            None => Ok(()),
        }
    }

    fn knows(&self, map: MapId) -> bool {
        map.index() < self.problem.net.maps().len()
    }

    fn check_sizes(&self) -> Result<(), Violation> {
        for (index, buffer) in self.schedule.buffers.iter().enumerate() {
            let (Content::Map(map) | Content::Gradient(map)) = buffer.content;
            let wanted = if self.knows(map) { self.problem.net.map(map).bytes } else { Bytes::ZERO };
            if buffer.bytes != wanted {
                let buffer_id = BufferId::from_index(index);
                return Err(Violation::WrongSize { buffer: buffer_id, bytes: buffer.bytes, wanted });
            }
        }
        Ok(())
    }

    /// Starts of all events: each is taken up once everything that it waits for has been.
    fn find_clocks(&mut self) -> Result<(), Violation> {
        loop {
            let before = self.starts.each_ref().map(Vec::len);
            for engine in Engine::ALL {
                while let Some(moment) = self.next_start(engine) {
                    self.starts[engine.index()].push(moment);
                }
            }
            if self.starts.each_ref().map(Vec::len) == before {
                break;
            }
        }
        let waiting = |&engine: &Engine| self.starts[engine.index()].len() < self.schedule.of(engine).len();
        match Engine::ALL.into_iter().find(waiting) {
            Some(engine) => {
                let place = self.starts[engine.index()].len();
                Err(Violation::NeverStarts(EventId { engine, place }))
            }
            None => Ok(()),
        }
    }

    /// The start of the next event of an engine; `None` if there is none, or what it waits for is not known yet.
    fn next_start(&self, engine: Engine) -> Option<Moment> {
        let place = self.starts[engine.index()].len();
        let event = self.schedule.of(engine).get(place)?;
        let mut wanted = event.after;
        wanted[engine.index()] = wanted[engine.index()].max(u32::try_from(place).ok()?);
        let mut moment = Moment::default();
        for other in Engine::ALL {
            let Some(last) = (wanted[other.index()] as usize).checked_sub(1) else { continue };
            let start = self.starts[other.index()].get(last)?;
            moment.seconds = moment.seconds.max(start.seconds + self.schedule.of(other)[last].seconds);
            join(&mut moment.clock, start.clock);
            moment.clock[other.index()] = moment.clock[other.index()].max(wanted[other.index()]);
        }
        if let Some(together) = event.with {
            let start = self.starts[Engine::Compute.index()].get(together as usize)?;
            moment.seconds = moment.seconds.max(start.seconds);
            join(&mut moment.clock, start.clock);
        }
        Some(moment)
    }

    /// Whether `first` is surely complete when `second` starts.
    fn is_before(&self, first: EventId, second: EventId) -> bool {
        self.starts[second.engine.index()][second.place].clock[first.engine.index()] as usize > first.place
    }

    /// Whether the event's buffers are written before it and not freed before its end.
    fn check_lives(&self) -> Result<(), Violation> {
        for (event, data) in self.events() {
            for &buffer in data.reads.iter().chain(&data.frees) {
                let writer = self.writers[buffer.index()];
                let itself = writer == Some(event) && !data.reads.contains(&buffer);
                if !itself && writer.is_some_and(|writer| !self.is_before(writer, event)) {
                    return Err(Violation::NotWritten { event, buffer });
                }
            }
            for &buffer in data.reads.iter().chain(&data.writes) {
                let free = self.frees[buffer.index()];
                if free.is_some_and(|free| free != event && !self.is_before(event, free)) {
                    return Err(Violation::AfterFree { event, buffer });
                }
            }
        }
        Ok(())
    }

    fn number(&mut self, value: Value) -> usize {
        let next = self.numbers.len();
        let sum = if let Value::Sum(terms) = &value { Some(terms.clone()) } else { None };
        let number = *self.numbers.entry(value).or_insert(next);
        if let Some(terms) = sum {
            self.sums.insert(number, terms);
        }
        number
    }

    fn sum(&mut self, mut terms: Vec<usize>) -> usize {
        terms.sort_unstable();
        match terms[..] {
            [only] => only,
            _ => self.number(Value::Sum(terms)),
        }
    }

    /// What the gradient of each map is the sum of, from the last function to the first.
    fn find_gradients(&mut self) {
        let net = &self.problem.net;
        for id in net.function_ids().rev() {
            let function = net.function(id);
            // Every use of the output is a later function's, and has been seen.
            let terms = self.terms[function.output.index()].clone();
            if !terms.is_empty() {
                self.gradients[function.output.index()] = Some(self.sum(terms));
            }
            for (place, input) in function.inputs.iter().enumerate() {
                let term = match (function.kind, self.gradients[function.output.index()]) {
                    (FunctionKind::Add, Some(gradient)) => gradient,
                    _ => self.number(Value::Part(id, place)),
                };
                self.terms[input.index()].push(term);
                self.terms[input.index()].sort_unstable();
            }
        }
    }

    /// Takes the events in an order in which writers come before readers, and works out what each buffer holds.
    fn check_values(&mut self) -> Result<(), Violation> {
        for &buffer in &self.schedule.resident {
            if let Content::Map(map) = self.schedule.buffer(buffer).content {
                self.values[buffer.index()] = Some(self.number(Value::Map(map)));
            }
        }
        for event in self.in_causal_order() {
            let task = self.event(event).task;
            match task {
                Task::Forward(id) | Task::Recompute(id) => self.check_forward(event, id)?,
                Task::Backward(id) => self.check_backward(event, id)?,
                Task::Accumulate(map) => self.check_sum(event, map)?,
                Task::CopyOut(map) => {
                    self.check_reads(event, &[(Value::Map(map), format!("map {map}"))])?;
                    self.check_results(event, &[])?;
                }
                Task::CopyIn(map) => self.check_copy_in(event, map)?,
            }
        }
        Ok(())
    }

    /// By the number of events that are surely complete before: what is before another has fewer.
    fn in_causal_order(&self) -> Vec<EventId> {
        let mut order: Vec<_> = self.events().map(|(event, _)| event).collect();
        let before = |event: &EventId| {
            let clock = self.starts[event.engine.index()][event.place].clock;
            clock.into_iter().map(u64::from).sum::<u64>()
        };
        order.sort_by_key(|event| before(event));
        order
    }

    /// Whether the event reads exactly these values.
    fn check_reads(&mut self, event: EventId, wanted: &[(Value, String)]) -> Result<(), Violation> {
        let mut missing: BTreeMap<usize, &str> = BTreeMap::new();
        for (value, what) in wanted {
            missing.insert(self.number(value.clone()), what);
        }
        self.check_operands(event, missing)
    }

    fn check_operands(&self, event: EventId, mut missing: BTreeMap<usize, &str>) -> Result<(), Violation> {
        for &buffer in &self.event(event).reads {
            let held = self.values[buffer.index()];
            if held.is_none_or(|value| missing.remove(&value).is_none()) {
                return Err(Violation::WrongValue { event, buffer });
            }
        }
        match missing.into_values().next() {
            Some(what) => Err(Violation::MissingValue { event, what: what.to_owned() }),
            None => Ok(()),
        }
    }

    /// Gives the buffers that the event writes their values.
    fn check_results(&mut self, event: EventId, results: &[(Content, usize)]) -> Result<(), Violation> {
        let writes = &self.event(event).writes;
        let named = |(buffer, (content, _)): (&BufferId, &(Content, usize))| {
            self.schedule.buffer(*buffer).content == *content
        };
        if writes.len() != results.len() || !writes.iter().zip(results).all(named) {
            return Err(Violation::WrongResult { event });
        }
        for (buffer, &(_, value)) in writes.iter().zip(results) {
            self.values[buffer.index()] = Some(value);
        }
        Ok(())
    }

    fn check_forward(&mut self, event: EventId, id: FunctionId) -> Result<(), Violation> {
        let function = self.problem.net.function(id);
        let wanted: Vec<_> =
            function.inputs.iter().map(|&map| (Value::Map(map), format!("map {map}"))).collect();
        self.check_reads(event, &wanted)?;
        let value = self.number(Value::Map(function.output));
        self.check_results(event, &[(Content::Map(function.output), value)])
    }

    fn check_backward(&mut self, event: EventId, id: FunctionId) -> Result<(), Violation> {
        let net = &self.problem.net;
        let function = net.function(id);
        let mut wanted = BTreeMap::new();
        let names: Vec<_> = function.needs.iter().map(|map| format!("map {map}")).collect();
        for (&map, name) in function.needs.iter().zip(&names) {
            wanted.insert(self.number(Value::Map(map)), name.as_str());
        }
        if let Some(gradient) = self.gradients[function.output.index()] {
            wanted.insert(gradient, "the gradient of its output");
        }
        self.check_operands(event, wanted)?;
        let mut results = Vec::new();
        for (place, &input) in function.inputs.iter().enumerate() {
            if net.has_gradient(input) {
                results.push((Content::Gradient(input), self.number(Value::Part(id, place))));
            }
        }
        self.check_results(event, &results)
    }

    /// The terms of a map's gradient that a value is the sum of.
    fn terms_of(&self, map: MapId, value: usize) -> Option<Vec<usize>> {
        let terms = &self.terms[map.index()];
        if terms.contains(&value) {
            return Some(vec![value]);
        }
        let sum = self.sums.get(&value)?;
        sum.iter().all(|term| terms.contains(term)).then(|| sum.clone())
    }

    fn check_sum(&mut self, event: EventId, map: MapId) -> Result<(), Violation> {
        let mut rest = self.terms[map.index()].clone();
        let mut terms = Vec::new();
        for &buffer in &self.event(event).reads {
            let wrong = Violation::WrongValue { event, buffer };
            let held = self.values[buffer.index()].ok_or_else(|| wrong.clone())?;
            for term in self.terms_of(map, held).ok_or_else(|| wrong.clone())? {
                let place = rest.iter().position(|&other| other == term).ok_or_else(|| wrong.clone())?;
                rest.remove(place);
                terms.push(term);
            }
        }
        if self.event(event).reads.len() != 2 {
            return Err(Violation::MissingValue { event, what: "two parts of a gradient".to_owned() });
        }
        let value = self.sum(terms);
        self.check_results(event, &[(Content::Gradient(map), value)])
    }

    fn check_copy_in(&mut self, event: EventId, map: MapId) -> Result<(), Violation> {
        let copies = self.schedule.of(Engine::Out).iter().enumerate();
        let is_out = |(place, data): (usize, &Event)| {
            data.task == Task::CopyOut(map) && self.is_before(EventId { engine: Engine::Out, place }, event)
        };
        if !copies.into_iter().any(is_out) {
            return Err(Violation::NotOnHost { event, map });
        }
        self.check_reads(event, &[])?;
        let value = self.number(Value::Map(map));
        self.check_results(event, &[(Content::Map(map), value)])
    }

    fn check_counts(&self) -> Result<(), Violation> {
        let net = &self.problem.net;
        let mut counts = vec![(0, 0); net.functions().len()];
        for (_, event) in self.events() {
            match event.task {
                Task::Forward(id) => counts[id.index()].0 += 1,
                Task::Backward(id) => counts[id.index()].1 += 1,
                _ => {}
            }
        }
        for (function, (forward, backward)) in net.function_ids().zip(counts) {
            if forward != 1 {
                return Err(Violation::Forward { function, times: forward });
            }
            let passes_on = net.function(function).kind == FunctionKind::Add
                && self.gradients[net.function(function).output.index()].is_some();
            if backward != u32::from(!passes_on) {
                return Err(Violation::Backward { function, times: backward });
            }
        }
        Ok(())
    }

    fn check_times(&self) -> Result<(), Violation> {
        let times = &self.problem.times;
        let bytes = |map: MapId| self.problem.net.map(map).bytes.get() as f64;
        for (event, data) in self.events() {
            let least = match data.task {
                Task::Forward(id) | Task::Recompute(id) => times.forward()[id.index()],
                Task::Backward(id) => times.backward()[id.index()],
                Task::Accumulate(map) => times.accumulate()[map.index()],
                Task::CopyOut(map) => bytes(map) / self.problem.machine.copy_out,
                Task::CopyIn(map) => bytes(map) / self.problem.machine.copy_in,
            };
            let seconds = data.seconds;
            if !(seconds.is_finite() && seconds >= least * (1.0 - TOLERANCE)) {
                return Err(Violation::TooFast { event, seconds, least });
            }
        }
        Ok(())
    }

    fn check_memory(&self, memory: Option<Bytes>) -> Result<Bytes, Violation> {
        let base = self.schedule.base;
        let mut height = base.get();
        let mut places = Vec::with_capacity(self.schedule.buffers.len());
        for (index, data) in self.schedule.buffers.iter().enumerate() {
            let buffer = BufferId::from_index(index);
            let offset = data.offset.ok_or(Violation::NoOffset(buffer))?.get();
            let end = offset.saturating_add(data.bytes.get());
            if offset < base.get() {
                return Err(Violation::BelowBase { buffer, offset, base });
            }
            if let Some(memory) = memory.filter(|memory| end > memory.get()) {
                return Err(Violation::OutsideMemory { buffer, end, memory });
            }
            height = height.max(end);
            places.push((offset, end, buffer));
        }
        places.sort_unstable();
        self.check_overlaps(&places)?;
        Ok(Bytes::new(height))
    }

    fn check_overlaps(&self, places: &[(u64, u64, BufferId)]) -> Result<(), Violation> {
        for (index, &(_, end, first)) in places.iter().enumerate() {
            let above = places[index + 1..].iter().take_while(|&&(offset, ..)| offset < end);
            for &(_, _, second) in above {
                if !self.is_gone(first, second) && !self.is_gone(second, first) {
                    return Err(Violation::Overlap { first, second });
                }
            }
        }
        Ok(())
    }

    /// Whether `first` is surely free when `second` is written.
    fn is_gone(&self, first: BufferId, second: BufferId) -> bool {
        match (self.frees[first.index()], self.writers[second.index()]) {
            (Some(free), Some(writer)) => self.is_before(free, writer),
            _ => false,
        }
    }

    fn check_claim(&self) -> Result<f64, Violation> {
        let starts = Engine::ALL
            .into_iter()
            .flat_map(|engine| self.starts[engine.index()].iter().zip(self.schedule.of(engine)));
        let seconds = starts.map(|(start, event)| start.seconds + event.seconds).fold(0.0, f64::max);
        match self.schedule.seconds {
            Some(claimed) if (claimed - seconds).abs() > TOLERANCE * seconds => {
                Err(Violation::WrongClaim { claimed, seconds })
            }
            _ => Ok(seconds),
        }
    }
}

fn join(clock: &mut Completions, other: Completions) {
    for (count, known) in clock.iter_mut().zip(other) {
        *count = (*count).max(known);
    }
}
