//! Computes what is surely complete when an event starts, and checks that its buffers are live.

use super::audit::{Audit, EventStart};
use super::violation::{EventId, Violation};
use crate::{Completions, Engine};

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
                let free = self.frees[buffer.index()];
                if free.is_some_and(|free| free != event && !self.is_before(event, free)) {
                    return Err(Violation::AfterFree { event, buffer });
                }
            }
        }
        Ok(())
    }
}

fn join_clocks(clock: &mut Completions, other: Completions) {
    for (count, known) in clock.iter_mut().zip(other) {
        *count = (*count).max(known);
    }
}
