//! One row of each kind, from which tests derive others; those of reports share them.

use planlab_dsa::performance::{CallTime, End, Performance, Sample, Work};
use planlab_dsa::{Evidence, Scope, Stop};
use planlab_results::replay::{REPLAY_SCHEMA, ReplayRow, ReplayRun};
use planlab_results::schedule::{
    Disturbance, Improvement, SCHEDULE_SCHEMA, ScheduleRow, SchedulerRun, TimelineSpan,
};
use planlab_results::{Lane, PlannerRun, Point, Provenance, Record, Row, SCHEMA, Status};

/// A row with a value in every column, difficult ones included.
pub(crate) fn record(cell: &str, repetition: u32) -> Record {
    Row {
        schema: SCHEMA,
        cell: cell.to_owned(),
        repetition,
        run: PlannerRun {
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
        },
        started_ns: 1,
        provenance: Provenance { host: "h".to_owned(), cores: 2, ..Provenance::default() },
    }
}

/// A row with a value in every column, difficult ones included.
pub(crate) fn replay(cell: &str, repetition: u32) -> ReplayRow {
    let sample = Sample {
        propagations: 1,
        wall_ns: u64::MAX,
        reserved: Some(512),
        reserved_peak: Some(1024),
        ..Sample::default()
    };
    Row {
        schema: REPLAY_SCHEMA,
        cell: cell.to_owned(),
        repetition,
        run: ReplayRun {
            suite: "smoke".to_owned(),
            workload: "chainer/alexnet/infer/b1".into(),
            sequence: vec!["a".to_owned(), "b".to_owned()],
            until: Some(9),
            instance: "ab".repeat(32),
            requests: 46,
            contender: "cupy2rc1-pool".to_owned(),
            planner: None,
            plan: Some("cd".repeat(32)),
            device: "simulated".to_owned(),
            device_name: String::new(),
            work: Work::Pattern,
            threads: 1,
            capacity: None,
            performance: Performance {
                status: End::Complete,
                reason: "a \"quote\", a\nline and a \u{1f600}".to_owned(),
                warm_up: 4,
                is_steady: true,
                samples: vec![sample; 2],
                alloc: Some(CallTime { median_ps: 1_500, p99_ps: 9_000, batches: 200 }),
                reserved_peak: 512,
                used_peak: Some(512),
                device_allocations: 3,
                search_steps: 12,
                ..Performance::default()
            },
            requested_peak: 100,
            retained: Some(7),
            touched_bytes: None,
            l2_bytes: None,
        },
        started_ns: 1,
        provenance: Provenance { host: "h".to_owned(), cores: 2, ..Provenance::default() },
    }
}

/// A row with a value in every column, difficult ones included.
#[expect(clippy::too_many_lines, reason = "one row, all fields")]
pub(crate) fn schedule(cell: &str, scheduler: &str) -> ScheduleRow {
    Row {
        schema: SCHEDULE_SCHEMA,
        cell: cell.to_owned(),
        repetition: 0,
        run: SchedulerRun {
            suite: "offload/smoke".to_owned(),
            workload: "model/resnet50/train/b512".into(),
            problem: "ab".repeat(32),
            batch: 512,
            functions: 175,
            maps: 105,
            machine: "x86-pcie3".to_owned(),
            rates_digest: Some("cd".repeat(32)),
            times: Some("roofline".to_owned()),
            copy_out: 12e9,
            copy_in: 12.5e9,
            capacity: 14_950_000_000,
            base: 300_000_000,
            in_core_bytes: Some(40_300_000_000),
            least_memory: Some(900_000_000),
            least_memory_evidence: Some("compute".to_owned()),
            compute_ns: 1_600_000_000,
            scheduler: scheduler.to_owned(),
            scheduler_version: "0123".to_owned(),
            seed: 7,
            wall_limit_ns: Some(60_000_000_000),
            memory_limit_bytes: None,
            work_limit: Some(10_000),
            threads: Some(2),
            mechanism: "rlimit".to_owned(),
            status: Status::Feasible,
            stop: Some(Stop::Finished),
            reason: "a \"quote\", a\nline".to_owned(),
            exit_code: Some(0),
            signal: None,
            stderr_tail: String::new(),
            iteration_ns: Some(2_000_000_000),
            bound_ns: 1_700_000_000,
            bound_evidence: "lp".to_owned(),
            bound_scope: "classes".to_owned(),
            kept: Some(66),
            swapped: Some(12),
            recomputed: Some(27),
            copied_out: Some(1 << 33),
            recompute_ns: Some(1000),
            live_peak: Some(14_940_000_000),
            best_fit_height: Some(15_900_000_000),
            height: Some(14_945_000_000),
            height_bound: Some(14_940_000_000),
            height_evidence: Evidence::Load,
            planner: "portfolio".to_owned(),
            planner_wall_ns: None,
            planner_status: "feasible".to_owned(),
            planner_reason: String::new(),
            disturbed: vec![Disturbance {
                percent: 5,
                draws: 50,
                median_ns: 2_010_000_000,
                worst_ns: 2_100_000_000,
                compute_ns: 1_600_000_001,
            }],
            elapsed_ns: Some(500_000_000),
            cpu_ns: None,
            peak_rss_bytes: Some(1 << 24),
            work: 4321,
            trajectory: vec![Improvement { elapsed_ns: 1, work: 1, iteration_ns: 2_000_000_000 }],
            instance: None,
            plan: None,
            schedule: None,
        },
        started_ns: 1,
        provenance: Provenance { host: "h".to_owned(), cores: 2, ..Provenance::default() },
    }
}

