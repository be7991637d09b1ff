//! Schedule JSON Lines: a header object, then one object per buffer, then one per event.
//!
//! ```text
//! {"planlab":"schedule","version":1,"scheduler":"pooch/retain","net":"resnet50","batch":512,"machine":"x86-pcie3","base":8000000,"seconds":1.5,"resident":[0]}
//! {"buffer":0,"map":0,"version":0,"bytes":64,"offset":8000000}
//! {"buffer":1,"gradient":4,"version":0,"bytes":64,"offset":8000064}
//! {"engine":"compute","task":"forward","of":0,"after":[0,0,0],"seconds":0.25,"reads":[0],"writes":[1],"frees":[]}
//! ```
//!
//! Buffers are numbered in the order of the file, from 0. The events of one engine are in order; those of different
//! engines may be mixed. `task` is `forward`, `recompute`, `backward` (`of` is a function), `accumulate`, `copy-out` or
//! `copy-in` (`of` is a map).
//!
//! `after` counts completions of `compute`, `out` and `in`. So does `room`, which is present if an event waits for
//! addresses. `with` is a compute event that has to have started. A draft has no `seconds` in its header, no `offset`
//! and no `room`. Without `batch`, the schedule's batch is unknown.

use planlab_dsa::{BufferId, Bytes, Offset};
use planlab_files::FormatError;
use serde::{Deserialize, Serialize};

use super::lines::{begins_with_header, parse_header, split_header, to_line};
use crate::{BufferIds, Content, Event, FunctionId, MapId, Schedule, ScheduledBuffer, Task};

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Header {
    planlab: String,
    version: u32,
    scheduler: String,
    net: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    batch: Option<u64>,
    machine: String,
    base: Bytes,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    seconds: Option<f64>,
    resident: Vec<BufferId>,
}

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct RawBuffer {
    buffer: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    map: Option<MapId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    gradient: Option<MapId>,
    version: u32,
    bytes: Bytes,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    offset: Option<Offset>,
}

#[derive(Clone, Copy, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
enum RawTask {
    Forward,
    Recompute,
    Backward,
    Accumulate,
    CopyOut,
    CopyIn,
}

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct RawEvent {
    engine: String,
    task: RawTask,
    of: u32,
    after: [u32; 3],
    #[serde(default, skip_serializing_if = "waits_for_nothing")]
    room: [u32; 3],
    #[serde(default, skip_serializing_if = "Option::is_none")]
    with: Option<u32>,
    seconds: f64,
    reads: Vec<BufferId>,
    writes: Vec<BufferId>,
    frees: Vec<BufferId>,
}

impl Schedule {
    /// Whether a file that begins with these bytes is a schedule, by its header. They have to contain all of the header.
    #[must_use]
    pub fn begins_file(start: &[u8]) -> bool {
        begins_with_header(start, "schedule")
    }

    /// Reads a schedule. Errors name the file `file`. The result is well-formed, but not checked: see
    /// [`validate`](crate::validate_schedule).
    ///
    /// # Errors
    ///
    /// [`FormatError`] with the line: invalid JSON, a missing or unknown field, an unknown buffer or one out of order,
    /// an event on an engine that cannot do its task, an invalid time.
    pub fn read_jsonl(file: &str, text: &str) -> Result<Self, FormatError> {
        let at = |line: u64, reason: String| FormatError::new(file, line, reason);
        let ((first, header), lines) = split_header(file, text)?;
        let mut schedule = read_header(header).map_err(|reason| at(first, reason))?;
        for (line, text) in lines {
            schedule.read_line(text).map_err(|reason| at(line, reason))?;
        }
        let ids = schedule.resident.clone();
        schedule.check_known(&ids).map_err(|reason| at(first, reason))?;
        Ok(schedule)
    }

    fn read_line(&mut self, text: &str) -> Result<(), String> {
        let is_event = serde_json::from_str::<serde_json::Value>(text)
            .map_err(|error| format!("not JSON: {error}"))?
            .get("engine")
            .is_some();
        if is_event { self.read_event(text) } else { self.read_buffer(text) }
    }

