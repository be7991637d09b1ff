//! The event simulator: the start and end of every event of a schedule, and the memory taken over time.
//!
//! Time advances from completion to completion. After each one, the simulator starts every event that can start: on
//! every idle engine the next event, if its conditions are met and there is room for the buffers that it writes. Copies
//! out go first, as they free memory; computing goes before copies in.
//!
//! # Complexity
//!
//! O(n) for n events and their buffers: each start and each completion checks the next event of three engines.

use planlab_dsa::Bytes;

use super::schedule::{Completions, Engine, Event, Schedule};

/// The time span of an event.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Span {
    /// Start in seconds from the start of the iteration.
    pub start: f64,
    /// End in seconds from the start of the iteration.
    pub end: f64,
    /// The moment of the start. Moments number the times of starts and completions in ascending order; at one moment,
    /// completions come before starts.
    pub began: u32,
    /// The moment of the completion; after `began`, even for an event of zero duration.
    pub ended: u32,
}

/// The simulated run of a schedule.
///
/// # Panics
///
/// All methods of [`Schedule`] that take a timeline panic if it belongs to another schedule.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Timeline {
    /// The spans of each engine's events, in the order of [`Engine::ALL`].
    pub spans: [Vec<Span>; 3],
    /// Seconds from the start to the last completion.
    pub seconds: f64,
    /// The most bytes taken at once, base included.
    pub peak: Bytes,
    /// The bytes taken from each time on, ascending in time; base included. A time has several entries, in their order, if
    /// more bytes are taken for no time than before and after: the peak is always among the entries.
    pub memory: Vec<(f64, Bytes)>,
    /// The number of moments.
    pub moments: u32,
}

/// Why a schedule does not run to its end.
#[expect(missing_docs, reason = "the fields are named in the messages")]
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Stuck {
    /// Only memory prevents an event from starting, and no running event would free any.
    #[error(
        "out of memory after {seconds:.6} s: event {event} of `{engine}` asks for {asked} bytes, {taken} of {capacity} are \
         taken"
    )]
    OutOfMemory { seconds: f64, engine: Engine, event: usize, asked: Bytes, taken: Bytes, capacity: Bytes },
    /// Every next event waits for one that has not run.
    #[error(
        "deadlock after {seconds:.6} s: event {event} of `{engine}` waits for an event that waits for it"
    )]
    Deadlock { seconds: f64, engine: Engine, event: usize },
}

/// The order in which idle engines are checked.
const PRIORITY: [Engine; 3] = [Engine::Out, Engine::Compute, Engine::In];

/// Runs a schedule, draft or placed, in `capacity` bytes; without a capacity, in unlimited memory. Only the *number* of
/// bytes counts here: [`validate`](crate::validate_schedule) checks the offsets.
///
/// # Errors
///
/// [`Stuck`] if it does not run to its end.
///
/// # Panics
///
/// If the schedule refers to a buffer that does not exist.
pub fn simulate_schedule(schedule: &Schedule, capacity: Option<Bytes>) -> Result<Timeline, Stuck> {
    let mut run = Simulation::new(schedule, capacity.map_or(u64::MAX, Bytes::get));
    loop {
        run.start_what_can();
        if !run.advance_clock() {
            break;
        }
    }
    run.finish_timeline()
}

struct Simulation<'s> {
    schedule: &'s Schedule,
    capacity: u64,
    taken: u64,
    peak: u64,
    /// For each buffer, the events that free it and are not complete.
    freeing: Vec<u32>,
    now: f64,
    moment: u32,
    /// For each engine, the number of complete events.
    done: Completions,
    /// For each engine, the number of started events.
    started: Completions,
    spans: [Vec<Span>; 3],
    memory: Vec<(f64, Bytes)>,
}

