//! From what became of a child to a row.

use std::time::Duration;

use planlab_dsa::Digest;
use planlab_replay::host::{CallQuantiles, End, Report, Sample};
use planlab_results::Provenance;
use planlab_results::replay::{CallTime, REPLAY_SCHEMA, ReplayRow, ReplaySample, ReplayStatus, ReplayWork};
use serde::Serialize;
use serde_json::Value;

use super::contender::Contender;
use super::host::protocol::Work;
use super::subject::Subject;
use super::supervisor::ReplayEnd;
use crate::process::Death;
use crate::shell::quantity;

/// How a contender is played.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    /// `host`, `cuda:0`.
    pub(crate) device: String,
    pub(crate) work: Work,
    pub(crate) threads: u32,
    pub(crate) capacity: Option<u64>,
    pub(crate) budget: Duration,
    pub(crate) iterations: Option<u32>,
    /// Propagations before the timed ones, where it is said.
    pub(crate) warm_up: Option<u32>,
    /// How long a process may take.
    pub(crate) limit: Duration,
}

/// The row of a process.
pub(crate) fn row(
    subject: &Subject,
    contender: &Contender,
    settings: &Settings,
    (repetition, started_ns): (u32, u64),
    end: &ReplayEnd,
    provenance: Provenance,
) -> ReplayRow {
    let (status, reason) = verdict(contender, settings, end);
    let report = if let ReplayEnd::Played(report) = end { (**report).clone() } else { Report::default() };
    ReplayRow {
        schema: REPLAY_SCHEMA,
        cell: cell(subject, contender, settings, &provenance.host),
        repetition,
        suite: String::new(),
        workload: subject.name.clone(),
        sequence: subject.sequence.clone(),
        until: None,
        instance: subject.instance.to_string(),
        requests: subject.requests,
        contender: contender.row_key(),
        planner: contender.planner.clone(),
        plan: contender.digest().map(|digest| digest.to_string()),
        device: settings.device.clone(),
        device_name: String::new(),
        work: work(settings.work),
        threads: settings.threads,
        capacity: settings.capacity,
        status,
        reason,
        warm_up: report.warm_up,
        is_steady: report.is_steady,
        samples: report.samples.iter().map(sample).collect(),
        alloc: report.alloc.map(call_time),
        free: report.free.map(call_time),
        requested_peak: subject.peak,
        retained: subject.retained,
        reserved_peak: report.reserved_peak,
        used_peak: report.used_peak,
        physical_peak: report.physical_peak,
        device_allocations: report.device_allocations,
        search_steps: report.search_steps,
        lock_wait_ns: report.lock_wait_ns,
        refusals: None,
        touched_bytes: None,
        l2_bytes: None,
        started_ns,
        provenance,
    }
}

/// Digest of what makes the row but for the repetition. The machine is part of it.
fn cell(subject: &Subject, contender: &Contender, settings: &Settings, host: &str) -> String {
    let plan = contender.digest().map(|digest| digest.to_string());
    let parts = serde_json::json!([
        "host replay 3",
        host,
        subject.instance.to_string(),
        contender.row_key(),
        contender.planner,
        plan,
        settings.device,
        settings.work,
        settings.threads,
        settings.capacity,
        quantity::nanoseconds(settings.budget),
        settings.iterations,
        settings.warm_up,
    ]);
    Digest::of_bytes(parts.to_string().as_bytes()).to_string()
}

fn verdict(contender: &Contender, settings: &Settings, end: &ReplayEnd) -> (ReplayStatus, String) {
    match end {
        ReplayEnd::Played(report) => {
            let lack = report.refused_range.map(|bytes| no_addresses(contender, bytes, settings.threads));
            (status(report.end), lack.unwrap_or_else(|| report.reason.clone()))
        }
        ReplayEnd::Unreadable(reason) => (ReplayStatus::Failed, reason.clone()),
        ReplayEnd::Died(death, stderr) => died(death, stderr, settings.limit),
    }
}

/// Why there is no room for a range of addresses: memory may be there all the same.
fn no_addresses(contender: &Contender, bytes: u64, threads: u32) -> String {
    let key = &contender.key;
    let asked = format!("no addresses for `{key}`: each thread asks for a range of {bytes} bytes");
    match threads {
        1 => format!("{asked}, more than this process may have"),
        _ => format!("{asked}, and {threads} threads are more than fit into one process: fewer threads help"),
    }
}

/// What a row says of a process that died.
pub(crate) fn died(death: &Death, stderr: &str, limit: Duration) -> (ReplayStatus, String) {
    let how = match death {
        Death::Timeout => format!("killed after {}", quantity::seconds(quantity::nanoseconds(limit))),
        Death::OutOfMemory => return (ReplayStatus::OutOfMemory, "the process ran out of memory".to_owned()),
        Death::Signal(signal) => format!("signal {signal}"),
        Death::Exit(code) => format!("exit code {code}"),
        Death::BadOutput(what) | Death::Unreadable(what) => what.clone(),
        Death::Interrupted => "interrupted".to_owned(),
    };
    let told = stderr.lines().last().map(|line| format!(": {line}")).unwrap_or_default();
    (ReplayStatus::Failed, how + &told)
}

const fn status(end: End) -> ReplayStatus {
    match end {
        End::Complete => ReplayStatus::Complete,
        End::OutOfMemory => ReplayStatus::OutOfMemory,
        End::Corrupt => ReplayStatus::Corrupt,
        End::Unavailable => ReplayStatus::Unavailable,
    }
}

const fn work(work: Work) -> ReplayWork {
    match work {
        Work::None => ReplayWork::None,
        Work::Pages => ReplayWork::Pages,
        Work::Pattern => ReplayWork::Pattern,
    }
}

fn sample(sample: &Sample) -> ReplaySample {
    ReplaySample {
        propagations: sample.propagations,
        wall_ns: sample.wall_ns,
        cpu_ns: Some(sample.cpu_ns),
        reserved: Some(sample.reserved),
        reserved_peak: sample.reserved_peak,
        plans: sample.plans,
        planning_ns: sample.planning_ns,
        ..ReplaySample::default()
    }
}

const fn call_time(of: CallQuantiles) -> CallTime {
    CallTime { median_ps: of.median_ps, p99_ps: of.p99_ps, batches: of.batches }
}

/// The name of a status or of a work, as files have it.
pub(crate) fn name(of: &impl Serialize) -> String {
    serde_json::to_value(of).ok().as_ref().and_then(Value::as_str).unwrap_or_default().to_owned()
}
