//! What the viewer knows of a schedule: its buffers as one placement over nanoseconds, and its streams.

use serde_json::{Value as Json, json};

use super::colors;
use super::data::{Words, pack_numbers};
use crate::data::schedules::track::{PlacedBuffer, ScheduleTrack, StreamEvent};
use crate::site::parts::timeline::TASKS;

const STREAMS: [&str; 3] = ["compute", "copies out", "copies in"];

/// The data of a schedule on an axis of `horizon` nanoseconds. The base is a buffer, too. The colours of the kinds of
/// values come before those of the tasks.
pub(super) fn track_json(track: &ScheduleTrack, horizon: u64) -> Json {
    let base = base_buffer(track);
    let buffers: Vec<&PlacedBuffer> = base.iter().chain(&track.buffers).collect();
    let mut kinds = Words::default();
    let kind_of: Vec<u64> = buffers.iter().map(|buffer| kinds.word_number(buffer.kind) + 1).collect();
    let all = |number: fn(&PlacedBuffer) -> u64| pack_numbers(buffers.iter().map(|buffer| number(buffer)));
    let writers: Vec<String> = track.events.iter().map(event_name).collect();
    let writer = all(|buffer| number_from_one(buffer.writer));
    // Other schedules of the page may take longer.
    let curve = || track.memory.iter().copied().chain([(track.iteration_ns, 0)]);
    json!({
        "clock": "ns",
        "horizon": horizon,
        "capacity": track.capacity,
        "load": { "bytes": track.peak.0, "step": track.peak.1 },
        "curve": {
            "at": pack_numbers(curve().map(|(at, _)| at)),
            "bytes": pack_numbers(curve().map(|(_, bytes)| bytes)),
        },
        "pieces": {
            "start": all(|buffer| buffer.start_ns),
            "end": all(|buffer| buffer.end_ns),
            "size": all(|buffer| buffer.bytes),
        },
        "buffers": {
            "size": all(|buffer| buffer.bytes),
            "names": buffers.iter().map(|buffer| buffer.name.as_str()).collect::<Vec<&str>>(),
            "category": pack_numbers(kind_of),
            "categories": &kinds.words,
            // All events have their name here, so that the number of a writer is that of its word.
            "op": &writer,
            "ops": writers,
            "writer": &writer,
            "stacks": [],
            "frames": [],
        },
        "panels": [{
            "name": "memory",
            "kind": "plan",
            "height": track.height,
            "borders": [],
            "low": all(|buffer| buffer.offset),
            "absent": [],
        }],
        "streams": stream_json(&track.events),
        "colors": colors::theme_json(&[kinds.words.as_slice(), TASKS.as_slice()].concat()),
    })
}

/// The bytes that are always taken, as a buffer; `None` without a base.
fn base_buffer(track: &ScheduleTrack) -> Option<PlacedBuffer> {
    let base = PlacedBuffer {
        name: "parameters and workspace".to_owned(),
        kind: "reserved",
        bytes: track.base,
        end_ns: track.iteration_ns,
        ..PlacedBuffer::default()
    };
    (track.base > 0).then_some(base)
}

fn event_name(event: &StreamEvent) -> String {
    format!("{} {}", event.task, event.of)
}

/// An index counted from 1; 0 without an index.
fn number_from_one(index: Option<usize>) -> u64 {
    index.map_or(0, |index| index as u64 + 1)
}

fn stream_json(events: &[StreamEvent]) -> Json {
    let all = |number: fn(&StreamEvent) -> u64| pack_numbers(events.iter().map(number));
    let triples = |waits: fn(&StreamEvent) -> [Option<usize>; 3]| {
        pack_numbers(events.iter().flat_map(waits).map(number_from_one))
    };
    json!({
        "names": STREAMS,
        "tasks": TASKS,
        "stream": all(|event| u64::from(event.stream)),
        "task": all(|event| TASKS.iter().position(|task| *task == event.task).unwrap_or(0) as u64),
        "bytes": all(|event| event.bytes),
        "start": all(|event| event.start_ns),
        "end": all(|event| event.end_ns),
        "after": triples(|event| event.after),
        "room": triples(|event| event.room),
        "with": all(|event| number_from_one(event.with)),
    })
}
