//! Writes the statistics under `PLANLAB_REPORT=FILE`: appends a line of JSON for each process that made a large
//! request.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;

use serde_json::{Map, Value, json};

use super::settings::settings;
use super::system::usage;
use super::threads::{plans, thread};
use crate::tally::{Count, PlanTally, Tally};

/// Appends the line of this process, if it made a large request.
pub(super) fn append(file: &Path) {
    let Some(object) = object() else { return };
    let mut line = object.to_string();
    line.push('\n');
    let opened = OpenOptions::new().create(true).append(true).open(file);
    // There is nobody to report an error to: stderr is the program's.
    let _ = opened.and_then(|mut file| file.write_all(line.as_bytes()));
}

fn object() -> Option<Value> {
    let settings = settings()?;
    let tallies = thread::tallies();
    let sums = sums(tallies.iter().map(|tally| &**tally));
    #[cfg(feature = "cuda")]
    let devices: Vec<Value> = super::devices::idle_heaps().map(|heap| device(&heap)).collect();
    #[cfg(not(feature = "cuda"))]
    let devices: Vec<Value> = Vec::new();
    if sums.get("requests").and_then(Value::as_u64).unwrap_or(0) == 0 && devices.is_empty() {
        return None;
    }
    let plans: Vec<Value> = plans::all().map(plan).collect();
    let usage = usage(libc::RUSAGE_SELF);
    let program = std::env::args_os().next().unwrap_or_default();
    Some(json!({
        "version": 1,
        "pid": std::process::id(),
        "program": program.to_string_lossy(),
        "min_size": settings.machine.least_size,
        "threads": tallies.len(),
        "counts": sums,
        "plans": plans,
        "devices": devices,
        "minor_faults": usage.map(|usage| usage.ru_minflt),
        "peak_rss": usage.map(|usage| usage.ru_maxrss.cast_unsigned() * 1024),
    }))
}

/// The summed counts of several threads or streams.
fn sums<'t>(tallies: impl Iterator<Item = &'t Tally>) -> Map<String, Value> {
    let mut sums: Map<String, Value> = Map::new();
    for (name, count) in tallies.flat_map(Tally::all) {
        let sum = sums.get(name).and_then(Value::as_u64).unwrap_or(0) + count.get();
        sums.insert(name.to_owned(), sum.into());
    }
    sums
}

fn plan(tally: &PlanTally) -> Value {
    named(tally.all())
}

/// Counts by their names.
fn named(counts: Vec<(&'static str, &Count)>) -> Value {
    let named = counts.into_iter().map(|(name, count)| (name.to_owned(), Value::from(count.get())));
    named.collect::<Map<_, _>>().into()
}

#[cfg(feature = "cuda")]
fn device(heap: &crate::device::Heap) -> Value {
    json!({
        "device": heap.key(),
        "streams": heap.streams().count(),
        "counts": sums(heap.streams().map(|(_, tally)| tally)),
        "memory": named(heap.tally().all()),
        "plans": heap.plans().map(plan).collect::<Vec<Value>>(),
    })
}
