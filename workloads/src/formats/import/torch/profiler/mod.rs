//! Traces of PyTorch's profiler: what `torch.profiler.profile(profile_memory=True)` exports for Chrome.
//!
//! JSON with the events of a run. Those named `[memory]` say that bytes came to an address or went; their order is that
//! of `Ev Idx`, since those of several threads may be anywhere in the file. The operation that made a buffer is the
//! innermost one of the same thread that was under way. A part is a device: `cpu`, `cuda:0`; where several processes have
//! events, the device of one of them: `cpu/pid-7`, since each has addresses and an order of its own. Step `k` of the trace
//! is the `k`-th memory event of the part, from 1; step 0 is before it.

mod event;

use std::fmt;

use planlab_dsa::Bytes;
use rustc_hash::FxHashMap;
use serde::de::{DeserializeSeed, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

use self::event::Extract;
use super::life::{BLOCK, Life, sort, trace};
use super::lives::Lives;
use crate::formats::error::{clip_to_cell, of_json};
use crate::formats::import::{Dropped, Framework, Imported, Input, Part, Reader};
use crate::formats::{FormatError, ReadOptions};

/// PyTorch aligns memory of the host to this many bytes.
const CPU_ALIGNMENT: u64 = 64;

pub(crate) const READER: Reader = Reader {
    key: "torch-profiler",
    title: "a Chrome trace of PyTorch's profiler with memory events (torch.profiler, profile_memory=True)",
    endings: &[],
    has_lines: true,
    looks_like,
    read: read_profiler,
};

/// Keys of Chrome's and PyTorch's traces that may come before the events, and push them out of what is looked at.
const HEAD: [&[u8]; 5] =
    [b"schemaVersion", b"deviceProperties", b"traceName", b"displayTimeUnit", b"baseTimeNanoseconds"];

fn looks_like(start: &[u8]) -> bool {
    const KEY: &[u8] = b"\"traceEvents\"";
    let start = start.trim_ascii_start();
    match start.strip_prefix(b"[") {
        // The events alone are a trace, too.
        Some(events) => event::object_keys(events.trim_ascii_start()).contains(&&b"ph"[..]),
        None if !start.starts_with(b"{") => false,
        None => {
            start.windows(KEY.len()).any(|window| window == KEY)
                || event::object_keys(start).iter().any(|key| HEAD.contains(key))
        }
    }
}

fn read_profiler(input: Input<'_>, options: &ReadOptions) -> Result<Imported, FormatError> {
    let file = input.file_name().to_owned();
    let mut events = Events::default();
    let mut json = serde_json::Deserializer::from_reader(input.into_stream());
    let read = Top(&mut events).deserialize(&mut json).and_then(|()| json.end());
    read.map_err(|error| of_json(&file, &error))?;
    if events.memory.is_empty() {
        let reason = "there is no event `[memory]` in it: profile with profile_memory=True";
        return Err(FormatError::new(file, 1, reason));
    }
    let mut imported = Imported::default();
    for (name, memory) in events.by_part() {
        let (part, dropped) = build_part(&file, name, &memory, &events.operations, options)?;
        imported.parts.extend(part);
        imported.dropped.extend(dropped);
    }
    if imported.parts.is_empty() {
        return Err(FormatError::new(file, 1, "there is no buffer in it"));
    }
    Ok(imported)
}

/// The process and the thread of an event: several processes may have threads of one number.
type Thread = (String, String);

fn thread(event: &Value) -> Thread {
    (event["pid"].to_string(), event["tid"].to_string())
}

/// A number of an event; 0 if it does not say.
fn number_or_zero(value: &Value) -> Option<f64> {
    if value.is_null() { Some(0.0) } else { value.as_f64() }
}

/// Bytes that come to an address or go.
#[derive(Clone, Debug)]
struct Memory {
    index: u64,
    address: u64,
    bytes: i64,
    allocated: Option<u64>,
    reserved: Option<u64>,
    process: Process,
    device: (i64, i64),
    thread: Thread,
    time: f64,
}

impl Memory {
    fn from_event(event: &Value) -> Result<Self, String> {
        let arguments = &event["args"];
        let whole = |name: &str| match &arguments[name] {
            Value::Null => Err(format!("an event `[memory]` has no `{name}`")),
            value => value.as_u64().ok_or_else(|| format!("`{name}` of an event `[memory]` is {value}")),
        };
        let (kind, device) = (&arguments["Device Type"], &arguments["Device Id"]);
        let time = &event["ts"];
        Ok(Self {
            index: whole("Ev Idx")?,
            address: whole("Addr")?,
            bytes: arguments["Bytes"].as_i64().ok_or("an event `[memory]` has no whole number `Bytes`")?,
            allocated: arguments["Total Allocated"].as_u64(),
            reserved: arguments["Total Reserved"].as_u64(),
            process: Process::from_pid(&event["pid"]),
            device: (kind.as_i64().unwrap_or(0), device.as_i64().unwrap_or(-1)),
            thread: thread(event),
            time: number_or_zero(time).ok_or_else(|| format!("`ts` of an event `[memory]` is {time}"))?,
        })
    }

    fn device_key(&self) -> String {
        match self.device {
            (0, _) => "cpu".to_owned(),
            (1, device) => format!("cuda:{device}"),
            (kind, device) => format!("device-{kind}:{device}"),
        }
    }
}

/// Who has the memory of an event, by number or by name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Process {
    Number(u64),
    Name(String),
}

