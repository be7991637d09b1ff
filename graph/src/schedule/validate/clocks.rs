//! Computes what is surely complete when an event starts, and checks that its buffers are live, and that no event is
//! faster than the machine.

use planlab_dsa::BufferId;

use super::alone::{self, TOLERANCE};
use super::audit::{Audit, EventStart};
use super::violation::Violation;
use crate::{Completions, Engine, EventId, MapId, Task};

impl Audit<'_> {
    /// Finds the starts of all events: each is processed after everything that it waits for.
    pub(super) fn find_clocks(&mut self) -> Result<(), Violation> {
        loop {
            let before = self.starts.each_ref().map(Vec::len);
            for engine in Engine::ALL {
                while let Some(start) = self.next_start(engine) {
                    self.starts[engine.index()].push(start);
                }
            }
            if self.starts.each_ref().map(Vec::len) == before {
                break;
            }
        }
        let waiting =
            |&engine: &Engine| self.starts[engine.index()].len() < self.schedule.events_of(engine).len();
        match Engine::ALL.into_iter().find(waiting) {
            Some(engine) => {
                let place = self.starts[engine.index()].len();
                Err(Violation::NeverStarts(EventId { engine, place }))
            }
            None => Ok(()),
        }
    }

    /// The start of the next event of an engine; `None` if there is no such event, or if its conditions are not known
    /// yet.
    fn next_start(&self, engine: Engine) -> Option<EventStart> {
        let place = self.starts[engine.index()].len();
        let event = self.schedule.events_of(engine).get(place)?;
        let mut wanted = event.awaited_events();
        wanted[engine.index()] = wanted[engine.index()].max(u32::try_from(place).ok()?);
        let mut event_start = EventStart::default();
        for other in Engine::ALL {
            let Some(last) = (wanted[other.index()] as usize).checked_sub(1) else { continue };
            let start = self.starts[other.index()].get(last)?;
            event_start.seconds =
                event_start.seconds.max(start.seconds + self.schedule.events_of(other)[last].seconds);
            join_clocks(&mut event_start.clock, start.clock);
            event_start.clock[other.index()] = event_start.clock[other.index()].max(wanted[other.index()]);
        }
        if let Some(together) = event.with {
            let start = self.starts[Engine::Compute.index()].get(together as usize)?;
            event_start.seconds = event_start.seconds.max(start.seconds);
            join_clocks(&mut event_start.clock, start.clock);
        }
        Some(event_start)
    }

    /// Whether `first` is surely complete when `second` starts.
    pub(super) fn is_before(&self, first: EventId, second: EventId) -> bool {
        self.starts[second.engine.index()][second.place].clock[first.engine.index()] as usize > first.place
    }

    /// Whether the event's buffers are written before it and not freed before its end.
    pub(super) fn check_lives(&self) -> Result<(), Violation> {
        for (event, data) in self.events() {
            for &buffer in data.reads.iter().chain(&data.frees) {
                let writer = self.writers[buffer.index()];
                let itself = writer == Some(event) && !data.reads.contains(&buffer);
                if !itself && writer.is_some_and(|writer| !self.is_before(writer, event)) {
                    return Err(Violation::NotWritten { event, buffer });
                }
            }
            for &buffer in data.reads.iter().chain(&data.writes) {
                if !self.frees_of(buffer).any(|free| free == event || self.is_before(event, free)) {
                    return Err(Violation::AfterFree { event, buffer });
                }
            }
        }
        Ok(())
    }

    /// The events that free a buffer together: at most one on each engine.
    fn frees_of(&self, buffer: BufferId) -> impl Iterator<Item = EventId> {
        let counts = Engine::ALL.into_iter().zip(self.frees[buffer.index()]);
        counts.filter_map(|(engine, count)| Some(EventId { engine, place: count.checked_sub(1)? as usize }))
    }

    pub(super) fn check_times(&self) -> Result<(), Violation> {
        let times = &self.problem.times;
        let bytes = |map: MapId| self.problem.net.map(map).bytes.get() as f64;
        for (event, data) in self.events() {
            let least = match data.task {
                Task::Forward(id) | Task::Recompute(id) => times.forward()[id.index()],
                Task::Backward(id) => times.backward()[id.index()],
                Task::Accumulate(map) => times.accumulate_times()[map.index()],
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

    pub(super) fn check_claim(&self) -> Result<f64, Violation> {
        let starts = Engine::ALL
            .into_iter()
            .flat_map(|engine| self.starts[engine.index()].iter().zip(self.schedule.events_of(engine)));
        let seconds = starts.map(|(start, event)| start.seconds + event.seconds).fold(0.0, f64::max);
        alone::check_claim(self.schedule, seconds)?;
        Ok(seconds)
    }
}

fn join_clocks(clock: &mut Completions, other: Completions) {
    for (count, known) in clock.iter_mut().zip(other) {
        *count = (*count).max(known);
    }
}
