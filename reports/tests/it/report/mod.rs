//! A report is one folder that opens from disk, the same if it is made again.

mod folders;
mod pages;
mod rankings;
mod tables;

use std::path::Path;

use planlab_dsa::testing::test_buffer as buffer;
use planlab_dsa::{InPlace, Instance, Label, Labels, Offset, Plan};
use planlab_reports::{PoolTotal, Report, ReportOptions};
use planlab_results::{Point, Provenance, Record, Status, Store};

use crate::files::Files;
use crate::fixtures;

const NASTY: &str = "synthetic/</script><img src=x onerror=alert(1)>/n3";

fn instance() -> (Instance, Labels) {
    let id = planlab_dsa::BufferId::new;
    let instance = Instance::builder()
        .buffers([buffer(64, 0, 2), buffer(32, 1, 4), buffer(64, 3, 6)])
        .in_place([InPlace { input: id(0), output: id(1) }])
        .build()
        .expect("valid");
    let mut labels = Labels::from_numbers(3);
    labels.buffers[0] = Label { category: Some("<b>grad&".to_owned()), ..labels.buffers[0].clone() };
    (instance, labels)
}

struct Row<'a> {
    workload: &'a str,
    planner: &'a str,
    offsets: [u64; 3],
    times: &'a [u64],
}

/// Adds a row with a verified plan that the store keeps.
fn append(store: &mut Store, row: &Row<'_>) {
    let (instance, labels) = instance();
    let digest = store.put_instance(&instance, &labels).expect("kept").to_string();
    let plan = Plan::from_offsets(row.offsets.map(Offset::new));
    let height = instance.verify(plan.clone()).expect("valid").height().get();
    let mut record = failure(row.workload, row.planner, Status::Feasible, "");
    record.status = if height == 96 { Status::Optimal } else { Status::Feasible };
    record.instance = digest;
    record.height = Some(height);
    record.samples_ns = row.times.to_vec();
    record.plan = Some(store.put_plan(&plan).expect("kept").to_string());
    record.trajectory =
        [2 * height, height].map(|height| Point { elapsed_ns: 5, height: Some(height), bound: 96 }).to_vec();
    store.append(&record).expect("appends");
}

fn failure(workload: &str, planner: &str, status: Status, reason: &str) -> Record {
    let (instance, _) = instance();
    fixtures::record(&format!("{workload} {planner}"), 0).with(|row| {
        row.suite = "test".to_owned();
        row.workload = workload.into();
        row.instance = instance.digest().to_string();
        row.buffers = 3;
        row.planner = planner.to_owned();
        row.seed = 7;
        row.wall_limit_ns = Some(1_000_000_000);
        row.status = status;
        row.stop = None;
        row.reason = reason.to_owned();
        row.exit_code = None;
        row.signal = (status == Status::Crashed).then_some(11);
        row.stderr_tail = "first\nlast <line>\n".to_owned();
        row.height = None;
        row.load = 96;
        row.relaxed_load = 96;
        row.bound = 96;
        row.samples_ns = Vec::new();
        row.trajectory = Vec::new();
        row.started_ns = 0;
        row.provenance = Provenance { host: "h<ost>".to_owned(), ..Provenance::default() };
    })
}

fn store(dir: &Path) {
    let mut store = Store::open(dir).expect("opens");
    for workload in ["chainer/alexnet/train/b8", "chainer/alexnet/train/b32", NASTY] {
        let times = &[3_000, 1_000, 2_000][..];
        append(&mut store, &Row { workload, planner: "best-fit", offsets: [0, 64, 0], times });
        append(&mut store, &Row { workload, planner: "bump", offsets: [0, 64, 96], times: &[500] });
    }
    let crash = failure(NASTY, "crasher", Status::Crashed, "signal <SEGV>");
    store.append(&crash).expect("appends");
    store.append(&failure("chainer/alexnet/train/b8", "slow", Status::Timeout, "")).expect("appends");
    store.compact().expect("compacts");
}

fn options() -> ReportOptions {
    let mut options = ReportOptions::default();
    let (parameters, network_wise, pool) = (Some(100), Some(160), Some(128));
    let total = PoolTotal { parameters, network_wise, pool, ..PoolTotal::default() };
    options.totals.insert("chainer/alexnet/train/b8".to_owned(), total);
    options
}

fn written() -> (tempfile::TempDir, Files) {
    let dir = tempfile::tempdir().expect("a temporary folder");
    store(&dir.path().join("store"));
    let out = dir.path().join("out");
    let report = Report::from_store(dir.path().join("store"), options()).expect("reads");
    let written = report.write_to(&out).expect("writes");
    let files = Files::read(&out);
    assert_eq!(written.files, files.len());
    assert_eq!(written.pages, files.keys().filter(|name| name.ends_with(".html")).count());
    (dir, files)
}

/// The report of a store of these rows alone.
fn report_of(rows: &[Record]) -> Files {
    let (dir, mut store) = empty_store();
    store.append_all(rows).expect("appends");
    Files::of_report(dir.path(), ReportOptions::default())
}

/// An empty store, in the folder `store` of a temporary one.
fn empty_store() -> (tempfile::TempDir, Store) {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let store = Store::open(dir.path().join("store")).expect("opens");
    (dir, store)
}
