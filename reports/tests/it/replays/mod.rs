//! The pages of replays: present if there are rows for them, and equal whenever they are made again.

mod memory;
mod rows;
mod times;

use planlab_dsa::performance::{CallTime, Performance, Sample, Work};
use planlab_reports::{PoolTotal, Report, ReportOptions};
use planlab_results::Provenance;
use planlab_results::replay::{ReplayRow, append_rows};

use crate::files::Files;
use crate::fixtures;

const ALEXNET: &str = "chainer/alexnet/train/b32";
const RESNET: &str = "torch/resnet50/train/b64";
pub(crate) const PAGES: [&str; 6] =
    ["memory.html", "time.html", "requests.html", "threads.html", "iterations.html", "pytorch.html"];

pub(crate) fn row(workload: &str, contender: &str, reserved: &[u64]) -> ReplayRow {
    let sample = |&reserved: &u64| Sample {
        propagations: 1,
        wall_ns: 1000 + reserved % 7,
        reserved: Some(reserved),
        reserved_peak: Some(reserved),
        ..Sample::default()
    };
    fixtures::replay(&format!("{workload} {contender}"), 0).with(|row| {
        row.workload = workload.into();
        row.sequence = Vec::new();
        row.until = None;
        row.instance = workload.to_owned();
        row.requests = 80;
        row.contender = contender.to_owned();
        row.work = Work::None;
        row.performance = Performance {
            is_steady: true,
            samples: reserved.iter().map(sample).collect(),
            reserved_peak: reserved.iter().copied().max().unwrap_or(0),
            device_allocations: 3,
            search_steps: 1200,
            ..Performance::default()
        };
        row.requested_peak = reserved.iter().copied().max().unwrap_or(0).min(355_707_904);
        row.retained = None;
        row.provenance = Provenance::default();
    })
}

/// The row with other figures.
fn with(row: ReplayRow, change: impl FnOnce(&mut Performance)) -> ReplayRow {
    row.with(|row| change(&mut row.performance))
}

/// The rows of AlexNet from the simulator.
fn memory() -> Vec<ReplayRow> {
    let process = row("chainer/alexnet/process/b32", "cupy2rc1-pool", &[1_207_824_896])
        .with(|row| row.requested_peak = 1_104_112_640);
    vec![
        row(ALEXNET, "network-wise", &[754_562_048; 5]),
        row(ALEXNET, "cupy2rc1-pool", &[459_276_288; 5]),
        row(ALEXNET, "profile-guided", &[459_276_288, 355_707_904, 355_707_904]),
        process,
    ]
}

/// A contender on the host with this many threads: a request and a free take `ns` nanoseconds each.
fn host(contender: &str, threads: u32, ns: u64) -> ReplayRow {
    let call = CallTime { median_ps: ns * 1000, p99_ps: ns * 3000, batches: 100 };
    let plain = row(ALEXNET, contender, &[1 << 20; 2]);
    let cpu_ns = Some(2 * ns * plain.requests * u64::from(threads));
    plain.with(|row| {
        let of = &mut row.performance;
        of.samples.iter_mut().for_each(|sample| sample.cpu_ns = cpu_ns);
        (of.warm_up, of.alloc, of.free) = (50, Some(call), Some(call));
        of.lock_wait_ns = Some(u64::from(threads - 1) * 52_000);
        (row.cell, row.device) = (format!("{contender} {threads}"), "host".to_owned());
        (row.work, row.threads) = (Work::Pages, threads);
    })
}

fn stream(contender: &str, reserved: &[u64], plans: Option<u64>) -> ReplayRow {
    let mut row = row("chainer/seq2seq/train/b64", contender, reserved).with(|row| {
        row.sequence = ["x/iteration0", "x/iteration1"].map(str::to_owned).to_vec();
        row.retained = Some(2_774_190_592);
    });
    for (sample, number) in row.performance.samples.iter_mut().zip(0..) {
        (sample.plans, sample.planning_ns) =
            (plans.map(|plans| plans.min(number)), plans.map(|_| 300 * number));
    }
    row
}

fn options() -> ReportOptions {
    let mut options = ReportOptions::default();
    let total = PoolTotal {
        parameters: Some(748_544_000),
        process_pool: Some(1_207_824_896),
        pool_ns: Some(630_000),
        plan_ns: Some(10_000),
        ..PoolTotal::default()
    };
    options.totals.insert(ALEXNET.to_owned(), total);
    let torch = PoolTotal { torch_reserved: Some(2000), ..PoolTotal::default() };
    options.totals.insert(RESNET.to_owned(), torch);
    options
}

fn store(rows: &[ReplayRow]) -> tempfile::TempDir {
    let dir = tempfile::tempdir().expect("a temporary folder");
    append_rows(dir.path().join("store"), rows).expect("appends");
    dir
}

/// A report of only these rows, in which the audit finds nothing.
fn report(rows: &[ReplayRow]) -> Files {
    let dir = store(rows);
    let report = Report::from_store(dir.path().join("store"), options()).expect("reads");
    assert_eq!(report.audit_findings(), []);
    Files::of_report(dir.path(), options())
}

fn report_with(rows: &[ReplayRow], options: ReportOptions) -> Files {
    Files::of_report(store(rows).path(), options)
}