    fn read_buffer(&mut self, text: &str) -> Result<(), String> {
        let raw: RawBuffer = serde_json::from_str(text).map_err(|error| format!("not a buffer: {error}"))?;
        if raw.buffer as usize != self.buffers.len() {
            return Err(format!("buffer {} stands where buffer {} should", raw.buffer, self.buffers.len()));
        }
        let content = match (raw.map, raw.gradient) {
            (Some(map), None) => Content::Map(map),
            (None, Some(map)) => Content::Gradient(map),
            _ => return Err(format!("buffer {} has to have either `map` or `gradient`", raw.buffer)),
        };
        let RawBuffer { version, bytes, offset, .. } = raw;
        if offset.is_some_and(|offset| offset.end_of(bytes).is_none()) {
            return Err(format!("buffer {} ends past 2^64 bytes", raw.buffer));
        }
        self.buffers.push(ScheduledBuffer { content, version, bytes, offset });
        Ok(())
    }

    fn read_event(&mut self, text: &str) -> Result<(), String> {
        let raw: RawEvent = serde_json::from_str(text).map_err(|error| format!("not an event: {error}"))?;
        let index = raw.of as usize;
        let task = match raw.task {
            RawTask::Forward => Task::Forward(FunctionId::from_index(index)),
            RawTask::Recompute => Task::Recompute(FunctionId::from_index(index)),
            RawTask::Backward => Task::Backward(FunctionId::from_index(index)),
            RawTask::Accumulate => Task::Accumulate(MapId::from_index(index)),
            RawTask::CopyOut => Task::CopyOut(MapId::from_index(index)),
            RawTask::CopyIn => Task::CopyIn(MapId::from_index(index)),
        };
        let engine = task.engine();
        if raw.engine != engine.name() {
            return Err(format!("engine `{}` cannot do this task: `{}` does it", raw.engine, engine.name()));
        }
        if !raw.seconds.is_finite() || raw.seconds < 0.0 {
            return Err(format!("the event takes {} seconds", raw.seconds));
        }
        let RawEvent { after, room, with, seconds, reads, writes, frees, .. } = raw;
        let [reads, writes, frees] = [reads, writes, frees].map(BufferIds::from);
        let event = Event { task, after, room, with, seconds, reads, writes, frees };
        [&event.reads, &event.writes, &event.frees].into_iter().try_for_each(|ids| self.check_known(ids))?;
        self.events[engine.index()].push(event);
        Ok(())
    }

    fn check_known(&self, ids: &[BufferId]) -> Result<(), String> {
        match ids.iter().find(|id| id.index() >= self.buffers.len()) {
            Some(id) => Err(format!("buffer {id} is unknown: no line before has it")),
            None => Ok(()),
        }
    }

    /// Writes a schedule in the form that [`Schedule::read_jsonl`] reads.
    #[must_use]
    pub fn write_jsonl(&self) -> String {
        let header = Header {
            planlab: "schedule".to_owned(),
            version: 1,
            scheduler: self.scheduler.clone(),
            net: self.net.clone(),
            batch: self.batch,
            machine: self.machine.clone(),
            base: self.base,
            seconds: self.seconds,
            resident: self.resident.clone(),
        };
        let mut text = to_line(&header);
        for (index, buffer) in (0..).zip(&self.buffers) {
            text += &to_line(&raw_buffer(index, buffer));
        }
        for event in self.events.iter().flatten() {
            text += &to_line(&raw_event(event));
        }
        text
    }
}

fn read_header(text: &str) -> Result<Schedule, String> {
    let Header { scheduler, net, batch, machine, base, seconds, resident, .. } =
        parse_header(text, "schedule")?;
    Ok(Schedule { scheduler, net, batch, machine, base, seconds, resident, ..Schedule::default() })
}

fn raw_buffer(buffer: u32, data: &ScheduledBuffer) -> RawBuffer {
    let (map, gradient) = match data.content {
        Content::Map(map) => (Some(map), None),
        Content::Gradient(map) => (None, Some(map)),
    };
    RawBuffer { buffer, map, gradient, version: data.version, bytes: data.bytes, offset: data.offset }
}

fn waits_for_nothing(room: &[u32; 3]) -> bool {
    *room == [0; 3]
}