impl<'s> Simulation<'s> {
    fn new(schedule: &'s Schedule, capacity: u64) -> Self {
        let taken = schedule.base.get().saturating_add(schedule.total_bytes(&schedule.resident).get());
        let mut freeing = vec![0_u32; schedule.buffers.len()];
        for event in Engine::ALL.into_iter().flat_map(|engine| schedule.events_of(engine)) {
            event.frees.iter().for_each(|id| freeing[id.index()] = freeing[id.index()].saturating_add(1));
        }
        Self {
            freeing,
            schedule,
            capacity,
            taken,
            peak: taken,
            now: 0.0,
            moment: 0,
            done: [0; 3],
            started: [0; 3],
            spans: Engine::ALL.map(|engine| Vec::with_capacity(schedule.events_of(engine).len())),
            memory: vec![(0.0, Bytes::new(taken))],
        }
    }

    fn next_event(&self, engine: Engine) -> Option<&'s Event> {
        self.schedule.events_of(engine).get(self.started[engine.index()] as usize)
    }

    fn is_idle(&self, engine: Engine) -> bool {
        self.started[engine.index()] == self.done[engine.index()]
    }

    fn is_ready(&self, event: &Event) -> bool {
        let complete = event.awaited_events().iter().zip(&self.done).all(|(wanted, done)| wanted <= done);
        complete && event.with.is_none_or(|place| place < self.started[Engine::Compute.index()])
    }

    fn start_what_can(&mut self) {
        loop {
            let before = self.started;
            for engine in PRIORITY {
                let Some(event) = self.next_event(engine) else { continue };
                if self.is_idle(engine) && self.is_ready(event) {
                    self.start_event(engine, event);
                }
            }
            if self.started == before {
                return;
            }
        }
    }

    fn start_event(&mut self, engine: Engine, event: &Event) {
        let asked = self.schedule.total_bytes(&event.writes).get();
        if self.taken.saturating_add(asked) > self.capacity {
            return;
        }
        if asked > 0 {
            self.taken = self.taken.saturating_add(asked);
            self.peak = self.peak.max(self.taken);
            self.note_memory();
        }
        self.started[engine.index()] += 1;
        let end = self.now + event.seconds;
        self.spans[engine.index()].push(Span { start: self.now, end, began: self.moment, ended: u32::MAX });
    }

    fn note_memory(&mut self) {
        let taken = Bytes::new(self.taken);
        // An event of zero duration frees its buffers at the time at which it writes them.
        let is_summit = |bytes: Bytes, before: &[(f64, Bytes)]| {
            taken < bytes && before.last().is_none_or(|&(_, earlier)| earlier < bytes)
        };
        match self.memory.split_last_mut() {
            Some(((time, bytes), before)) if *time == self.now && !is_summit(*bytes, before) => {
                *bytes = taken;
            }
            _ => self.memory.push((self.now, taken)),
        }
    }

    /// Advances to the next completion. Returns whether anything was running.
    fn advance_clock(&mut self) -> bool {
        let running = Engine::ALL.into_iter().filter(|&engine| !self.is_idle(engine));
        let ends = running.filter_map(|engine| self.spans[engine.index()].last().map(|span| span.end));
        let Some(next) = ends.min_by(f64::total_cmp) else { return false };
        self.now = next;
        self.moment += 1;
        for engine in Engine::ALL {
            let (is_idle, moment) = (self.is_idle(engine), self.moment);
            let Some(span) = self.spans[engine.index()].last_mut() else { continue };
            if !is_idle && span.end <= next {
                span.ended = moment;
                self.complete_event(engine);
            }
        }
        true
    }

    fn complete_event(&mut self, engine: Engine) {
        let schedule = self.schedule;
        let event = &schedule.events_of(engine)[self.done[engine.index()] as usize];
        self.done[engine.index()] += 1;
        let mut freed = 0_u64;
        for id in &event.frees {
            let freeing = &mut self.freeing[id.index()];
            *freeing -= 1;
            if *freeing == 0 {
                freed = freed.saturating_add(schedule.buffer(*id).bytes.get());
            }
        }
        if freed > 0 {
            self.taken = self.taken.saturating_sub(freed);
            self.note_memory();
        }
    }

    fn finish_timeline(self) -> Result<Timeline, Stuck> {
        let waiting = |&engine: &Engine| self.next_event(engine).is_some();
        let is_ready = |&engine: &Engine| self.next_event(engine).is_some_and(|event| self.is_ready(event));
        let seconds = self.now;
        let place = |engine: Engine| self.started[engine.index()] as usize;
        if let Some(engine) = PRIORITY.into_iter().find(is_ready) {
            let asked =
                self.next_event(engine).map_or(0, |event| self.schedule.total_bytes(&event.writes).get());
            let [asked, taken, capacity] = [asked, self.taken, self.capacity].map(Bytes::new);
            return Err(Stuck::OutOfMemory { seconds, engine, event: place(engine), asked, taken, capacity });
        }
        if let Some(engine) = PRIORITY.into_iter().find(waiting) {
            return Err(Stuck::Deadlock { seconds, engine, event: place(engine) });
        }
        Ok(Timeline {
            spans: self.spans,
            seconds,
            peak: Bytes::new(self.peak),
            memory: self.memory,
            moments: self.moment + 1,
        })
    }
}

