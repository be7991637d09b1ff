//! Rows of all kinds look in files as they always did.

use std::fmt;
use std::fs;

use planlab_dsa::performance::Missed;
use planlab_results::framework::{FrameworkRow, read_frameworks};
use planlab_results::read_records;
use planlab_results::replay::read_rows;
use planlab_results::schedule::read_schedules;
use serde::de::{IgnoredAny, MapAccess, Visitor};
use serde::{Deserializer as _, Serialize};
use serde_json::{Map, Value};

use crate::common::{fixtures, folder};

/// Collects the keys of an object in their order.
struct KeyVisitor;

impl<'de> Visitor<'de> for KeyVisitor {
    type Value = Vec<String>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Vec<String>, A::Error> {
        let mut keys = Vec::new();
        while let Some((key, IgnoredAny)) = map.next_entry()? {
            keys.push(key);
        }
        Ok(keys)
    }
}

#[track_caller]
fn assert_keys(row: &impl Serialize, keys: &str) {
    let text = serde_json::to_string(row).expect("plain data");
    let found = serde_json::Deserializer::from_str(&text).deserialize_map(KeyVisitor);
    assert_eq!(found.expect("an object").join(" "), keys);
}

#[test]
fn rows_have_the_keys_that_they_always_had() {
    assert_keys(
        &fixtures::record("a", 0),
        "schema cell repetition lane suite workload instance buffers planner planner_version parameters seed \
        wall_limit_ns memory_limit_bytes work_limit target_bytes mechanism status stop reason exit_code signal \
        stderr_tail height load relaxed_load bound bound_evidence bound_scope hand_overs samples_ns reported_ns \
        orders_run orders_failed order_bound bound_without_in_place cpu_ns work peak_rss_bytes trajectory plan \
        started_ns provenance",
    );
    // These two are left out if they are unknown.
    let replay = fixtures::replay("a", 0)
        .with(|row| (row.l2_bytes, row.performance.missed) = (Some(1), Some(Missed::default())));
    assert_keys(
        &replay,
        "schema cell repetition suite workload sequence until instance requests requested_peak retained contender \
        planner plan device device_name l2_bytes work threads capacity status reason warm_up is_steady samples alloc \
        free reserved_peak used_peak physical_peak device_allocations search_steps lock_wait_ns refusals missed \
        touched_bytes started_ns provenance",
    );
    assert_keys(
        &fixtures::schedule("a", "joint"),
        "schema cell repetition suite workload problem batch functions maps machine rates_digest times copy_out \
        copy_in capacity base in_core_bytes least_memory least_memory_evidence compute_ns scheduler \
        scheduler_version seed wall_limit_ns memory_limit_bytes work_limit threads mechanism status stop reason \
        exit_code signal stderr_tail iteration_ns bound_ns bound_evidence bound_scope kept swapped recomputed \
        copied_out recompute_ns live_peak best_fit_height height height_bound height_evidence planner \
        planner_wall_ns planner_status planner_reason disturbed elapsed_ns cpu_ns peak_rss_bytes work trajectory \
        instance plan schedule started_ns provenance",
    );
    let framework = fixtures::framework("resnet18", "glibc", [4; 3], 1, "x");
    let framework: FrameworkRow = serde_json::from_str(&framework).expect("a row");
    assert_keys(
        &framework,
        "schema cell repetition framework net mode batch threads contender settings status reason warm_up wall_ns \
        cpu_ns faults first_wall_ns first_cpu_ns first_faults resident_before resident_peak steady_peak digest \
        requests planned plans planning_ns plan_height plan_load started_ns provenance",
    );
}

/// Asserts that the only row has all values of the line that it was read from.
#[track_caller]
fn assert_keeps_values(line: &str, rows: &[impl Serialize]) {
    assert_eq!(rows.len(), 1);
    let row = serde_json::to_value(&rows[0]).expect("plain data");
    let old = &line[line.find('{').expect("an object")..];
    let old: Map<String, Value> = serde_json::from_str(old).expect("an object");
    for (key, value) in old {
        assert_eq!(row[&key], value, "{key}");
    }
}

/// The lines come from a program in which each kind of rows was a type of its own.
#[test]
fn old_lines_are_read_with_all_their_values() {
    let folder = folder();
    let dir = folder.path();
    let lines = [
        ("journal.jsonl", include_str!("old-lines/journal.jsonl")),
        ("replays.jsonl", include_str!("old-lines/replays.jsonl")),
        ("schedules.jsonl", include_str!("old-lines/schedules.jsonl")),
        ("frameworks.jsonl", include_str!("old-lines/frameworks.jsonl")),
    ];
    for (name, line) in lines {
        fs::write(dir.join(name), line).expect("written");
    }
    assert_keeps_values(lines[0].1, &read_records(dir).expect("rows"));
    assert_keeps_values(lines[1].1, &read_rows(dir).expect("rows"));
    assert_keeps_values(lines[2].1, &read_schedules(dir).expect("rows"));
    assert_keeps_values(lines[3].1, &read_frameworks(dir).expect("rows"));
}
