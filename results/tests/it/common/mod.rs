//! Makes rows for tests.

use planlab_dsa::{Evidence, Scope, Stop};
use planlab_results::{Lane, Point, Provenance, Record, SCHEMA, Status};

/// A row with a value in every column, difficult ones included.
pub(crate) fn row(cell: &str, repetition: u32) -> Record {
    Record {
        schema: SCHEMA,
        cell: cell.to_owned(),
        repetition,
        lane: Lane::Timing,
        suite: "smoke".to_owned(),
        workload: "synthetic/uniform/n10/s1".into(),
        instance: "ab".repeat(32),
        buffers: 10,
        planner: "best-fit".to_owned(),
        planner_version: "0123".to_owned(),
        parameters: "{}".to_owned(),
        seed: u64::MAX,
        wall_limit_ns: Some(10_000_000_000),
        memory_limit_bytes: None,
        work_limit: None,
        target_bytes: None,
        mechanism: "rlimit".to_owned(),
        status: Status::Feasible,
        stop: Some(Stop::Finished),
        reason: "a \"quote\", a\nline and a \u{1f600}".to_owned(),
        exit_code: Some(0),
        signal: None,
        stderr_tail: String::new(),
        height: Some(u64::MAX - 1),
        load: 100,
        relaxed_load: 100,
        bound: 100,
        bound_evidence: Evidence::Load,
        bound_scope: Scope::NoHandOver,
        hand_overs: 0,
        samples_ns: vec![5, 3, 4],
        cpu_ns: None,
        work: 7,
        peak_rss_bytes: Some(1 << 20),
        reported_ns: None,
        orders_run: None,
        orders_failed: None,
        order_bound: None,
        bound_without_in_place: None,
        trajectory: vec![
            Point { elapsed_ns: 1, height: None, bound: 90 },
            Point { elapsed_ns: 2, height: Some(120), bound: 100 },
        ],
        plan: None,
        started_ns: 1,
        provenance: Provenance { host: "h".to_owned(), cores: 2, ..Provenance::default() },
    }
}