/// An event of a timeline.
pub(crate) fn span(engine: &str, task: &str, start_ns: u64, end_ns: u64) -> TimelineSpan {
    let (engine, task, name) = (engine.to_owned(), task.to_owned(), "conv</title><img>".to_owned());
    TimelineSpan { engine, task, name, bytes: 2048, start_ns, end_ns }
}

/// A line of a training step under a contender with its settings: its CPU time in milliseconds; its capacity, and its counted
/// and its measured peak, in MiB.
pub(crate) fn budget_step(
    net: &str,
    (contender, settings): (&str, &str),
    cpu_ms: u64,
    (capacity, counted, measured): (Option<u64>, u64, u64),
    digest: &str,
) -> String {
    let [counted, measured] = [counted, measured].map(|mib| mib << 20);
    let capacity = capacity.map_or("null".to_owned(), |mib| (mib << 20).to_string());
    let budget = format!(
        r#"{{"capacity":{capacity},"counted_peak":{counted},"measured_peak":{measured},"least_peak":null}}"#
    );
    framework(net, contender, [cpu_ms; 3], 1, digest)
        .replace("\"schema\":1", "\"schema\":2")
        .replace(&format!("\"{net} {contender}\""), &format!("\"{net} {contender} {settings}\""))
        .replace("\"settings\":\"\"", &format!("\"settings\":\"{settings}\""))
        .replace("\"mode\":\"infer\"", "\"mode\":\"train\"")
        .replace(",\"provenance\"", &format!(",\"budget\":{budget},\"provenance\""))
}

/// A line of a framework's row in the format of the script: CPU times in milliseconds, and MiB in the steady state.
pub(crate) fn framework(
    net: &str,
    contender: &str,
    cpu_ms: [u64; 3],
    steady_mib: u64,
    digest: &str,
) -> String {
    let cpu = cpu_ms.map(|ms| (ms * 1_000_000).to_string()).join(",");
    let [requests, planned, plans, planning_ns, height, load] = match contender {
        "planlab" => ["100", "90", "1", "2000000", "1048576", "1048576"],
        _ => ["null"; 6],
    };
    let steady = steady_mib << 20;
    format!(
        r#"{{"schema":1,"cell":"{net} {contender}","repetition":0,"framework":"torch-1.13.0a0","net":"{net}","mode":"infer",
        "batch":16,"threads":1,"contender":"{contender}","settings":"","status":"complete","reason":"","warm_up":6,
        "started_ns":1,"first_wall_ns":900000000,"first_cpu_ns":8,"first_faults":7,"wall_ns":[{cpu}],"cpu_ns":[{cpu}],
        "faults":[1,3,2],"resident_before":100,"resident_peak":{steady},"steady_peak":{steady},"digest":"{digest}",
        "requests":{requests},"planned":{planned},"plans":{plans},"planning_ns":{planning_ns},
        "plan_height":{height},"plan_load":{load},"provenance":{{"host":"h",
        "cpu":"c","cores":2,"kernel":"k","governor":"g","turbo":"t","load_average_milli":1,"concurrency":1,
        "git_commit":"a","git_dirty":false,"rustc":"r","flags":"f"}}}}"#
    )
    .replace('\n', "")
        + "\n"
}
