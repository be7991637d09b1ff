//! The schedule of a sequence of starts.

use planlab_dsa::{BufferId, Bytes};
use planlab_graph::{Completions, Content, Engine, Event, Schedule, Task};

use super::model::{Model, members};
use super::search::Start;

struct Emitter<'m, 'p> {
    model: &'m Model<'p>,
    schedule: Schedule,
    /// For each value: the buffer that holds it, or held it last.
    buffers: Vec<Option<BufferId>>,
    /// For each value: the number of buffers that it has had.
    versions: Vec<u32>,
    /// For each buffer and engine: one more than the index of the last event that reads it; 0 if none does.
    reads: Vec<Completions>,
    /// For each buffer: the event that writes it.
    writers: Vec<(Engine, usize)>,
    /// For each engine: the ends of its events.
    ends: [Vec<f64>; 3],
    is_done: Vec<bool>,
}

/// A draft in which each event waits for all that is complete when it starts.
pub(super) fn emit_schedule(model: &Model<'_>, starts: &[Start], key: &str) -> Schedule {
    let problem = model.problem;
    let schedule = Schedule {
        net: problem.net.name().to_owned(),
        batch: Some(problem.net.batch()),
        machine: problem.machine.name.clone(),
        base: problem.base(),
        scheduler: key.to_owned(),
        ..Schedule::default()
    };
    let count = model.values.len();
    let mut emitter = Emitter {
        model,
        schedule,
        buffers: vec![None; count],
        versions: vec![0; count],
        reads: Vec::new(),
        writers: Vec::new(),
        ends: Engine::ALL.map(|_| Vec::new()),
        is_done: vec![false; model.forward.len()],
    };
    for value in members(model.inputs) {
        let buffer = emitter.add_buffer(value, model.values[value].content, (Engine::Compute, 0));
        emitter.schedule.resident.push(buffer);
    }
    starts.iter().for_each(|&(index, seconds)| emitter.start_operation(index, seconds));
    emitter.free_buffers();
    emitter.schedule
}

impl Emitter<'_, '_> {
    fn add_buffer(&mut self, value: usize, content: Content, writer: (Engine, usize)) -> BufferId {
        let bytes = Bytes::new(self.model.values[value].bytes);
        let buffer = self.schedule.add_buffer(content, self.versions[value], bytes);
        self.versions[value] += 1;
        self.buffers[value] = Some(buffer);
        self.reads.push([0; 3]);
        self.writers.push(writer);
        buffer
    }

    fn start_operation(&mut self, index: usize, now: f64) {
        let operation = &self.model.operations[index];
        let engine = operation.engine();
        let place = self.schedule.events_of(engine).len();
        let task = match operation.task {
            Task::Forward(id) if std::mem::replace(&mut self.is_done[id.index()], true) => {
                Task::Recompute(id)
            }
            task => task,
        };
        let mut event = Event::new(task, operation.seconds);
        event.after = self.ends.each_ref().map(|ends| as_count(ends.partition_point(|&end| end <= now)));
        // The engine's own events are complete anyway.
        event.after[engine.index()] = 0;
        for buffer in operation.reads.iter().filter_map(|&value| self.buffers[value]) {
            event.reads.push(buffer);
            self.reads[buffer.index()][engine.index()] = as_count(place + 1);
        }
        for &value in &operation.writes {
            let content = match task {
                Task::Accumulate(map) => Content::Gradient(map),
                _ => self.model.values[value].content,
            };
            event.writes.push(self.add_buffer(value, content, (engine, place)));
        }
        self.ends[engine.index()].push(now + operation.seconds);
        self.schedule.events[engine.index()].push(event);
    }

    /// Frees each buffer once the last event on each engine that reads it is complete.
    fn free_buffers(&mut self) {
        for (index, reads) in self.reads.iter().enumerate() {
            let buffer = BufferId::from_index(index);
            let (engine, place) = self.writers[index];
            let unread = reads.iter().all(|&count| count == 0);
            if unread {
                self.schedule.events[engine.index()][place].frees.push(buffer);
            }
            for (engine, &count) in reads.iter().enumerate().filter(|&(_, &count)| count > 0) {
                self.schedule.events[engine][count as usize - 1].frees.push(buffer);
            }
        }
    }
}

fn as_count(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}
