//! A schedule from its file alone, without net and machine: its run by its own times, checked and summed up.
//!
//! What is checked here holds for this run. Whether the schedule trains a net, and with any other times, is for
//! [`validate_schedule`](crate::validate_schedule).

use std::collections::BTreeSet;

use planlab_dsa::{BufferId, Bytes, InstanceError, Offset, Plan};

use super::validate::{check_claim, find_offset, find_writers};
use crate::{
    Completions, Content, Engine, Event, EventId, MapId, Schedule, ScheduledBuffer, Span, Stuck, Task,
    Timeline, Violation, simulate_schedule,
};

/// Why a schedule's own data shows that it is not valid.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum PlaybackError {
    /// It does not run to its end.
    #[error(transparent)]
    Stuck(#[from] Stuck),
    /// A buffer without a place or a writer, a use outside of a buffer's life, or a wrong declared time.
    #[error(transparent)]
    Violation(#[from] Violation),
    /// Buffers without bytes, or with more than 2^64 - 1 in all.
    #[error(transparent)]
    Sizes(#[from] InstanceError),
    /// Two buffers that share an address at one moment; offsets count from the base, steps are moments of the run.
    #[error("{0}")]
    Places(#[from] planlab_dsa::Violation),
}

planlab_dsa::named_enum! {
    /// What a schedule does with a value.
    #[derive(PartialOrd, Ord)]
    pub enum ValueKind {
        /// An input of the net, on the device from the start.
        Input = "input",
        /// A feature map that is neither copied nor recomputed.
        Kept = "kept",
        /// A feature map that is copied to the host or back.
        Copied = "copied",
        /// A feature map that is computed again.
        Recomputed = "recomputed",
        /// A feature map that is both.
        CopiedAndRecomputed = "copied and recomputed",
        /// A gradient, or a part of one.
        Gradient = "gradient",
    }
}

/// What an iteration costs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PlaybackTotals {
    /// Seconds from the start to the last completion.
    pub seconds: f64,
    /// Seconds of these in which nothing is computed.
    pub waiting: f64,
    /// Seconds of recomputation.
    pub recomputing: f64,
    /// Bytes copied to the host.
    pub copied_out: Bytes,
    /// Bytes copied from the host.
    pub copied_in: Bytes,
    /// The most bytes taken at once, base included.
    pub peak: Bytes,
    /// Memory that the offsets need, base included.
    pub height: Bytes,
}

/// What an event waits for beside the event before it on its engine. Engines are in the order of [`Engine::ALL`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EventWaits {
    /// The events that have to be complete, wherever its buffers lie.
    pub after: [Option<EventId>; 3],
    /// The later events that have to be complete so that its addresses are free.
    pub room: [Option<EventId>; 3],
    /// The event that has to have started.
    pub with: Option<EventId>,
}

/// The run of a placed schedule by its own times, in which every buffer is used in its life alone and no two share an
/// address.
#[derive(Clone, Debug, PartialEq)]
pub struct Playback {
    schedule: Schedule,
    timeline: Timeline,
    /// For each buffer, the event that writes it; `None` if it exists from the start.
    writers: Vec<Option<EventId>>,
}

impl Playback {
    /// Runs a schedule in unlimited memory and checks it.
    ///
    /// # Errors
    ///
    /// [`PlaybackError`] with what is wrong. A draft is refused: it has no offsets.
    pub fn new(schedule: Schedule) -> Result<Self, PlaybackError> {
        let offsets = offsets_above_base(&schedule)?;
        let writers = find_writers(&schedule)?;
        let timeline = simulate_schedule(&schedule, None)?;
        let playback = Self { schedule, timeline, writers };
        playback.check_lives()?;
        check_claim(&playback.schedule, playback.timeline.seconds)?;
        let instance = playback.schedule.placement_problem(&playback.timeline)?;
        instance.verify(Plan::from_offsets(offsets)).map(drop)?;
        Ok(playback)
    }

    /// The schedule.
    #[must_use]
    pub const fn schedule(&self) -> &Schedule {
        &self.schedule
    }

    /// Its run.
    #[must_use]
    pub const fn timeline(&self) -> &Timeline {
        &self.timeline
    }

    /// When an event runs.
    ///
    /// # Panics
    ///
    /// If there is no such event.
    #[must_use]
    pub fn span_of(&self, event: EventId) -> Span {
        self.timeline.spans_of(event.engine)[event.place]
    }

    /// The event that writes a buffer; `None` if the buffer exists from the start.
    ///
    /// # Panics
    ///
    /// If there is no buffer with that id.
    #[must_use]
    pub fn writer_of(&self, buffer: BufferId) -> Option<EventId> {
        self.writers[buffer.index()]
    }

    /// For each buffer, the seconds from and to which it is taken.
    #[must_use]
    pub fn buffer_times(&self) -> Vec<(f64, f64)> {
        let start = |writer: &Option<EventId>| writer.map_or(0.0, |writer| self.span_of(writer).start);
        let mut times: Vec<(f64, f64)> = self.writers.iter().map(|writer| (start(writer), 0.0)).collect();
        let mut is_freed = vec![false; times.len()];
        for (event, data) in self.schedule.numbered_events() {
            for id in &data.frees {
                let end = &mut times[id.index()].1;
                *end = end.max(self.span_of(event).end);
                is_freed[id.index()] = true;
            }
        }
        for (times, _) in times.iter_mut().zip(is_freed).filter(|(_, is_freed)| !is_freed) {
            times.1 = self.timeline.seconds;
        }
        times
    }

    /// What an event waits for.
    ///
    /// # Panics
    ///
    /// If there is no such event.
    #[must_use]
    pub fn waits_of(&self, id: EventId) -> EventWaits {
        let Event { after, room, with, .. } = self.schedule.find_event(id);
        // Earlier events of its own engine are complete anyway.
        let last = |counts: Completions| {
            Engine::ALL.map(|engine| {
                let place = counts[engine.index()].checked_sub(1)? as usize;
                (engine != id.engine).then_some(EventId { engine, place })
            })
        };
        let later = [0, 1, 2].map(|engine| if room[engine] > after[engine] { room[engine] } else { 0 });
        let with = with.map(|place| EventId { engine: Engine::Compute, place: place as usize });
        EventWaits { after: last(*after), room: last(later), with }
    }

    /// What the schedule does with the value of each buffer.
    #[must_use]
    pub fn value_kinds(&self) -> Vec<ValueKind> {
        let (mut copied, mut recomputed) = (BTreeSet::new(), BTreeSet::new());
        for (_, event) in self.schedule.numbered_events() {
            match event.task {
                Task::CopyOut(map) | Task::CopyIn(map) => {
                    copied.insert(map);
                }
                Task::Recompute(_) => recomputed.extend(self.written_maps(event)),
                _ => {}
            }
        }
        let kind = |(buffer, writer): (&ScheduledBuffer, &Option<EventId>)| match buffer.content {
            Content::Gradient(_) => ValueKind::Gradient,
            Content::Map(map) => match (copied.contains(&map), recomputed.contains(&map)) {
                (true, true) => ValueKind::CopiedAndRecomputed,
                (true, false) => ValueKind::Copied,
                (false, true) => ValueKind::Recomputed,
                (false, false) if writer.is_none() => ValueKind::Input,
                (false, false) => ValueKind::Kept,
            },
        };
        self.schedule.buffers.iter().zip(&self.writers).map(kind).collect()
    }

    fn written_maps(&self, event: &Event) -> impl Iterator<Item = MapId> {
        event.writes.iter().filter_map(move |&id| match self.schedule.buffer(id).content {
            Content::Map(map) => Some(map),
            Content::Gradient(_) => None,
        })
    }

    /// What the iteration costs.
    #[must_use]
    pub fn totals(&self) -> PlaybackTotals {
        let Timeline { seconds, peak, .. } = self.timeline;
        let durations = |engine: Engine| {
            let spans = self.timeline.spans_of(engine).iter().map(|span| span.end - span.start);
            self.schedule.events_of(engine).iter().zip(spans)
        };
        let computing: f64 = durations(Engine::Compute).map(|(_, seconds)| seconds).sum();
        let again = durations(Engine::Compute).filter(|(event, _)| matches!(event.task, Task::Recompute(_)));
        let copied = |engine: Engine| {
            let sizes = self.schedule.events_of(engine).iter().map(|event| self.schedule.moved_bytes(event));
            Bytes::new(sizes.map(Bytes::get).fold(0, u64::saturating_add))
        };
        PlaybackTotals {
            seconds,
            waiting: (seconds - computing).max(0.0),
            recomputing: again.map(|(_, seconds)| seconds).fold(0.0, std::ops::Add::add),
            copied_out: copied(Engine::Out),
            copied_in: copied(Engine::In),
            peak,
            height: self.schedule.height().unwrap_or(self.schedule.base),
        }
    }

    /// Checks that events use buffers that are written and not yet free. After it every life has a start before its end.
    fn check_lives(&self) -> Result<(), Violation> {
        let lives = self.schedule.buffer_lifetimes(&self.timeline);
        for (event, data) in self.schedule.numbered_events() {
            let span = self.span_of(event);
            for &buffer in data.reads.iter().chain(&data.frees) {
                let writer = self.writers[buffer.index()];
                let is_own = writer == Some(event) && !data.reads.contains(&buffer);
                if !is_own && writer.is_some_and(|writer| self.span_of(writer).ended > span.began) {
                    return Err(Violation::NotWritten { event, buffer });
                }
            }
            for &buffer in data.reads.iter().chain(&data.writes) {
                if lives[buffer.index()].1 < span.ended {
                    return Err(Violation::AfterFree { event, buffer });
                }
            }
        }
        Ok(())
    }
}

/// The offsets of all buffers, counted from the base.
fn offsets_above_base(schedule: &Schedule) -> Result<Vec<Offset>, Violation> {
    let above_base = |offset: u64| Offset::new(offset - schedule.base.get());
    let ids = (0..schedule.buffers.len()).map(BufferId::from_index);
    ids.map(|buffer| find_offset(schedule, buffer).map(above_base)).collect()
}

#[cfg(test)]
mod tests {
    use smallvec::smallvec;

    use super::*;
    use crate::FunctionId;

    /// Two functions; the output of the first goes to the host and comes back, that of the second is computed again.
    fn swapping() -> Schedule {
        let (kept, back) = (MapId::from_index(1), MapId::from_index(2));
        let mut schedule = Schedule { base: Bytes::new(2), ..Schedule::default() };
        let contents = [(Content::Map(kept), 0), (Content::Map(back), 0), (Content::Map(kept), 1)];
        let ids = contents.map(|(content, version)| schedule.add_buffer(content, version, Bytes::new(8)));
        let [out, twice, returned] = ids;
        let again = schedule.add_buffer(Content::Map(back), 1, Bytes::new(8));
        for (buffer, offset) in schedule.buffers.iter_mut().zip([2, 10, 2, 10]) {
            buffer.offset = Some(Offset::new(offset));
        }
        let function =
            |task: fn(FunctionId) -> Task, index| Event::new(task(FunctionId::from_index(index)), 1.0);
        schedule.events = [
            vec![
                Event { writes: smallvec![out], ..function(Task::Forward, 0) },
                Event { writes: smallvec![twice], frees: smallvec![twice], ..function(Task::Forward, 1) },
                Event {
                    after: [0, 0, 1],
                    writes: smallvec![again],
                    frees: smallvec![again, returned],
                    ..function(Task::Recompute, 1)
                },
            ],
            vec![Event {
                after: [1, 0, 0],
                reads: smallvec![out],
                frees: smallvec![out],
                ..Event::new(Task::CopyOut(kept), 3.0)
            }],
            vec![Event {
                after: [0, 1, 0],
                room: [2, 1, 0],
                writes: smallvec![returned],
                ..Event::new(Task::CopyIn(kept), 2.0)
            }],
        ];
        schedule.seconds = Some(7.0);
        schedule
    }

    fn refusal(change: impl FnOnce(&mut Schedule)) -> String {
        let mut schedule = swapping();
        change(&mut schedule);
        Playback::new(schedule).expect_err("refused").to_string()
    }

    #[test]
    fn playback_sums_up_times_and_copies() {
        let playback = Playback::new(swapping()).expect("right");
        let [copied_out, copied_in, peak, height] = [8, 8, 18, 18].map(Bytes::new);
        let expected = PlaybackTotals {
            seconds: 7.0,
            waiting: 4.0,
            recomputing: 1.0,
            copied_out,
            copied_in,
            peak,
            height,
        };
        assert_eq!(playback.totals(), expected);
        assert_eq!(playback.buffer_times(), [(0.0, 4.0), (1.0, 2.0), (4.0, 7.0), (6.0, 7.0)]);
        let kinds = playback.value_kinds();
        let (copied, recomputed) = (ValueKind::Copied, ValueKind::Recomputed);
        assert_eq!(kinds, [copied, recomputed, copied, recomputed]);
    }

    #[test]
    fn waits_leave_out_what_is_complete_anyway() {
        let playback = Playback::new(swapping()).expect("right");
        let event = |engine, place| EventId { engine, place };
        let waits = playback.waits_of(event(Engine::In, 0));
        assert_eq!(waits.after, [None, Some(event(Engine::Out, 0)), None]);
        assert_eq!(waits.room, [Some(event(Engine::Compute, 1)), None, None]);
        assert_eq!(waits.with, None);
        assert_eq!(playback.writer_of(BufferId::from_index(2)), Some(event(Engine::In, 0)));
    }

    #[test]
    fn schedule_that_contradicts_itself_is_refused() {
        let text = refusal(|schedule| schedule.buffers[1].offset = None);
        assert_eq!(text, "buffer 1 has no offset");
        let text = refusal(|schedule| schedule.buffers[1].offset = Some(Offset::new(1)));
        assert_eq!(text, "buffer 1 begins at 1, below the 2 bytes of the base");
        let text = refusal(|schedule| schedule.buffers[1].offset = Some(Offset::new(4)));
        assert!(text.contains("overlap"), "{text}");
        let text = refusal(|schedule| schedule.seconds = Some(6.0));
        assert_eq!(text, "the schedule claims 6e0 s; it takes 7e0");
        let text = refusal(|schedule| {
            schedule.events[0][0].seconds = 1e308;
            schedule.events[0][1].seconds = 1e308;
        });
        assert_eq!(text, "the events together take more seconds than a number can hold");
        let text = refusal(|schedule| schedule.events[1][0].after = [0; 3]);
        assert!(text.starts_with("event 0 of `out` reads or frees buffer 0"), "{text}");
        let text = refusal(|schedule| schedule.events[0][2].after = [0; 3]);
        assert!(text.starts_with("event 2 of `compute` reads or frees buffer 2"), "{text}");
        let text = refusal(|schedule| schedule.events[0][1].writes.clear());
        assert_eq!(text, "nothing writes buffer 1");
        let text = refusal(|schedule| schedule.events[1][0].after = [9, 0, 0]);
        assert!(text.starts_with("deadlock"), "{text}");
    }
}
