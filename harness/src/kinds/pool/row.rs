//! Makes a row of a contender's figures, or of a child's death.

use std::time::Duration;

use planlab_dsa::Digest;
use planlab_replay::{End, Performance, Work};
use planlab_results::Provenance;
use planlab_results::replay::{REPLAY_SCHEMA, ReplayRow};

use super::contender::Contender;
use super::subject::Subject;
use super::supervisor::ReplayEnd;
use crate::process::Death;
use crate::shell::quantity;

/// The settings of a replay on the host.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    /// `host`, `cuda:0`.
    pub(crate) device: String,
    pub(crate) work: Work,
    pub(crate) threads: u32,
    pub(crate) capacity: Option<u64>,
    pub(crate) budget: Duration,
    pub(crate) iterations: Option<u32>,
    /// Propagations before the timed ones, if given.
    pub(crate) warm_up: Option<u32>,
    /// The time limit of a process.
    pub(crate) limit: Duration,
}

/// The row's fields about how the figures were made.
pub(crate) struct Played<'a> {
    pub(crate) subject: &'a Subject,
    pub(crate) contender: &'a Contender,
    /// Digest of everything that defines the row except the repetition.
    pub(crate) cell: String,
    pub(crate) repetition: u32,
    pub(crate) suite: &'a str,
    pub(crate) device: Place,
    pub(crate) work: Work,
    pub(crate) threads: u32,
    pub(crate) capacity: Option<u64>,
    pub(crate) started_ns: u64,
    pub(crate) provenance: Provenance,
}

/// The memory that was played on.
#[derive(Clone, Debug, Default)]
pub(crate) struct Place {
    /// `simulated`, `host`, `cuda:0`.
    pub(crate) key: String,
    /// The name that a device reports.
    pub(crate) name: String,
    pub(crate) l2_bytes: Option<u64>,
}

impl Place {
    /// The host's memory, real or simulated.
    pub(crate) fn of_host(key: &str) -> Self {
        Self { key: key.to_owned(), ..Self::default() }
    }
}

/// The row of a contender's figures.
pub(crate) fn row(played: Played<'_>, performance: Performance) -> ReplayRow {
    let Played { subject, contender, device, work, .. } = played;
    ReplayRow {
        schema: REPLAY_SCHEMA,
        cell: played.cell,
        repetition: played.repetition,
        suite: played.suite.to_owned(),
        workload: subject.name.clone(),
        sequence: subject.sequence.clone(),
        until: subject.until,
        instance: subject.instance.to_string(),
        requests: subject.requests,
        requested_peak: subject.peak,
        retained: subject.retained,
        contender: contender.row_key(),
        planner: contender.planner.clone(),
        plan: contender.digest().map(|digest| digest.to_string()),
        device: device.key,
        device_name: device.name,
        l2_bytes: device.l2_bytes,
        work,
        threads: played.threads,
        capacity: played.capacity,
        performance,
        // Each buffer is written once and read once.
        touched_bytes: matches!(work, Work::Kernels | Work::Operations).then(|| 2 * subject.total),
        started_ns: played.started_ns,
        provenance: played.provenance,
    }
}

/// The row of a process on the host.
pub(crate) fn of_process(
    subject: &Subject,
    contender: &Contender,
    settings: &Settings,
    (repetition, started_ns): (u32, u64),
    end: &ReplayEnd,
    provenance: Provenance,
) -> ReplayRow {
    let played = Played {
        cell: cell(subject, contender, settings, &provenance.host),
        subject,
        contender,
        repetition,
        suite: "",
        device: Place::of_host(&settings.device),
        work: settings.work,
        threads: settings.threads,
        capacity: settings.capacity,
        started_ns,
        provenance,
    };
    row(played, performance(contender, settings, end))
}

/// Digest of everything that defines the row except the repetition. It includes the machine.
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

fn performance(contender: &Contender, settings: &Settings, end: &ReplayEnd) -> Performance {
    match end {
        ReplayEnd::Played(report) => {
            let lack = report.refused_range.map(|bytes| no_addresses(contender, bytes, settings.threads));
            let reason = lack.unwrap_or_else(|| report.performance.reason.clone());
            Performance { reason, ..report.performance.clone() }
        }
        ReplayEnd::Unreadable(reason) => Performance::failed(End::Failed, reason.clone()),
        ReplayEnd::Died(death, stderr) => died(death, stderr, settings.limit),
    }
}

/// The reason if a range of addresses does not fit, which can happen with free memory.
fn no_addresses(contender: &Contender, bytes: u64, threads: u32) -> String {
    let key = &contender.key;
    let asked = format!("no addresses for `{key}`: each thread requests a range of {bytes} bytes");
    match threads {
        1 => format!("{asked}, more than this process may have"),
        _ => format!("{asked}, and {threads} threads are more than fit into one process: fewer threads help"),
    }
}

/// The figures of a contender whose process died.
pub(crate) fn died(death: &Death, stderr: &str, limit: Duration) -> Performance {
    let how = match death {
        Death::Timeout => format!("killed after {}", quantity::seconds(quantity::nanoseconds(limit))),
        Death::OutOfMemory => {
            return Performance::failed(End::OutOfMemory, "the process ran out of memory".to_owned());
        }
        Death::Signal(signal) => format!("signal {signal}"),
        Death::Exit(code) => format!("exit code {code}"),
        Death::BadOutput(what) | Death::Unreadable(what) => what.clone(),
        Death::Interrupted => "interrupted".to_owned(),
    };
    let told = stderr.lines().last().map(|line| format!(": {line}")).unwrap_or_default();
    Performance::failed(End::Failed, how + &told)
}
