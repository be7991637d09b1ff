//! Prints rows, as text and as JSON.

use planlab_dsa::Stop;
use planlab_results::replay::ReplayRow;
use planlab_results::schedule::ScheduleRow;
use planlab_results::{Record, Status};
use serde_json::{Value, json};

use crate::shell::JSON_VERSION;
use crate::shell::exit::Exit;
use crate::shell::quantity::{self, as_seconds, format_memory, format_percent};
use planlab_results::table::Table;

/// One cell as `plan --json` and `bench --json` print it.
pub(crate) fn record_object(record: &Record) -> Value {
    json!({
        "version": JSON_VERSION,
        "workload": record.workload,
        "planner": record.planner,
        "seed": record.seed,
        "repetition": record.repetition,
        "buffers": record.buffers,
        "height": record.height,
        "load": record.relaxed_load,
        "load_without_in_place": record.load,
        "bound": record.bound,
        "bound_evidence": record.bound_evidence,
        "bound_scope": record.bound_scope,
        "bound_without_in_place": record.bound_without_in_place,
        "gap": record.gap(),
        "fragmentation": record.fragmentation(),
        "status": bound_note(record),
        "detail": record.status.name(),
        "reason": record.reason,
        "stop": record.stop,
        "seconds": record.median_ns().map(as_seconds),
        "threads": record.threads(),
        "hints": hints_digest(record),
        "capacity": record.target_bytes,
        "work": record.work,
        "work_limit": record.work_limit,
        "reported_seconds": record.reported_ns.map(as_seconds),
        "peak_rss": record.peak_rss_bytes,
        "hand_overs": record.hand_overs,
    })
}

/// A scheduler's cell as `bench --json` prints it.
pub(crate) fn schedule_object(row: &ScheduleRow) -> Value {
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
        "seconds": row.iteration_ns.map(as_seconds),
        "images_per_second": row.images_per_second(),
        "bound_seconds": as_seconds(row.bound_ns),
        "bound_scope": row.bound_scope,
        "bound_evidence": row.bound_evidence,
        "gap": row.gap(),
        "kept": row.kept,
        "swapped": row.swapped,
        "recomputed": row.recomputed,
        "live_peak": row.live_peak,
        "height": row.height,
        "fits": row.fits_memory(),
        "elapsed": row.elapsed_ns.map(as_seconds),
    })
}

/// An online allocator on a workload as `bench --json` prints it.
pub(crate) fn baseline_object(row: &ReplayRow) -> Value {
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
        "seconds": row.performance.samples.last().map(|sample| as_seconds(sample.wall_ns)),
    })
}

/// The digest of the planner's hints.
fn hints_digest(record: &Record) -> Option<String> {
    let parameters: Value = serde_json::from_str(&record.parameters).unwrap_or_default();
    parameters["hints"].as_str().map(str::to_owned)
}

/// Whether a planner that was cut short left a verified plan.
fn left_a_plan(record: &Record) -> bool {
    let broke_off = matches!(
        record.status,
        Status::Timeout | Status::OutOfMemory | Status::Crashed | Status::Killed | Status::Interrupted
    );
    match (record.height, record.target_bytes) {
        (Some(height), Some(capacity)) => broke_off && height <= capacity,
        (height, _) => broke_off && height.is_some(),
    }
}

/// Whether the plan of a cell counts, if there is one.
pub(crate) fn counts_plan(record: &Record) -> bool {
    matches!(record.status, Status::Optimal | Status::Feasible) || left_a_plan(record)
}

/// The exit code of a verb that makes one plan.
pub(crate) fn exit_of_plan(record: &Record, has_plan: bool) -> Exit {
    match record.status {
        Status::Interrupted => Exit::Interrupted,
        status if status.is_lie() => Exit::Invalid,
        _ if has_plan => Exit::Complete,
        _ => Exit::Incomplete,
    }
}

fn bound_note(record: &Record) -> &'static str {
    match record.status {
        Status::Optimal => "optimal",
        Status::Feasible => "feasible",
        _ if left_a_plan(record) => "feasible",
        Status::Infeasible => "infeasible",
        Status::Unknown | Status::Timeout | Status::Interrupted => "unknown",
        _ => "failed",
    }
}

