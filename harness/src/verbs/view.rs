//! Prints rows, as text and as JSON.

use planlab_dsa::Scope;
use planlab_results::replay::ReplayRow;
use planlab_results::schedule::ScheduleRow;
use planlab_results::{Record, Status};
use serde_json::{Value, json};

use crate::shell::JSON_VERSION;
use crate::shell::quantity::{self, memory, percent};
use planlab_results::table::Table;

/// One cell as `plan --json` and `bench --json` print it.
#[expect(clippy::cast_precision_loss, reason = "seconds as a number")]
pub(crate) fn object(record: &Record) -> Value {
    json!({
        "version": JSON_VERSION,
        "workload": record.workload,
        "planner": record.planner,
        "seed": record.seed,
        "repetition": record.repetition,
        "buffers": record.buffers,
        "height": record.height,
        "load": record.load,
        "bound": record.bound,
        "bound_evidence": record.bound_evidence,
        "bound_scope": record.bound_scope,
        "gap": record.gap(),
        "fragmentation": record.fragmentation(),
        "status": coarse(record),
        "detail": record.status.name(),
        "reason": record.reason,
        "stop": record.stop,
        "seconds": record.median_ns().map(|ns| ns as f64 / 1e9),
        "threads": record.threads(),
        "hints": hints(record),
        "capacity": record.target_bytes,
        "work": record.work,
        "work_limit": record.work_limit,
        "reported_seconds": record.reported_ns.map(|ns| ns as f64 / 1e9),
        "peak_rss": record.peak_rss_bytes,
        "hand_overs": record.hand_overs,
    })
}

/// A scheduler's cell as `bench --json` prints it.
#[expect(clippy::cast_precision_loss, reason = "seconds as a number")]
pub(crate) fn schedule(row: &ScheduleRow) -> Value {
    json!({
        "version": JSON_VERSION,
        "workload": row.workload,
        "machine": row.machine,
        "copy_out": row.copy_out,
        "copy_in": row.copy_in,
        "capacity": row.capacity,
        "scheduler": row.scheduler,
        "repetition": row.repetition,
        "status": row.status.name(),
        "reason": row.reason,
        "seconds": row.iteration_ns.map(|ns| ns as f64 / 1e9),
        "images_per_second": row.images_per_second(),
        "bound_seconds": row.bound_ns as f64 / 1e9,
        "bound_scope": row.bound_scope,
        "bound_evidence": row.bound_evidence,
        "gap": row.gap(),
        "kept": row.kept,
        "swapped": row.swapped,
        "recomputed": row.recomputed,
        "live_peak": row.live_peak,
        "height": row.height,
        "fits": row.fits(),
        "elapsed": row.elapsed_ns.map(|ns| ns as f64 / 1e9),
    })
}

/// An online allocator on a workload as `bench --json` prints it.
#[expect(clippy::cast_precision_loss, reason = "seconds as a number")]
pub(crate) fn baseline(row: &ReplayRow) -> Value {
    json!({
        "version": JSON_VERSION,
        "workload": row.workload,
        "allocator": row.contender,
        "device": row.device,
        "status": row.performance.status.name(),
        "reason": row.performance.reason,
        "propagations": row.performance.samples.len(),
        "requests": row.requests,
        "reserved_peak": row.performance.reserved_peak,
        "requested_peak": row.requested_peak,
        "device_allocations": row.performance.device_allocations,
        "search_steps": row.performance.search_steps,
        "seconds": row.performance.samples.last().map(|sample| sample.wall_ns as f64 / 1e9),
    })
}

/// The digest of the planner's hints.
fn hints(record: &Record) -> Option<String> {
    let parameters: Value = serde_json::from_str(&record.parameters).unwrap_or_default();
    parameters["hints"].as_str().map(str::to_owned)
}

/// Whether a planner that was cut short left a verified plan.
pub(crate) const fn left_a_plan(record: &Record) -> bool {
    let broke_off = matches!(
        record.status,
        Status::Timeout | Status::OutOfMemory | Status::Crashed | Status::Killed | Status::Interrupted
    );
    match (record.height, record.target_bytes) {
        (Some(height), Some(capacity)) => broke_off && height <= capacity,
        (height, _) => broke_off && height.is_some(),
    }
}

fn coarse(record: &Record) -> &'static str {
    match record.status {
        Status::Optimal => "optimal",
        Status::Feasible => "feasible",
        _ if left_a_plan(record) => "feasible",
        Status::Infeasible => "infeasible",
        Status::Unknown | Status::Timeout | Status::Interrupted => "unknown",
        _ => "failed",
    }
}

/// All facts of one cell; `sum` is a remark behind figures that add up several arenas.
pub(crate) fn card(record: &Record, sum: &str) -> String {
    let mut lines = vec![
        ("workload", format!("{} ({} buffers)", record.workload, record.buffers)),
        ("planner", record.planner.clone()),
        ("height", record.height.map_or_else(|| "-".to_owned(), |height| memory(height) + sum)),
        ("load", memory(record.load) + sum),
        ("bound", format!("{}, proof: {}{}", memory(record.bound), record.bound_evidence, scope(record))),
        ("gap", percent(record.gap())),
        ("fragmentation", percent(record.fragmentation())),
        ("status", status(record)),
        ("time", record.median_ns().map_or_else(|| "-".to_owned(), quantity::seconds)),
    ];
    if hints(record).is_some() {
        lines.push(("hints", "given".to_owned()));
    }
    if let Some(reported) = record.reported_ns {
        lines.push(("its own clock", quantity::seconds(reported)));
    }
    if record.hand_overs > 0 {
        lines.push(("hand-overs", record.hand_overs.to_string()));
    }
    // A single line is the end of the status already.
    if !status(record).ends_with(record.stderr_tail.trim()) {
        lines.push(("stderr", record.stderr_tail.replace('\n', "\n               ")));
    }
    lines.iter().map(|(name, value)| format!("{name:<13}  {value}\n")).collect()
}

/// The scope of the bound in words, if it makes a difference.
fn scope(record: &Record) -> &'static str {
    match record.bound_scope {
        Scope::NoHandOver if record.relaxed_load != record.load => ", of plans without hand-overs",
        _ => "",
    }
}

fn status(record: &Record) -> String {
    let mut text = record.status.name().to_owned();
    // An infeasible cell stops as such.
    if let Some(stop) = record.stop.as_ref().filter(|stop| stop.to_string() != text) {
        text += &format!(" ({stop}{})", scope(record));
    }
    if !record.reason.is_empty() {
        text += &format!(": {}", record.reason);
    }
    text
}

/// A table of cells of one trace, lowest first.
pub(crate) fn comparison(records: &[Record]) -> Table {
    let mut sorted: Vec<&Record> = records.iter().collect();
    sorted.sort_by_key(|record| {
        (record.height.unwrap_or(u64::MAX), record.median_ns(), record.planner.clone())
    });
    let mut table = Table::new(&["planner", "height", "gap", "fragmentation", "time", "status"]);
    for record in sorted {
        table.row([
            record.planner.clone(),
            record.height.map_or_else(String::new, memory),
            percent(record.gap()),
            percent(record.fragmentation()),
            record.median_ns().map_or_else(|| "-".to_owned(), quantity::seconds),
            status(record),
        ]);
    }
    table
}
