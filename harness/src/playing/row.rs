//! From what a contender came to, and from what became of a child, to a row.

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

/// How a contender is played on the host.
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

/// What a row says of how the figures came about.
pub(crate) struct Played<'a> {
    pub(crate) subject: &'a Subject,
    pub(crate) contender: &'a Contender,
    /// Digest of what makes the row but for the repetition.
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

/// Whose memory it is.
#[derive(Clone, Debug, Default)]
pub(crate) struct Place {
    /// `simulated`, `host`, `cuda:0`.
    pub(crate) key: String,
    /// What a device calls itself.
    pub(crate) name: String,
    pub(crate) l2_bytes: Option<u64>,
}

impl Place {
    /// Memory of the host, real or simulated.
    pub(crate) fn of_host(key: &str) -> Self {
        Self { key: key.to_owned(), ..Self::default() }
    }
}

/// The row of what a contender came to.
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

/// Why there is no room for a range of addresses: memory may be there all the same.
fn no_addresses(contender: &Contender, bytes: u64, threads: u32) -> String {
    let key = &contender.key;
    let asked = format!("no addresses for `{key}`: each thread asks for a range of {bytes} bytes");
    match threads {
        1 => format!("{asked}, more than this process may have"),
        _ => format!("{asked}, and {threads} threads are more than fit into one process: fewer threads help"),
    }
}

/// What a contender came to whose process died.
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
