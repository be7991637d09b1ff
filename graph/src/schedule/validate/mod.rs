//! Checks a placed schedule: an audit that shares no code with the simulator or with any scheduler.
//!
//! The checks hold for *any* times: an order counts only if the events' conditions force it. Each event gets a vector
//! clock, the events of each engine that are surely complete when it starts. The checks use it:
//!
//! - **values**: every buffer holds one value, which is derived from the net; each event must read exactly what its
//!   task reads. A map has the same value whichever event computes it, so a recomputation must use that function's own
//!   inputs. A gradient is the sum of one part from each use of the map, each once.
//! - **life**: a buffer is written before it is read, and not freed before the reader is complete.
//! - **memory**: two buffers that share an address never live at once, and all lie between the base and the end.
//! - **the host**: a map comes back only after it went out.
//! - **time**: no function and no copy is faster than the machine; the declared time of the schedule is correct.
//!
//! # Complexity
//!
//! O(e + b^2) for e events and b buffers.

mod clocks;
mod memory;
mod times;
mod values;

use std::collections::BTreeMap;

use planlab_dsa::{BufferId, Bytes};

use crate::schedule::events::{Content, Engine, Event, Schedule, Task};
use crate::schedule::problem::SchedulingProblem;
use crate::schedule::training_net::{FunctionId, MapId};
use clocks::EventStart;
use values::Value;

/// The result for a correct schedule.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Audited {
    /// Seconds from the start to the last completion.
    pub seconds: f64,
    /// Memory that its offsets need, base included.
    pub height: Bytes,
}

/// An event: its engine and its index there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventId {
    /// The engine.
    pub engine: Engine,
    /// Its index there, from 0.
    pub place: usize,
}

impl std::fmt::Display for EventId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "event {} of `{}`", self.place, self.engine.name())
    }
}

/// A fault in a schedule.
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
    /// A buffer that two events write, or that an event writes although it exists from the start.
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
    /// A buffer whose size differs from that of its content.
    #[error("buffer {buffer} has {bytes} bytes; what it holds has {wanted}")]
    WrongSize { buffer: BufferId, bytes: Bytes, wanted: Bytes },
    /// A buffer without an offset.
    #[error("buffer {0} has no offset")]
    NoOffset(BufferId),
    /// A buffer in the reserved bytes.
    #[error("buffer {buffer} begins at {offset}, below the {base} bytes of the base")]
    BelowBase { buffer: BufferId, offset: u64, base: Bytes },
    /// A base that is smaller than the machine requires.
    #[error("the base is {base} bytes; the machine reserves {wanted}")]
    WrongBase { base: Bytes, wanted: Bytes },
    /// A buffer past the end of the memory.
    #[error("buffer {buffer} ends at {end}, past the {memory} bytes of memory")]
    OutsideMemory { buffer: BufferId, end: u64, memory: Bytes },
    /// Two buffers that share addresses without either being surely freed before the other is written.
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
    /// A missing operand.
    #[error("{event} does not read {what}")]
    MissingValue { event: EventId, what: String },
    /// A result without a buffer, a buffer without a result, or a buffer with the wrong content.
    #[error("{event} writes other buffers than its task does")]
    WrongResult { event: EventId },
    /// A function whose forward pass does not run exactly once.
    #[error("function {function} runs forward {times} times")]
    Forward { function: FunctionId, times: u32 },
    /// A function whose gradients are not computed exactly once.
    #[error("function {function} runs backward {times} times")]
    Backward { function: FunctionId, times: u32 },
    /// A map that is copied in without having been copied out.
    #[error("{event} brings map {map} back, which is not surely on the host by then")]
    NotOnHost { event: EventId, map: MapId },
    /// A map that is on the device from the start although a function has to make it.
    #[error("buffer {0} is there from the start, but it holds no input of the net")]
    NotAnInput(BufferId),
    /// An event that is faster than the machine permits.
    #[error("{event} takes {seconds:e} s; on this machine it takes {least:e}")]
    TooFast { event: EventId, seconds: f64, least: f64 },
    /// A wrong declared time.
    #[error("the schedule claims {claimed:e} s; it takes {seconds:e}")]
    WrongClaim { claimed: f64, seconds: f64 },
}

/// Audits a placed schedule in `memory` bytes; without a limit, in unlimited memory.
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

struct Audit<'a> {
    problem: &'a SchedulingProblem,
    schedule: &'a Schedule,
    /// For each buffer, the event that writes it; `None` if it exists from the start.
    writers: Vec<Option<EventId>>,
    frees: Vec<Option<EventId>>,
    starts: [Vec<EventStart>; 3],
    numbers: BTreeMap<Value, usize>,
    /// The sums, by number.
    sums: BTreeMap<usize, Vec<usize>>,
    /// For each map, the values whose sum is its gradient, ascending. Empty if nothing uses the map.
    terms: Vec<Vec<usize>>,
    /// For each map, its gradient, if anything uses the map.
    gradients: Vec<Option<usize>>,
    /// The value of each buffer.
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
            if data.waits().iter().zip(lengths).any(|(&wanted, length)| wanted as usize > length)
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
}

