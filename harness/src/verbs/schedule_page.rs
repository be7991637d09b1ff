//! `show` of schedules: a page with the run of each, on one axis of time.

use planlab_dsa::BufferId;
use planlab_graph::{Engine, Event, EventId, EventWaits, Playback, Timeline, ValueKind};
use planlab_reports::{PlacedBuffer, ScheduleTrack, StreamEvent, schedule_page};
use serde_json::{Value, json};

use super::page;
use super::schedule_names::{NamedNets, PartNames};
use crate::cli::ShowArgs;
use crate::inputs;
use crate::shell::JSON_VERSION;
use crate::shell::exit::{Failure, Verdict};
use crate::shell::output::Output;
use crate::shell::quantity::nanoseconds_of;
use crate::shell::target::{Target, tell_written};

/// Writes the page of the first schedule and of those that the further arguments name.
pub(super) fn show_schedules(args: &ShowArgs, first: Playback, target: Target, output: Output) -> Verdict {
    check_options(args)?;
    let path = args.output.display().to_string();
    let mut playbacks = vec![(inputs::input_name(&args.trace), first)];
    for file in &args.plans {
        playbacks.push((inputs::input_name(file), inputs::read_playback(file)?));
    }
    let batches = playbacks.iter().map(|(_, playback)| playback.schedule().batch);
    let nets = NamedNets::from_argument(args.net.as_deref(), &args.reading.parts.dims, batches)?;
    check_nets(&playbacks)?;
    let track = |(name, playback): &(&str, Playback)| -> Result<ScheduleTrack, Failure> {
        let names = nets.part_names(name, playback.schedule())?;
        Ok(schedule_track(name, playback, &names, args.capacity))
    };
    let tracks = playbacks.iter().map(track).collect::<Result<Vec<ScheduleTrack>, Failure>>()?;
    let page = schedule_page(&tracks, &tracks[0].net, &page::command_line())?;
    let written = target.write_all(page.as_bytes());
    let value = json!({
        "version": JSON_VERSION,
        "output": path,
        "bytes": page.len(),
        "schedules": playbacks.iter().map(|(name, playback)| schedule_object(name, playback)).collect::<Vec<_>>(),
    });
    tell_written(written, &path, value, &format!("{} bytes", page.len()), output)
}

fn check_options(args: &ShowArgs) -> Result<(), Failure> {
    page::check_name(&args.output)?;
    let reason = if args.size.is_some() || args.reading.is_said_beside_dims() {
        "--size, --align, --pins, --in-place and --part are for traces, and this is a schedule"
    } else if args.net.is_none() && args.reading.is_said() {
        "--dim is for the net of a schedule: add --net"
    } else {
        return Ok(());
    };
    Err(Failure::from_usage(format!("{}: {reason}", inputs::input_name(&args.trace))))
}

/// Refuses schedules of several nets: their maps have nothing in common.
fn check_nets(playbacks: &[(&str, Playback)]) -> Result<(), Failure> {
    let net = |(_, playback): &(&str, Playback)| playback.schedule().net.clone();
    let wanted = playbacks.first().map(net);
    match playbacks.iter().find(|other| Some(net(other)) != wanted) {
        Some(other) => Err(Failure::from_usage(format!(
            "{}: a schedule for {}, and {} is one for {}",
            other.0,
            net(other),
            playbacks[0].0,
            wanted.unwrap_or_default()
        ))
        .in_file(other.0, None)),
        None => Ok(()),
    }
}

/// The totals of a schedule, for programs.
fn schedule_object(name: &str, playback: &Playback) -> Value {
    let totals = playback.totals();
    json!({
        "schedule": name,
        "scheduler": playback.schedule().scheduler,
        "seconds": totals.seconds,
        "waiting_seconds": totals.waiting,
        "recompute_seconds": totals.recomputing,
        "copied_out": totals.copied_out,
        "copied_in": totals.copied_in,
        "peak": totals.peak,
        "height": totals.height,
    })
}

