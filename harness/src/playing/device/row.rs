//! From what a contender came to on a device to a row.

use std::time::Duration;

use planlab_dsa::Digest;
use planlab_replay::cuda::{DeviceInfo, End, Performance, Protocol, Sample, Work};
use planlab_results::Provenance;
use planlab_results::replay::{CallTime, REPLAY_SCHEMA, ReplayRow, ReplaySample, ReplayStatus, ReplayWork};

use crate::playing::Contender;
use crate::playing::subject::Subject;
use crate::shell::quantity::nanoseconds;

/// How it is played.
#[derive(Clone, Copy, Debug)]
pub(super) struct Settings {
    pub(super) protocol: Protocol,
    /// Nanoseconds of every operation, if all take the same.
    pub(super) operation_ns: Option<u64>,
    /// Digest of the times that the traces give their operations, if these are played.
    pub(super) recorded: Option<Digest>,
    pub(super) capacity: Option<u64>,
}

/// The row of a contender in one process.
pub(super) fn row(
    subject: &Subject,
    contender: &Contender,
    settings: &Settings,
    (repetition, started_ns): (u32, u64),
    device: &DeviceInfo,
    played: &Performance,
    provenance: Provenance,
) -> ReplayRow {
    let is_complete = played.end == End::Complete;
    let (steps, propagations) = played.search_steps;
    let has_kernels = settings.protocol.work != Work::None;
    ReplayRow {
        schema: REPLAY_SCHEMA,
        cell: cell(subject, contender, settings, device, &provenance.host),
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
        device: device.key.clone(),
        device_name: device.name.clone(),
        work: work(settings.protocol.work),
        threads: 1,
        capacity: settings.capacity,
        status: status(played.end),
        reason: played.reason.clone(),
        warm_up: played.warm_up,
        is_steady: played.is_steady && is_complete,
        samples: played.samples.iter().map(sample).collect(),
        alloc: call_time(&played.alloc).filter(|_| !played.is_mostly_clock[0]),
        free: call_time(&played.free).filter(|_| !played.is_mostly_clock[1]),
        requested_peak: subject.peak,
        retained: subject.retained,
        reserved_peak: played.reserved_peak,
        used_peak: Some(played.used_peak).filter(|&peak| peak > 0),
        physical_peak: Some(played.physical_peak),
        device_allocations: played.device_allocations,
        search_steps: steps / propagations.max(1),
        lock_wait_ns: None,
        refusals: Some(played.refusals),
        // Each buffer is written once and read once.
        touched_bytes: has_kernels.then(|| 2 * subject.total),
        l2_bytes: device.l2_bytes,
        started_ns,
        provenance,
    }
}

/// Digest of what makes the row but for the repetition. A device, its driver and its machine are part of it.
fn cell(
    subject: &Subject,
    contender: &Contender,
    settings: &Settings,
    device: &DeviceInfo,
    host: &str,
) -> String {
    let plan = contender.digest().map(|digest| digest.to_string());
    let recorded = settings.recorded.map(|digest| digest.to_string()).unwrap_or_default();
    let parts = serde_json::json!([
        "device replay 3",
        host,
        subject.instance.to_string(),
        contender.row_key(),
        contender.planner,
        plan,
        device,
        settings.protocol,
        settings.operation_ns,
        settings.capacity,
    ]);
    Digest::of_bytes((parts.to_string() + &recorded).as_bytes()).to_string()
}

const fn status(end: End) -> ReplayStatus {
    match end {
        End::Complete => ReplayStatus::Complete,
        End::OutOfMemory => ReplayStatus::OutOfMemory,
        End::Corrupt => ReplayStatus::Corrupt,
        End::Unavailable => ReplayStatus::Unavailable,
        End::Failed => ReplayStatus::Failed,
    }
}

const fn work(work: Work) -> ReplayWork {
    match work {
        Work::None => ReplayWork::None,
        Work::Kernels => ReplayWork::Kernels,
        Work::Operations => ReplayWork::Operations,
    }
}

fn sample(sample: &Sample) -> ReplaySample {
    let time = |time: Duration| nanoseconds(time);
    ReplaySample {
        propagations: sample.propagations,
        wall_ns: time(sample.wall),
        cpu_ns: None,
        enqueue_ns: sample.enqueue.map(time),
        device_ns: sample.device.map(time),
        reserved: Some(sample.reserved),
        reserved_peak: sample.reserved_peak,
        plans: sample.planning.map(|(plans, _)| plans),
        planning_ns: sample.planning.map(|(_, spent)| time(spent)),
    }
}

/// Quantiles of picoseconds; none of none.
fn call_time(batches: &[u64]) -> Option<CallTime> {
    let mut sorted = batches.to_vec();
    sorted.sort_unstable();
    let last = sorted.len().checked_sub(1)?;
    let (median_ps, p99_ps) = (sorted[last / 2], sorted[last - last / 100]);
    Some(CallTime { median_ps, p99_ps, batches: sorted.len() as u64 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_batches() {
        assert_eq!(call_time(&[]), None);
        let of = |batches: &[u64]| call_time(batches).map(|time| (time.median_ps, time.p99_ps, time.batches));
        assert_eq!(of(&[7]), Some((7, 7, 1)));
        assert_eq!(of(&(1..=200).rev().collect::<Vec<u64>>()), Some((100, 199, 200)));
    }
}