#[cfg(test)]
mod tests {
    use planlab_dsa::Offset;

    use super::*;
    use crate::schedule::machine::Machine;
    use crate::schedule::timeline::simulate;
    use crate::schedule::training_net::tests::shortcut_net;

    /// Keeps all maps, with every buffer on top of the one before.
    fn stacked() -> (SchedulingProblem, Schedule) {
        let machine = Machine::built_in("x86-pcie3").expect("built in");
        let problem = SchedulingProblem::new(shortcut_net(), machine);
        let mut schedule = Schedule { base: problem.base(), ..Schedule::default() };
        let maps = (0..6).map(|map| Content::Map(MapId::from_index(map)));
        let gradients = [(4, 0), (2, 0), (2, 1), (1, 0)];
        for content in maps {
            add(&problem, &mut schedule, content, 0);
        }
        for (map, version) in gradients {
            add(&problem, &mut schedule, Content::Gradient(MapId::from_index(map)), version);
        }
        schedule.resident = vec![BufferId::from_index(0)];
        let function = FunctionId::from_index;
        let steps: [(Task, [&[usize]; 3]); 10] = [
            (Task::Forward(function(0)), [&[0], &[1], &[]]),
            (Task::Forward(function(1)), [&[1], &[2], &[1]]),
            (Task::Forward(function(2)), [&[2], &[3], &[]]),
            (Task::Forward(function(3)), [&[2, 3], &[4], &[3]]),
            (Task::Forward(function(4)), [&[4], &[5], &[5]]),
            (Task::Backward(function(4)), [&[4], &[6], &[4]]),
            (Task::Backward(function(2)), [&[2, 6], &[7], &[]]),
            (Task::Accumulate(MapId::from_index(2)), [&[6, 7], &[8], &[6, 7]]),
            (Task::Backward(function(1)), [&[2, 8], &[9], &[2, 8]]),
            (Task::Backward(function(0)), [&[0, 9], &[], &[0, 9]]),
        ];
        let ids = |ids: &[usize]| ids.iter().map(|&id| BufferId::from_index(id)).collect();
        for (task, [reads, writes, frees]) in steps {
            let seconds = match task {
                Task::Forward(id) => problem.times.forward()[id.index()],
                Task::Backward(id) => problem.times.backward()[id.index()],
                _ => problem.times.accumulate()[2],
            };
            let event = Event {
                reads: ids(reads),
                writes: ids(writes),
                frees: ids(frees),
                ..Event::new(task, seconds)
            };
            schedule.events[0].push(event);
        }
        (problem, schedule)
    }

    fn add(problem: &SchedulingProblem, schedule: &mut Schedule, content: Content, version: u32) {
        let (Content::Map(map) | Content::Gradient(map)) = content;
        let top = schedule.height().expect("all are placed");
        let id = schedule.add_buffer(content, version, problem.net.map(map).bytes);
        schedule.buffers[id.index()].offset = Some(Offset::new(top.get()));
    }

    #[test]
    fn a_plain_schedule_is_right() {
        let (problem, schedule) = stacked();
        let audited = validate(&problem, &schedule, Some(problem.capacity)).expect("right");
        let timeline = simulate(&schedule, Some(problem.capacity)).expect("runs");
        assert!((audited.seconds - timeline.seconds).abs() < 1e-12);
        assert_eq!(Some(audited.height), schedule.height());
        assert_eq!(audited.height.get() - problem.base().get(), 64 + 8 * 256 + 4);
    }

    #[test]
    fn buffers_may_share_addresses_one_after_the_other() {
        let (problem, mut schedule) = stacked();
        // The first convolution's output is freed when the second one's is written.
        schedule.buffers[3].offset = schedule.buffers[1].offset;
        validate(&problem, &schedule, None).expect("right");
        // The activation is not.
        schedule.buffers[3].offset = schedule.buffers[2].offset;
        let [first, second] = [2, 3].map(BufferId::from_index);
        let refused = validate(&problem, &schedule, None).expect_err("shared");
        assert_eq!(refused, Violation::Overlap { first, second });
    }

    #[test]
    fn half_a_gradient_is_no_gradient() {
        let (problem, mut schedule) = stacked();
        // The activation's gradient without the shortcut's part.
        schedule.events[0][8].reads[1] = BufferId::from_index(7);
        schedule.events[0][7].frees.pop();
        schedule.events[0][8].frees.push(BufferId::from_index(7));
        let refused = validate(&problem, &schedule, None).expect_err("half");
        let event = EventId { engine: Engine::Compute, place: 8 };
        assert_eq!(refused, Violation::WrongValue { event, buffer: BufferId::from_index(7) });
        assert_eq!(
            refused.to_string(),
            "event 8 of `compute` reads buffer 7, whose value its task does not read"
        );
    }
}