impl Timeline {
    /// The spans of an engine's events.
    #[must_use]
    pub fn spans_of(&self, engine: Engine) -> &[Span] {
        &self.spans[engine.index()]
    }

    /// The idle periods of an engine longer than `least` seconds before its last completion, as start and end.
    #[must_use]
    pub fn idle_periods(&self, engine: Engine, least: f64) -> Vec<(f64, f64)> {
        let mut free_from = 0.0;
        let mut idle = Vec::new();
        for span in self.spans_of(engine) {
            if span.start - free_from > least {
                idle.push((free_from, span.start));
            }
            free_from = span.end;
        }
        idle
    }

    /// For each engine, the number of events complete at a moment.
    #[must_use]
    pub fn complete_at(&self, moment: u32) -> Completions {
        let complete = |spans: &Vec<Span>| spans.partition_point(|span| span.ended <= moment);
        self.spans.each_ref().map(|spans| u32::try_from(complete(spans)).unwrap_or(u32::MAX))
    }
}

#[cfg(test)]
mod tests {
    use smallvec::smallvec;

    use super::*;
    use crate::{Content, FunctionId, MapId, Task};

    fn bytes(size: u64) -> Bytes {
        Bytes::new(size)
    }

    /// Two functions and a swap of the first one's output: `[buffers of 8 bytes]`.
    fn swap() -> Schedule {
        let map = MapId::from_index(0);
        let mut schedule = Schedule { base: bytes(2), ..Schedule::default() };
        let [first, second, back] =
            [0, 1, 2].map(|version| schedule.add_buffer(Content::Map(map), version, bytes(8)));
        let function = |index, seconds| Event::new(Task::Forward(FunctionId::from_index(index)), seconds);
        let end = Event::new(Task::Backward(FunctionId::from_index(1)), 1.0);
        schedule.events = [
            vec![
                Event { writes: smallvec![first], ..function(0, 2.0) },
                Event { writes: smallvec![second], frees: smallvec![second], ..function(1, 3.0) },
                Event { after: [0, 0, 1], reads: smallvec![back], frees: smallvec![back], ..end },
            ],
            vec![Event {
                after: [1, 0, 0],
                reads: smallvec![first],
                frees: smallvec![first],
                ..Event::new(Task::CopyOut(map), 4.0)
            }],
            vec![Event { after: [0, 1, 0], writes: smallvec![back], ..Event::new(Task::CopyIn(map), 5.0) }],
        ];
        schedule
    }