fn raw_event(event: &Event) -> RawEvent {
    let (task, of) = match event.task {
        Task::Forward(id) => (RawTask::Forward, id.index()),
        Task::Recompute(id) => (RawTask::Recompute, id.index()),
        Task::Backward(id) => (RawTask::Backward, id.index()),
        Task::Accumulate(id) => (RawTask::Accumulate, id.index()),
        Task::CopyOut(id) => (RawTask::CopyOut, id.index()),
        Task::CopyIn(id) => (RawTask::CopyIn, id.index()),
    };
    let engine = event.task.engine().name().to_owned();
    let of = u32::try_from(of).unwrap_or(u32::MAX);
    let Event { after, room, with, seconds, .. } = *event;
    let [reads, writes, frees] = [&event.reads, &event.writes, &event.frees].map(|ids| ids.to_vec());
    RawEvent { engine, task, of, after, room, with, seconds, reads, writes, frees }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Engine;

    const HEADER: &str = r#"{"planlab":"schedule","version":1,"scheduler":"s","net":"n","machine":"m","base":8,"seconds":0.1,"resident":[0]}"#;
    const IMAGE: &str = r#"{"buffer":0,"map":0,"version":0,"bytes":64,"offset":8}"#;
    const GRADIENT: &str = r#"{"buffer":1,"gradient":3,"version":1,"bytes":64}"#;
    const EVENT: &str = r#"{"engine":"compute","task":"forward","of":2,"after":[0,1,0],"with":0,"seconds":0.25,"reads":[0],"writes":[1],"frees":[0]}"#;
    const COPY: &str = r#"{"engine":"in","task":"copy-in","of":0,"after":[0,0,0],"seconds":1e-9,"reads":[],"writes":[1],"frees":[]}"#;

    fn refusal(lines: &[&str]) -> String {
        Schedule::read_jsonl("s.jsonl", &lines.join("\n")).expect_err("refused").to_string()
    }

    #[test]
    fn what_is_written_is_read_again() {
        let text = [HEADER, IMAGE, GRADIENT, EVENT, COPY].map(|line| format!("{line}\n")).concat();
        let schedule = Schedule::read_jsonl("s.jsonl", &text).expect("good");
        assert_eq!(schedule.events_of(Engine::Compute)[0].after, [0, 1, 0]);
        assert_eq!(schedule.events_of(Engine::In)[0].task, Task::CopyIn(MapId::from_index(0)));
        assert_eq!(schedule.write_jsonl(), text);
        assert_eq!(Schedule::read_jsonl("x", &schedule.write_jsonl()).as_ref(), Ok(&schedule));
    }

    #[test]
    fn schedule_is_known_by_its_header() {
        let begins = |text: &str| Schedule::begins_file(text.as_bytes());
        assert!(begins(HEADER) && begins(&format!("\n{HEADER}\n{{\"buffer\":")));
        assert!(!begins("") && !begins("{") && !begins(IMAGE));
        assert!(!begins(&HEADER.replace(r#""schedule""#, r#""graph""#)));
    }

    #[test]
    fn a_bad_file_is_refused_with_line_and_reason() {
        assert_eq!(refusal(&[]), "s.jsonl:1: the file is empty: there is no header object");
        assert!(refusal(&["{}"]).starts_with("s.jsonl:1: not a header: missing field"));
        let graph = HEADER.replace(r#""schedule""#, r#""graph""#);
        assert_eq!(refusal(&[&graph]), "s.jsonl:1: a `graph` of version 1, not a schedule of version 1");
        assert_eq!(refusal(&[HEADER]), "s.jsonl:1: buffer 0 is unknown: no line before has it");
        assert!(refusal(&[HEADER, "", "nonsense"]).starts_with("s.jsonl:3: not JSON:"));
        assert_eq!(refusal(&[HEADER, GRADIENT]), "s.jsonl:2: buffer 1 stands where buffer 0 should");
        let both = IMAGE.replace(r#""map":0"#, r#""map":0,"gradient":0"#);
        let text = refusal(&[HEADER, &both]);
        assert_eq!(text, "s.jsonl:2: buffer 0 has to have either `map` or `gradient`");
        let far = IMAGE.replace(r#""offset":8"#, r#""offset":18446744073709551615"#);
        assert_eq!(refusal(&[HEADER, &far]), "s.jsonl:2: buffer 0 ends past 2^64 bytes");
        assert_eq!(refusal(&[HEADER, IMAGE, EVENT]), "s.jsonl:3: buffer 1 is unknown: no line before has it");
        let wrong = COPY.replace(r#""in""#, r#""out""#);
        let text = refusal(&[HEADER, IMAGE, GRADIENT, &wrong]);
        assert_eq!(text, "s.jsonl:4: engine `out` cannot do this task: `in` does it");
        let text = refusal(&[HEADER, IMAGE, GRADIENT, &COPY.replace("1e-9", "-1")]);
        assert_eq!(text, "s.jsonl:4: the event takes -1 seconds");
        let text = refusal(&[HEADER, IMAGE, GRADIENT, &COPY.replace(r#""of":0,"#, "")]);
        assert!(text.starts_with("s.jsonl:4: not an event: missing field `of`"), "{text}");
    }
}
