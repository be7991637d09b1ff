//! The document that the trace viewer reads, and the events that all documents have.

use planlab_dsa::printable_line;
use serde_json::{Value, json};

/// The first process of a document. Perfetto takes process 0 and thread 0 for the idle task, so numbers begin at 1.
pub(super) const ALL: usize = 1;
/// The first thread of a process.
pub(super) const THREAD: usize = 1;

/// The document as it is written, event by event: all of them as values would take thirty times the bytes of their text.
pub(super) struct Events(Vec<u8>);

impl Events {
    const JSON: &str = "names and numbers are JSON";

    /// A document that says of itself what `about` says.
    pub(super) fn new(about: &Value) -> Self {
        let head = json!({ "displayTimeUnit": "ns", "otherData": about });
        let mut bytes = serde_json::to_vec(&head).expect(Self::JSON);
        // The events are the last field of the object.
        bytes.pop();
        bytes.extend(b",\"traceEvents\":[");
        Self(bytes)
    }

    pub(super) fn push_event(&mut self, event: &Value) {
        if self.0.last() != Some(&b'[') {
            self.0.push(b',');
        }
        serde_json::to_writer(&mut self.0, event).expect(Self::JSON);
    }

    pub(super) fn finish_document(mut self) -> Vec<u8> {
        self.0.extend(b"]}\n");
        self.0
    }
}

pub(super) fn process_event(pid: usize, name: &str) -> Value {
    let args = json!({ "name": printable_line(name) });
    json!({ "ph": "M", "name": "process_name", "pid": pid, "tid": THREAD, "args": args })
}

/// Metadata of a thread: its name, or its rank among the threads of its process.
pub(super) fn thread_event(pid: usize, tid: usize, name: &str, args: &Value) -> Value {
    json!({ "ph": "M", "name": name, "pid": pid, "tid": tid, "args": args })
}

/// A counter's value from `at` microseconds on.
pub(super) fn counter_event(pid: usize, name: &str, at: f64, bytes: u64) -> Value {
    json!({ "ph": "C", "name": name, "pid": pid, "tid": THREAD, "ts": at, "args": { "bytes": bytes } })
}

/// The events of a document, for tests.
#[cfg(test)]
pub(super) fn parse_events(bytes: &[u8]) -> Vec<Value> {
    let mut document: Value = serde_json::from_slice(bytes).expect("JSON");
    serde_json::from_value(document["traceEvents"].take()).expect("an array")
}

/// The microseconds and bytes of a counter, for tests.
#[cfg(test)]
pub(super) fn counter_points(events: &[Value], name: &str) -> Vec<(f64, u64)> {
    let of_name = events.iter().filter(|event| event["ph"] == "C" && event["name"] == name);
    let point = |event: &Value| {
        (event["ts"].as_f64().expect("a time"), event["args"]["bytes"].as_u64().expect("bytes"))
    };
    of_name.map(point).collect()
}