impl Process {
    fn from_pid(pid: &Value) -> Self {
        match (pid.as_u64(), pid.as_str()) {
            (Some(number), _) => Self::Number(number),
            (None, Some(name)) => Self::Name(clip_to_cell(name)),
            (None, None) => Self::Name(clip_to_cell(&pid.to_string())),
        }
    }
}

impl fmt::Display for Process {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => write!(f, "pid-{number}"),
            Self::Name(name) => write!(f, "pid-{name}"),
        }
    }
}

/// An operation of a thread.
#[derive(Clone, Debug)]
struct Operation {
    from: f64,
    to: f64,
    name: String,
}

#[derive(Default)]
struct Events {
    memory: Vec<Memory>,
    /// Of each thread.
    operations: FxHashMap<Thread, Vec<Operation>>,
}

impl Events {
    /// Takes an event in. One of memory has to make sense; others name buffers and no more, and pass by if they do not.
    fn take_event(&mut self, event: &Value) -> Result<(), String> {
        match (event["ph"].as_str(), event["name"].as_str()) {
            (Some("i" | "I"), Some("[memory]")) => self.memory.push(Memory::from_event(event)?),
            (Some("X"), Some(name)) => {
                if let (Some(from), Some(long)) =
                    (number_or_zero(&event["ts"]), number_or_zero(&event["dur"]))
                {
                    let operation = Operation { from, to: from + long, name: clip_to_cell(name) };
                    self.operations.entry(thread(event)).or_default().push(operation);
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// The memory events of each part in their order, with its name; the operations by start, the outer first.
    fn by_part(&mut self) -> Vec<(String, Vec<Memory>)> {
        for operations in self.operations.values_mut() {
            operations.sort_by(|a, b| a.from.total_cmp(&b.from).then(b.to.total_cmp(&a.to)));
        }
        let mut memory = std::mem::take(&mut self.memory);
        memory.sort_by(|a, b| (&a.process, a.device, a.index).cmp(&(&b.process, b.device, b.index)));
        let is_one = memory.first().map(|event| &event.process) == memory.last().map(|event| &event.process);
        let parts = memory.chunk_by(|a, b| (&a.process, a.device) == (&b.process, b.device));
        let named = parts.map(|events| {
            let device = events[0].device_key();
            let name = if is_one { device } else { format!("{device}/{}", events[0].process) };
            (name, events.to_vec())
        });
        named.collect()
    }
}

fn build_part(
    file: &str,
    name: String,
    memory: &[Memory],
    operations: &FxHashMap<Thread, Vec<Operation>>,
    options: &ReadOptions,
) -> Result<(Option<Part>, Vec<Dropped>), FormatError> {
    let made_by = innermost_operations(memory, operations);
    let mut names: Vec<String> = Vec::new();
    let mut numbers: FxHashMap<&str, u32> = FxHashMap::default();
    let mut lives = Lives::default();
    for ((step, event), op) in (1_u64..).zip(memory).zip(&made_by) {
        let (address, size) = (event.address, event.bytes.unsigned_abs());
        if event.bytes < 0 {
            lives.request_free(address);
            lives.end_buffer(Life { end: step, address, size, ..Life::default() });
        } else {
            let stack = op.map(|op| {
                *numbers.entry(op).or_insert_with(|| {
                    names.push(op.to_owned());
                    u32::try_from(names.len() - 1).unwrap_or(u32::MAX)
                })
            });
            lives.begin_buffer(Life { start: step, address, size, stack, ..Life::default() });
        }
    }
    let end = memory.len() as u64 + 1;
    let (mut lives, mut dropped) = lives.finish_lives(end, 0, false);
    dropped.extend(never_seen(memory, &lives));
    if lives.is_empty() {
        return Ok((None, dropped));
    }
    sort(&mut lives);
    let most = |of: fn(&Memory) -> Option<u64>| memory.iter().filter_map(of).max();
    let reserved = most(|event| event.reserved).filter(|&bytes| bytes > 0);
    let widest = if memory[0].device.0 == 0 { CPU_ALIGNMENT } else { BLOCK };
    let placement = lives.iter().map(|life| Some(life.address)).collect();
    let of = ("torch.profiler", name.as_str(), reserved);
    let trace = trace(file, options, of, (lives, widest), |op| names.get(op as usize).cloned())?;
    let framework = Framework {
        allocated_peak: most(|event| event.allocated).map(Bytes::new),
        reserved_peak: reserved.map(Bytes::new),
        placement,
        ..Framework::new("PyTorch")
    };
    Ok((Some(Part { name, trace, framework: Some(framework) }), dropped))
}

/// Bytes that were allocated before the first event and that no event frees: nothing says which buffers they are.
fn never_seen(memory: &[Memory], lives: &[Life]) -> Option<Dropped> {
    let first = memory.first()?;
    let before = i128::from(first.allocated?) - i128::from(first.bytes);
    let known: i128 = lives.iter().filter(|life| life.start == 0).map(|life| i128::from(life.size)).sum();
    let bytes = u64::try_from(before - known).ok().filter(|&bytes| bytes > 0)?;
    let why = "no event says how large they are; they are not in the trace, but in the profiler's own totals";
    let what = "group of buffers from before the recording that it never frees";
    Some(Dropped::new(1, what, why).with_bytes(bytes))
}

/// The innermost operation that was under way at each memory event, in the thread of the event.
fn innermost_operations<'o>(
    memory: &[Memory],
    operations: &'o FxHashMap<Thread, Vec<Operation>>,
) -> Vec<Option<&'o str>> {
    let mut order: Vec<usize> = (0..memory.len()).collect();
    order.sort_by(|&a, &b| {
        memory[a].thread.cmp(&memory[b].thread).then(memory[a].time.total_cmp(&memory[b].time))
    });
    let mut found = vec![None; memory.len()];
    for group in order.chunk_by(|&a, &b| memory[a].thread == memory[b].thread) {
        let Some(operations) = operations.get(&memory[group[0]].thread) else { continue };
        let mut next = operations.iter().peekable();
        let mut open: Vec<&Operation> = Vec::new();
        for &event in group {
            let time = memory[event].time;
            while let Some(operation) = next.next_if(|operation| operation.from <= time) {
                close_ended(&mut open, operation.from);
                open.push(operation);
            }
            close_ended(&mut open, time);
            found[event] = open.last().map(|operation| operation.name.as_str());
        }
    }
    found
}

/// Takes those off the end that were over before a time.
fn close_ended(open: &mut Vec<&Operation>, time: f64) {
    while open.last().is_some_and(|operation| operation.to < time) {
        open.pop();
    }
}

/// The file: takes the events in one by one, and passes by the rest.
struct Top<'e>(&'e mut Events);

impl<'de> DeserializeSeed<'de> for Top<'_> {
    type Value = ();