/// All facts of one cell, on an instance with this number of in-place permissions; `sum` is a remark behind figures that
/// add up several arenas.
pub(crate) fn record_card(record: &Record, permissions: usize, sum: &str) -> String {
    let mut lines = vec![
        ("workload", format!("{} ({} buffers)", record.workload, record.buffers)),
        ("planner", record.planner.clone()),
        ("height", record.height.map_or_else(|| "-".to_owned(), |height| format_memory(height) + sum)),
        ("load", load_text(record.relaxed_load, record.load) + sum),
        ("bound", format!("{}, proof: {}", format_memory(record.bound), record.bound_evidence)),
        ("gap", format_percent(record.gap())),
        ("fragmentation", format_percent(record.fragmentation())),
        ("status", status_text(record)),
        ("time", record.median_ns().map_or_else(|| "-".to_owned(), quantity::format_seconds)),
    ];
    if hints_digest(record).is_some() {
        lines.push(("hints", "given".to_owned()));
    }
    if let Some(reported) = record.reported_ns {
        lines.push(("its own clock", quantity::format_seconds(reported)));
    }
    if permissions > 0 {
        lines.push(("in-place", in_place(record, permissions)));
    }
    // A single line is the end of the status already.
    if !status_text(record).ends_with(record.stderr_tail.trim()) {
        lines.push(("stderr", record.stderr_tail.replace('\n', "\n               ")));
    }
    lines.iter().map(|(name, value)| format!("{name:<13}  {value}\n")).collect()
}

/// A load, and what it would be without in-place permissions if these lower it.
pub(crate) fn load_text(load: u64, without_in_place: u64) -> String {
    match load < without_in_place {
        true => format!("{}; {} without in-place", format_memory(load), format_memory(without_in_place)),
        false => format_memory(load),
    }
}

/// How many in-place permissions there are, and how many the plan uses.
fn in_place(record: &Record, permissions: usize) -> String {
    let used = match (record.height, record.bound_without_in_place) {
        (_, Some(_)) => "this planner uses none".to_owned(),
        (Some(_), None) => format!("used {}", record.hand_overs),
        (None, None) => "no plan".to_owned(),
    };
    format!("{}, {used} (off with --in-place no)", self::permission_words(permissions))
}

/// This number of permissions, in words.
pub(crate) fn permission_words(count: usize) -> String {
    format!("{count} {}", if count == 1 { "permission" } else { "permissions" })
}

/// Why a run with a gap had nothing left to try, if it is known.
fn why_finished(record: &Record) -> &'static str {
    let is_lowest = record.height.is_some() && record.height == record.bound_without_in_place;
    match record.stop {
        Some(Stop::Finished) if is_lowest => ", no plan without hand-overs is lower",
        _ => "",
    }
}

fn status_text(record: &Record) -> String {
    let mut text = record.status.name().to_owned();
    // An infeasible cell stops as such.
    if let Some(stop) = record.stop.as_ref().filter(|stop| stop.to_string() != text) {
        text += &format!(" ({stop}{})", why_finished(record));
    }
    if !record.reason.is_empty() {
        text += &format!(": {}", record.reason);
    }
    text
}

/// Measures all cells of one instance against the best bound on any plan that one of them proved.
pub(crate) fn share_bound(records: &mut [Record]) {
    let lowest = records.iter().filter_map(|record| record.height).min().unwrap_or(u64::MAX);
    let stands = |record: &&Record| record.status != Status::BoundRefuted && record.bound <= lowest;
    let best = records.iter().filter(stands).max_by_key(|record| record.bound);
    let Some((bound, evidence)) = best.map(|best| (best.bound, best.bound_evidence)) else { return };
    for record in records.iter_mut().filter(|record| record.bound < bound) {
        (record.bound, record.bound_evidence) = (bound, evidence);
        if record.status == Status::Feasible && record.height == Some(bound) {
            record.status = Status::Optimal;
        }
    }
}

/// What the column `hand-overs` shows: how many the plan uses, or that the planner uses none.
fn hand_overs(record: &Record) -> String {
    match record.bound_without_in_place {
        Some(_) => "never".to_owned(),
        None => record.height.map_or_else(String::new, |_| record.hand_overs.to_string()),
    }
}

/// A table of cells of one trace, lowest first. If a planner leaves in-place permissions unused, or a plan uses some, a
/// column shows the hand-overs.
pub(crate) fn comparison_table(records: &[Record]) -> Table {
    let mut sorted: Vec<&Record> = records.iter().collect();
    sorted.sort_by_key(|record| {
        (record.height.unwrap_or(u64::MAX), record.median_ns(), record.planner.clone())
    });
    let is_in_place = |record: &Record| record.hand_overs > 0 || record.bound_without_in_place.is_some();
    let permits = records.iter().any(is_in_place);
    let mut columns = vec!["planner", "height", "gap", "fragmentation"];
    columns.extend(permits.then_some("hand-overs"));
    columns.extend(["time", "status"]);
    let mut table = Table::new(&columns);
    for record in sorted {
        let mut cells = vec![
            record.planner.clone(),
            record.height.map_or_else(String::new, format_memory),
            format_percent(record.gap()),
            format_percent(record.fragmentation()),
        ];
        cells.extend(permits.then(|| hand_overs(record)));
        cells.push(record.median_ns().map_or_else(|| "-".to_owned(), quantity::format_seconds));
        cells.push(status_text(record));
        table.push_texts(cells);
    }
    table
}
