//! Traces of PyTorch's profiler: what `torch.profiler.profile(profile_memory=True)` exports for Chrome.
//!
//! JSON with the events of a run. Those named `[memory]` say that bytes came to an address or went; their order is that
//! of `Ev Idx`, since those of several threads may be anywhere in the file. The operation that made a buffer is the
//! innermost one of the same thread that was under way. A part is a device: `cpu`, `cuda:0`. Step `k` of the trace is
//! the `k`-th memory event of the device, from 1; step 0 is before it.

use std::fmt;

use planlab_dsa::Bytes;
use rustc_hash::FxHashMap;
use serde::Deserialize;
use serde::de::{DeserializeSeed, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::super::super::error::of_json;
use super::super::super::{FormatError, ReadOptions};
use super::super::{Dropped, Framework, Imported, Input, Part, Reader};
use super::blocks::BLOCK;
use super::frames::clip;
use super::lives::Lives;
use super::{Life, sort, trace};

/// PyTorch aligns memory of the host to this many bytes.
const CPU_ALIGNMENT: u64 = 64;

pub(in super::super) const READER: Reader = Reader {
    key: "torch-profiler",
    title: "a Chrome trace of PyTorch's profiler with memory events (torch.profiler, profile_memory=True)",
    endings: &[],
    has_lines: true,
    looks_like,
    read,
};

fn looks_like(start: &[u8]) -> bool {
    const KEY: &[u8] = b"\"traceEvents\"";
    start.trim_ascii_start().starts_with(b"{") && start.windows(KEY.len()).any(|window| window == KEY)
}

fn read(input: Input<'_>, options: &ReadOptions) -> Result<Imported, FormatError> {
    let file = input.file().to_owned();
    let mut events = Events::default();
    let mut json = serde_json::Deserializer::from_reader(input.stream());
    let read = Top(&mut events).deserialize(&mut json).and_then(|()| json.end());
    read.map_err(|error| of_json(&file, &error))?;
    if events.memory.is_empty() {
        let reason = "there is no event `[memory]` in it: profile with profile_memory=True";
        return Err(FormatError::new(file, 1, reason));
    }
    let mut imported = Imported::default();
    for memory in events.by_device() {
        let (part, dropped) = device(&file, &memory, &events.operations, options)?;
        imported.parts.extend(part);
        imported.dropped.extend(dropped);
    }
    if imported.parts.is_empty() {
        return Err(FormatError::new(file, 1, "there is no buffer in it"));
    }
    Ok(imported)
}

/// An event of the file: the fields that matter.
#[derive(Deserialize)]
struct RawEvent {
    #[serde(default)]
    ph: String,
    #[serde(default)]
    name: String,
    #[serde(default)]
    pid: serde_json::Value,
    #[serde(default)]
    tid: serde_json::Value,
    #[serde(default)]
    ts: f64,
    #[serde(default)]
    dur: f64,
    #[serde(default)]
    args: Option<RawArguments>,
}

impl RawEvent {
    /// Its process and its thread: threads of several processes may have one number.
    fn thread(&self) -> Thread {
        (self.pid.to_string(), self.tid.to_string())
    }
}

type Thread = (String, String);

#[derive(Default, Deserialize)]
#[serde(default)]
struct RawArguments {
    #[serde(rename = "Addr")]
    address: Option<serde_json::Value>,
    #[serde(rename = "Bytes")]
    bytes: Option<serde_json::Value>,
    #[serde(rename = "Total Allocated")]
    allocated: Option<serde_json::Value>,
    #[serde(rename = "Total Reserved")]
    reserved: Option<serde_json::Value>,
    #[serde(rename = "Device Type")]
    device_type: Option<serde_json::Value>,
    #[serde(rename = "Device Id")]
    device: Option<serde_json::Value>,
    #[serde(rename = "Ev Idx")]
    index: Option<serde_json::Value>,
}

/// Bytes that come to an address or go.
#[derive(Clone, Debug)]
struct Memory {
    index: u64,
    address: u64,
    bytes: i64,
    allocated: Option<u64>,
    reserved: Option<u64>,
    device: (i64, i64),
    thread: Thread,
    time: f64,
}

impl Memory {
    fn of(event: &RawEvent, arguments: RawArguments) -> Result<Self, String> {
        let whole = |value: Option<serde_json::Value>, name: &str| match value {
            None => Err(format!("an event `[memory]` has no `{name}`")),
            Some(value) => {
                value.as_u64().ok_or_else(|| format!("`{name}` of an event `[memory]` is {value}"))
            }
        };
        let signed = |value: Option<serde_json::Value>| value.as_ref().and_then(serde_json::Value::as_i64);
        let count = |value: Option<serde_json::Value>| value.as_ref().and_then(serde_json::Value::as_u64);
        let bytes = arguments.bytes.as_ref().and_then(serde_json::Value::as_i64);
        Ok(Self {
            index: whole(arguments.index, "Ev Idx")?,
            address: whole(arguments.address, "Addr")?,
            bytes: bytes.ok_or("an event `[memory]` has no whole number `Bytes`")?,
            allocated: count(arguments.allocated),
            reserved: count(arguments.reserved),
            device: (signed(arguments.device_type).unwrap_or(0), signed(arguments.device).unwrap_or(-1)),
            thread: event.thread(),
            time: event.ts,
        })
    }

    fn part(&self) -> String {
        match self.device {
            (0, _) => "cpu".to_owned(),
            (1, device) => format!("cuda:{device}"),
            (kind, device) => format!("device-{kind}:{device}"),
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
    fn take(&mut self, mut event: RawEvent) -> Result<(), String> {
        let arguments = event.args.take();
        match event.ph.as_str() {
            "i" | "I" if event.name == "[memory]" => {
                self.memory.push(Memory::of(&event, arguments.unwrap_or_default())?);
            }
            "X" => {
                let (from, to) = (event.ts, event.ts + event.dur);
                let operation = Operation { from, to, name: clip(&event.name) };
                self.operations.entry(event.thread()).or_default().push(operation);
            }
            _ => {}
        }
        Ok(())
    }

    /// The memory events of each device in their order; the operations by start, the outer first.
    fn by_device(&mut self) -> Vec<Vec<Memory>> {
        for operations in self.operations.values_mut() {
            operations.sort_by(|a, b| a.from.total_cmp(&b.from).then(b.to.total_cmp(&a.to)));
        }
        let mut memory = std::mem::take(&mut self.memory);
        memory.sort_by_key(|event| (event.device, event.index));
        memory.chunk_by(|a, b| a.device == b.device).map(<[_]>::to_vec).collect()
    }
}

fn device(
    file: &str,
    memory: &[Memory],
    operations: &FxHashMap<Thread, Vec<Operation>>,
    options: &ReadOptions,
) -> Result<(Option<Part>, Vec<Dropped>), FormatError> {
    let made_by = innermost(memory, operations);
    let mut names: Vec<String> = Vec::new();
    let mut numbers: FxHashMap<&str, u32> = FxHashMap::default();
    let mut lives = Lives::default();
    for ((step, event), op) in (1_u64..).zip(memory).zip(&made_by) {
        let (address, size) = (event.address, event.bytes.unsigned_abs());
        if event.bytes < 0 {
            lives.request_free(address);
            lives.free(Life { end: step, address, size, ..Life::default() });
        } else {
            let stack = op.map(|op| {
                *numbers.entry(op).or_insert_with(|| {
                    names.push(op.to_owned());
                    u32::try_from(names.len() - 1).unwrap_or(u32::MAX)
                })
            });
            lives.alloc(Life { start: step, address, size, stack, ..Life::default() });
        }
    }
    let end = memory.len() as u64 + 1;
    let (mut lives, mut dropped) = lives.finish(end, 0, false);
    dropped.extend(never_seen(memory, &lives));
    if lives.is_empty() {
        return Ok((None, dropped));
    }
    sort(&mut lives);
    let name = memory[0].part();
    let most = |of: fn(&Memory) -> Option<u64>| memory.iter().filter_map(of).max();
    let reserved = most(|event| event.reserved).filter(|&bytes| bytes > 0);
    let mut metadata = vec![
        ("framework", "pytorch".to_owned()),
        ("recorder", "torch.profiler".to_owned()),
        ("device", name.clone()),
    ];
    metadata.extend(reserved.map(|bytes| ("torch-reserved-peak-bytes", bytes.to_string())));
    let widest = if name == "cpu" { CPU_ALIGNMENT } else { BLOCK };
    let placement = lives.iter().map(|life| Some(life.address)).collect();
    let trace = trace(file, options, &metadata, (lives, widest), |op| names.get(op as usize).cloned())?;
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
    Some(
        Dropped::new(1, "group of buffers from before the recording that it never frees", why)
            .with_bytes(bytes),
    )
}

/// The innermost operation that was under way at each memory event, in the thread of the event.
fn innermost<'o>(
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
                close(&mut open, operation.from);
                open.push(operation);
            }
            close(&mut open, time);
            found[event] = open.last().map(|operation| operation.name.as_str());
        }
    }
    found
}