    fn deserialize<D: serde::Deserializer<'de>>(self, json: D) -> Result<(), D::Error> {
        json.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Top<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object with the array `traceEvents`, or an array of events")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key::<String>()? {
            if key == "traceEvents" {
                map.next_value_seed(Array(&mut *self.0))?;
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, array: A) -> Result<(), A::Error> {
        Array(self.0).visit_seq(array)
    }
}

struct Array<'e>(&'e mut Events);

impl<'de> DeserializeSeed<'de> for Array<'_> {
    type Value = ();

    fn deserialize<D: serde::Deserializer<'de>>(self, json: D) -> Result<(), D::Error> {
        json.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for Array<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array of events")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut array: A) -> Result<(), A::Error> {
        while let Some(event) = array.next_element_seed(Extract::EVENT)? {
            self.0.take_event(&event).map_err(serde::de::Error::custom)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::import::testing::{lives, parts, read};

    fn memory(pid: &str, index: u32, address: u64, bytes: i64) -> String {
        format!(
            r#"{{"ph":"i","name":"[memory]","pid":{pid},"tid":7,"ts":5,"args":{{"Addr":{address},"Bytes":{bytes},"Ev Idx":{index}}}}}"#
        )
    }

    fn imported(text: &str) -> Imported {
        read("t.json", text).expect("valid")
    }

    fn profile(events: &[String]) -> Imported {
        imported(&format!(r#"{{"traceEvents":[{}]}}"#, events.join(",")))
    }

    #[test]
    fn threads_of_two_processes_are_two() {
        let operation = |pid: u32, name: &str| {
            format!(r#"{{"ph":"X","name":"{name}","pid":{pid},"tid":7,"ts":{pid},"dur":9}}"#)
        };
        let events =
            [memory("1", 1, 1, 64), memory("2", 2, 2, 64), operation(1, "conv"), operation(2, "relu")];
        let parts = profile(&events).parts;
        let op = |part: &Part| part.trace.labels.buffers[0].op.clone();
        assert_eq!(parts.iter().filter_map(op).collect::<Vec<_>>(), ["conv", "relu"]);
    }

    #[test]
    fn processes_have_addresses_and_an_order_of_their_own() {
        // Each has one buffer of 64 bytes after the other at one address; their numbers are those of each.
        let of = |pid: &str| {
            [(1, 64), (2, -64), (3, 64), (4, -64)].map(|(index, bytes)| memory(pid, index, 4096, bytes))
        };
        let both = profile(&[of("11"), of("9")].concat());
        assert_eq!(parts(&both), ["cpu/pid-9", "cpu/pid-11"]);
        assert_eq!(both.dropped.len(), 0);
        for part in &both.parts {
            assert_eq!(lives(&part.trace), [("1", (1, 2), 64), ("3", (3, 4), 64)]);
        }
        assert_eq!(parts(&profile(&of("9"))), ["cpu"]);
        assert_eq!(parts(&profile(&[of("9"), of(r#""gpu""#)].concat())), ["cpu/pid-9", "cpu/pid-gpu"]);
    }

    #[test]
    fn a_foreign_event_that_makes_no_sense_passes_by() {
        let plain =
            [memory("1", 1, 1, 64), r#"{"ph":"X","name":"conv","pid":1,"tid":7,"ts":1,"dur":9}"#.to_owned()];
        let expected = format!("{:?}", profile(&plain).parts);
        for odd in [
            r#"{"ph":"X","name":null,"pid":1,"tid":7,"ts":2,"dur":9}"#,
            r#"{"ph":"X","name":["relu"],"pid":1,"tid":7,"ts":2,"dur":9}"#,
            r#"{"ph":"X","name":"relu","pid":1,"tid":7,"ts":"2","dur":9}"#,
            r#"{"ph":"X","name":"relu","pid":1,"tid":7,"ts":2,"dur":{"ms":9}}"#,
            r#"{"ph":"X","name":"relu","pid":1,"tid":7,"ts":2,"dur":null}"#,
            r#"{"ph":"M","name":"process_name","args":"text"}"#,
            r#"{"ph":"M","name":"process_name","args":[{"Addr":1}]}"#,
            r#"{"ph":7,"name":true,"pid":{},"tid":[1,2],"ts":null,"args":null}"#,
            r#"{"ph":"M","ph":"M","name":"a","name":"b"}"#,
            "null",
            "7",
            r#""text""#,
            "[[]]",
        ] {
            let found = profile(&[odd.to_owned(), plain[0].clone(), plain[1].clone()]);
            assert_eq!(format!("{:?}", found.parts), expected, "{odd}");
        }
    }

    #[test]
    fn an_event_of_memory_has_to_make_sense() {
        for (from, to, reason) in [
            (r#""Addr":1"#, r#""Addr":"1""#, r#"`Addr` of an event `[memory]` is "1""#),
            (r#""Bytes":64"#, r#""Bytes":6.5"#, "has no whole number `Bytes`"),
            (r#""ts":5"#, r#""ts":"5""#, r#"`ts` of an event `[memory]` is "5""#),
            (r#""Ev Idx":1"#, r#""Ev Idx":null"#, "has no `Ev Idx`"),
            (r#""args":"#, r#""args":7,"other":"#, "has no `Ev Idx`"),
        ] {
            let text = memory("1", 1, 1, 64).replacen(from, to, 1);
            let text = format!(r#"{{"traceEvents":[{text}]}}"#);
            let error = read("t.json", text).expect_err("refused");
            assert!(error.to_string().contains(reason), "{error}");
        }
    }

    #[test]
    fn a_trace_is_known_by_its_head_and_events_alone_are_one() {
        let event = memory("1", 1, 1, 64);
        let expected = format!("{:?}", profile(std::slice::from_ref(&event)).parts);
        let long = "x".repeat(100_000);
        for text in [
            format!("[{event}]"),
            format!(" [ \n {event}]"),
            format!(r#"{{"schemaVersion":1,"pad":"{long}","traceEvents":[{event}]}}"#),
            format!(
                r#"{{"a":{{"b":"\"}}"}},"displayTimeUnit":"ms","pad":"{long}","traceEvents":[{event}]}}"#
            ),
        ] {
            assert_eq!(format!("{:?}", imported(&text).parts), expected);
        }
        for other in [
            &b"[1,{\"ph\":1}]"[..],
            b"[{\"args\":{\"ph\":1}}]",
            b"[\"ph\"]",
            b"[",
            b"{\"a\":{\"schemaVersion\":1}}",
            b"{\"a\":\"schemaVersion\"}",
            b"{}\n{\"schemaVersion\":1}",
            b"{\"sche",
        ] {
            assert!(!looks_like(other), "{}", String::from_utf8_lossy(other));
        }
    }
}
