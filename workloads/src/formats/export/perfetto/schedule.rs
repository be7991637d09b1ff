//! A schedule as a trace: a track for each engine, and a counter of the memory.

use planlab_dsa::{BufferId, printable_line};
use planlab_graph::{Engine, Event, EventId, EventWaits, Playback};
use serde_json::{Value, json};

use super::document::{ALL, Events, THREAD, counter_event, process_event, thread_event};

/// Events of the trace viewer for a schedule's run: a track of slices for computing, one for copies to the host, one for
/// copies back, each slice with its bytes, its buffers and what it waited for; and a counter of the bytes taken, base
/// included. Times are microseconds from the start of the iteration, to the nanosecond.
#[must_use]
pub fn write_schedule_perfetto(playback: &Playback) -> Vec<u8> {
    let mut events = Events::new(&describe_schedule(playback));
    events.push_event(&process_event(ALL, &process_name(playback)));
    for engine in Engine::ALL {
        let (thread, index) = (thread_of(engine), engine.index());
        events.push_event(&thread_event(ALL, thread, "thread_name", &json!({ "name": track_name(engine) })));
        events.push_event(&thread_event(ALL, thread, "thread_sort_index", &json!({ "sort_index": index })));
    }
    for (id, event) in playback.schedule().numbered_events() {
        events.push_event(&slice_event(playback, id, event));
    }
    write_memory(playback, &mut events);
    events.finish_document()
}

const fn thread_of(engine: Engine) -> usize {
    THREAD + engine.index()
}

const fn track_name(engine: Engine) -> &'static str {
    match engine {
        Engine::Compute => "compute",
        Engine::Out => "copies out",
        Engine::In => "copies in",
    }
}

fn process_name(playback: &Playback) -> String {
    let schedule = playback.schedule();
    let batch = schedule.batch.map_or_else(String::new, |batch| format!(" at batch {batch}"));
    format!("{}{batch}, {}", schedule.net, schedule.scheduler)
}

fn describe_schedule(playback: &Playback) -> Value {
    let (schedule, totals) = (playback.schedule(), playback.totals());
    json!({
        "net": printable_line(&schedule.net),
        "batch": schedule.batch,
        "scheduler": printable_line(&schedule.scheduler),
        "machine": printable_line(&schedule.machine),
        "seconds": totals.seconds,
        "peak": totals.peak,
        "height": totals.height,
        "made by": "planlab export perfetto",
    })
}

/// Microseconds, to the nanosecond: slices of one track then never overlap by a rounding error.
fn microseconds_of(seconds: f64) -> f64 {
    ((seconds * 1e9).round() / 1e3).min(f64::MAX)
}

fn slice_event(playback: &Playback, id: EventId, event: &Event) -> Value {
    let span = playback.span_of(id);
    let (start, end) = (microseconds_of(span.start), microseconds_of(span.end));
    let names = |buffers: &[BufferId]| -> Vec<String> {
        buffers.iter().map(|&buffer| playback.schedule().buffer(buffer).to_string()).collect()
    };
    let EventWaits { after, room, with } = playback.waits_of(id);
    let tasks = |events: &[Option<EventId>]| -> Vec<String> {
        let known = events.iter().flatten();
        known.map(|&id| playback.schedule().find_event(id).task.to_string()).collect()
    };
    json!({
        "ph": "X",
        "cat": event.task.name(),
        "name": event.task.to_string(),
        "pid": ALL,
        "tid": thread_of(id.engine),
        "ts": start,
        "dur": end - start,
        "args": {
            "bytes": playback.schedule().moved_bytes(event),
            "reads": names(&event.reads),
            "writes": names(&event.writes),
            "frees": names(&event.frees),
            "waits for": tasks(&after),
            "waits for the addresses of": tasks(&room),
            "starts with": tasks(&[with]),
        },
    })
}

/// Writes the bytes taken from each time on; of those at one nanosecond the last.
fn write_memory(playback: &Playback, events: &mut Events) {
    let steps = playback.timeline().memory.iter();
    let mut steps = steps.map(|&(at, bytes)| (microseconds_of(at), bytes.get())).peekable();
    while let Some((at, bytes)) = steps.next() {
        if steps.peek().is_none_or(|&(next, _)| next > at) {
            events.push_event(&counter_event(ALL, "memory", at, bytes));
        }
    }
}

#[cfg(test)]
mod tests {
    use planlab_graph::Schedule;

    use super::*;
    use crate::formats::export::perfetto::document::{counter_points, parse_events};

    const SCHEDULE: &str = r#"{"planlab":"schedule","version":1,"scheduler":"s","net":"n","batch":4,"machine":"m","base":2,"seconds":5.0,"resident":[]}
{"buffer":0,"map":1,"version":0,"bytes":8,"offset":2}
{"buffer":1,"map":1,"version":1,"bytes":8,"offset":2}
{"engine":"compute","task":"forward","of":0,"after":[0,0,0],"seconds":1.0,"reads":[],"writes":[0],"frees":[]}
{"engine":"compute","task":"backward","of":0,"after":[0,0,1],"seconds":1.0,"reads":[1],"writes":[],"frees":[1]}
{"engine":"out","task":"copy-out","of":1,"after":[1,0,0],"seconds":1.5,"reads":[0],"writes":[],"frees":[0]}
{"engine":"in","task":"copy-in","of":1,"after":[0,1,0],"seconds":1.5,"reads":[],"writes":[1],"frees":[]}
"#;

    #[test]
    fn schedule_has_a_track_for_each_engine_and_its_memory() {
        let schedule = Schedule::read_jsonl("s.jsonl", SCHEDULE).expect("read");
        let playback = Playback::new(schedule).expect("right");
        let events = parse_events(&write_schedule_perfetto(&playback));
        let slices: Vec<&Value> = events.iter().filter(|event| event["ph"] == "X").collect();
        let told = |slice: &Value| {
            let number = |name: &str| slice[name].as_f64().expect("a number");
            (slice["tid"].as_u64(), slice["name"].as_str().map(str::to_owned), number("ts"), number("dur"))
        };
        let slice = |thread, name: &str, at, lasts| (Some(thread), Some(name.to_owned()), at, lasts);
        let expected = [
            slice(1, "forward 0", 0.0, 1e6),
            slice(1, "backward 0", 4e6, 1e6),
            slice(2, "copy-out 1", 1e6, 1.5e6),
            slice(3, "copy-in 1", 2.5e6, 1.5e6),
        ];
        assert_eq!(slices.iter().map(|slice| told(slice)).collect::<Vec<_>>(), expected);
        assert_eq!(slices[1]["args"]["waits for"], json!(["copy-in 1"]));
        assert_eq!(slices[1]["args"]["reads"], json!(["map 1, version 1"]));
        assert_eq!(counter_points(&events, "memory"), [(0.0, 10), (2.5e6, 10), (5e6, 2)]);
        let names: Vec<_> = events.iter().filter_map(|event| event["args"]["name"].as_str()).collect();
        assert_eq!(names, ["n at batch 4, s", "compute", "copies out", "copies in"]);
    }
}