    #[test]
    fn copies_run_beside_functions() {
        let timeline = simulate_schedule(&swap(), None).expect("runs");
        let times =
            |engine| timeline.spans_of(engine).iter().map(|span| (span.start, span.end)).collect::<Vec<_>>();
        assert_eq!(times(Engine::Compute), [(0.0, 2.0), (2.0, 5.0), (11.0, 12.0)]);
        assert_eq!((times(Engine::Out), times(Engine::In)), (vec![(2.0, 6.0)], vec![(6.0, 11.0)]));
        assert_eq!((timeline.seconds, timeline.peak), (12.0, bytes(18)));
        assert_eq!(timeline.idle_periods(Engine::Compute, 1e-6), [(5.0, 11.0)]);
        let memory: Vec<_> = timeline.memory.iter().map(|&(time, bytes)| (time, bytes.get())).collect();
        let expected = [(0.0, 10), (2.0, 18), (5.0, 10), (6.0, 10), (12.0, 2)];
        assert_eq!(memory, expected);
        assert_eq!(timeline.complete_at(timeline.spans_of(Engine::In)[0].began), [2, 1, 0]);
    }

    /// Functions of 1 s, of 0 s with a buffer of 1000 bytes for itself, and of 1 s.
    fn instant() -> Schedule {
        let mut schedule = Schedule { base: bytes(2), ..Schedule::default() };
        let [scratch, output] = [(0, 1000), (1, 8)]
            .map(|(map, size)| schedule.add_buffer(Content::Map(MapId::from_index(map)), 0, bytes(size)));
        let function = |index, seconds| Event::new(Task::Forward(FunctionId::from_index(index)), seconds);
        schedule.events[0] = vec![
            function(0, 1.0),
            Event { writes: smallvec![scratch], frees: smallvec![scratch], ..function(1, 0.0) },
            Event { writes: smallvec![output], ..function(2, 1.0) },
        ];
        schedule
    }

    #[test]
    fn peak_of_an_instant_stays_in_the_memory() {
        let timeline = simulate_schedule(&instant(), None).expect("runs");
        assert_eq!((timeline.seconds, timeline.peak), (2.0, bytes(1002)));
        let memory: Vec<_> = timeline.memory.iter().map(|&(time, bytes)| (time, bytes.get())).collect();
        assert_eq!(memory, [(0.0, 2), (1.0, 1002), (1.0, 10)]);
    }

    #[test]
    fn an_event_waits_for_memory() {
        // The second function has to wait for the copy out.
        let timeline = simulate_schedule(&swap(), Some(bytes(10))).expect("runs");
        assert_eq!(timeline.spans_of(Engine::Compute)[1].start, 6.0);
        // The copy in has to wait for the second function, which has priority.
        assert_eq!(timeline.spans_of(Engine::In)[0].start, 9.0);
        assert_eq!(timeline.peak, bytes(10));
    }

    #[test]
    fn a_schedule_that_does_not_end_says_why() {
        let stuck = simulate_schedule(&swap(), Some(bytes(9))).expect_err("no room");
        let Stuck::OutOfMemory { engine, event, asked, taken, .. } = stuck else { panic!("{stuck}") };
        assert_eq!((engine, event, asked, taken), (Engine::Compute, 0, bytes(8), bytes(2)));
        let mut schedule = swap();
        schedule.events[1][0].after = [3, 0, 0];
        let stuck = simulate_schedule(&schedule, None).expect_err("a circle");
        assert_eq!(stuck, Stuck::Deadlock { seconds: 5.0, engine: Engine::Out, event: 0 });
        assert!(stuck.to_string().starts_with("deadlock after 5.000000 s: event 0 of `out`"));
    }

    #[test]
    fn an_event_may_start_with_another() {
        let mut schedule = swap();
        schedule.events[2][0].after = [0, 0, 0];
        schedule.events[2][0].with = Some(1);
        let timeline = simulate_schedule(&schedule, None).expect("runs");
        assert_eq!(timeline.spans_of(Engine::In)[0].start, 2.0);
    }
}
