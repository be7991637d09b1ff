//! Writes the statistics under `PLANLAB_REPORT=FILE`: appends a line of JSON for each process that made a large
//! request.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicPtr, Ordering};

use serde_json::{Map, Value, json};

use super::settings::settings;
use super::{process, thread};
use crate::tally::{Count, PlanTally, Tally};

/// A plan's tally, and the list of those before it.
struct Node {
    tally: Arc<PlanTally>,
    next: Option<&'static Node>,
}

static PLANS: AtomicPtr<Node> = AtomicPtr::new(ptr::null_mut());

/// Records a plan that is in use from now on. Its tally is kept to the end of the process.
pub(super) fn add_plan(tally: &Arc<PlanTally>) {
    let node = Box::leak(Box::new(Node { tally: Arc::clone(tally), next: None }));
    let mut before = PLANS.load(Ordering::Acquire);
    loop {
        node.next = as_ref(before);
        match PLANS.compare_exchange_weak(before, node, Ordering::Release, Ordering::Acquire) {
            Ok(_) => return,
            Err(now) => before = now,
        }
    }
}

#[allow(unsafe_code, reason = "a list whose nodes live for ever")]
fn as_ref(node: *const Node) -> Option<&'static Node> {
    // SAFETY: null, or a leaked node.
    unsafe { node.as_ref() }
}

fn plans() -> impl Iterator<Item = &'static PlanTally> {
    let first = as_ref(PLANS.load(Ordering::Acquire));
    std::iter::successors(first, |node| node.next).map(|node| &*node.tally)
}

/// Resets the plans' counts in the child of a fork.
pub(super) fn after_fork() {
    plans().for_each(|tally| {
        tally.rounds.set(0);
        tally.departures.set(0);
    });
}

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
    let devices = super::cuda::report();
    #[cfg(not(feature = "cuda"))]
    let devices: Vec<Value> = Vec::new();
    if sums.get("requests").and_then(Value::as_u64).unwrap_or(0) == 0 && devices.is_empty() {
        return None;
    }
    let plans: Vec<Value> = plans().map(plan).collect();
    let usage = process::usage(libc::RUSAGE_SELF);
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
pub(super) fn sums<'t>(tallies: impl Iterator<Item = &'t Tally>) -> Map<String, Value> {
    let mut sums: Map<String, Value> = Map::new();
    for (name, count) in tallies.flat_map(Tally::all) {
        let sum = sums.get(name).and_then(Value::as_u64).unwrap_or(0) + count.get();
        sums.insert(name.to_owned(), sum.into());
    }
    sums
}

pub(super) fn plan(tally: &PlanTally) -> Value {
    named(tally.all())
}

/// Counts by their names.
pub(super) fn named(counts: Vec<(&'static str, &Count)>) -> Value {
    let named = counts.into_iter().map(|(name, count)| (name.to_owned(), Value::from(count.get())));
    named.collect::<Map<_, _>>().into()
}