/// What the page draws of a schedule.
fn schedule_track(
    name: &str,
    playback: &Playback,
    names: &PartNames<'_>,
    capacity: Option<u64>,
) -> ScheduleTrack {
    let (schedule, timeline, totals) = (playback.schedule(), playback.timeline(), playback.totals());
    let memory = timeline.memory.iter().map(|&(seconds, bytes)| (nanoseconds_of(seconds), bytes.get()));
    let batch = schedule.batch.map_or_else(String::new, |batch| format!(" at batch {batch}"));
    let numbers = EventNumbers::from_playback(playback);
    let events = schedule.numbered_events();
    ScheduleTrack {
        name: name.to_owned(),
        net: format!("{}{batch}", schedule.net),
        scheduler: schedule.scheduler.clone(),
        machine: schedule.machine.clone(),
        base: schedule.base.get(),
        capacity,
        memory: memory.collect(),
        peak: (totals.peak.get(), peak_time(timeline)),
        height: totals.height.get(),
        iteration_ns: nanoseconds_of(totals.seconds),
        waiting_ns: nanoseconds_of(totals.waiting),
        recompute_ns: nanoseconds_of(totals.recomputing),
        copied_out: totals.copied_out.get(),
        copied_in: totals.copied_in.get(),
        events: events.map(|(id, event)| numbers.stream_event(id, event, names)).collect(),
        buffers: numbers.placed_buffers(names),
    }
}

/// Nanoseconds to the first of the moments with the most bytes taken.
fn peak_time(timeline: &Timeline) -> u64 {
    let first = timeline.memory.iter().find(|&&(_, bytes)| bytes == timeline.peak);
    first.map_or(0, |&(seconds, _)| nanoseconds_of(seconds))
}

/// The events of a schedule numbered through, engine by engine.
struct EventNumbers<'p> {
    playback: &'p Playback,
    /// The number of each engine's first event.
    firsts: [usize; 3],
}

impl<'p> EventNumbers<'p> {
    fn from_playback(playback: &'p Playback) -> Self {
        let counts = Engine::ALL.map(|engine| playback.schedule().events_of(engine).len());
        Self { playback, firsts: [0, counts[0], counts[0] + counts[1]] }
    }

    fn number_of(&self, id: EventId) -> usize {
        self.firsts[id.engine.index()] + id.place
    }

    fn stream_event(&self, id: EventId, event: &Event, names: &PartNames<'_>) -> StreamEvent {
        let span = self.playback.span_of(id);
        let EventWaits { after, room, with } = self.playback.waits_of(id);
        let number = |id: Option<EventId>| id.map(|id| self.number_of(id));
        StreamEvent {
            stream: [0, 1, 2][id.engine.index()],
            task: event.task.name(),
            of: names.object_name(event.task),
            bytes: self.playback.schedule().moved_bytes(event).get(),
            start_ns: nanoseconds_of(span.start),
            end_ns: nanoseconds_of(span.end),
            after: after.map(number),
            room: room.map(number),
            with: number(with),
        }
    }

    fn placed_buffers(&self, names: &PartNames<'_>) -> Vec<PlacedBuffer> {
        let schedule = self.playback.schedule();
        let kinds = self.playback.value_kinds().into_iter().map(ValueKind::name);
        let facts = self.playback.buffer_times().into_iter().zip(kinds).zip(0..);
        let placed = schedule.buffers.iter().zip(facts);
        let placed = placed.map(|(buffer, (((start, end), kind), index))| PlacedBuffer {
            name: names.buffer_name(buffer),
            kind,
            bytes: buffer.bytes.get(),
            offset: buffer.offset.map_or(0, |offset| offset.get()),
            start_ns: nanoseconds_of(start),
            end_ns: nanoseconds_of(end),
            writer: self.playback.writer_of(BufferId::from_index(index)).map(|id| self.number_of(id)),
        });
        placed.collect()
    }
}