/// Takes those off the end that were over before a time.
fn close(open: &mut Vec<&Operation>, time: f64) {
    while open.last().is_some_and(|operation| operation.to < time) {
        open.pop();
    }
}

/// The object of the file: takes the events in one by one, and passes by the rest.
struct Top<'e>(&'e mut Events);

impl<'de> DeserializeSeed<'de> for Top<'_> {
    type Value = ();

    fn deserialize<D: serde::Deserializer<'de>>(self, json: D) -> Result<(), D::Error> {
        json.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Top<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object with the array `traceEvents`")
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
        while let Some(event) = array.next_element::<RawEvent>()? {
            self.0.take(event).map_err(serde::de::Error::custom)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::import;
    use super::*;

    #[test]
    fn threads_of_two_processes_are_two() {
        let memory = |pid: u32, index: u32| {
            format!(
                r#"{{"ph":"i","name":"[memory]","pid":{pid},"tid":7,"ts":5,"args":{{"Addr":{index},"Bytes":64,"Ev Idx":{index}}}}}"#
            )
        };
        let operation = |pid: u32, name: &str| {
            format!(r#"{{"ph":"X","name":"{name}","pid":{pid},"tid":7,"ts":{pid},"dur":9}}"#)
        };
        let events = [memory(1, 1), memory(2, 2), operation(1, "conv"), operation(2, "relu")].join(",");
        let text = format!(r#"{{"traceEvents":[{events}]}}"#);
        let read = import("t.json", text.as_bytes(), None, &ReadOptions::default());
        let imported = read.expect("valid").expect("recognised");
        let labels = &imported.parts[0].trace.labels.buffers;
        let ops: Vec<_> = labels.iter().map(|label| label.op.as_deref()).collect();
        assert_eq!(ops, [Some("conv"), Some("relu")]);
    }
}
