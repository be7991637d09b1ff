//! Makes a row of a contender's figures on a device.

use planlab_dsa::Digest;
use planlab_replay::Performance;
use planlab_replay::cuda::{DeviceInfo, Protocol};
use planlab_results::Provenance;
use planlab_results::replay::ReplayRow;

use crate::kinds::pool::Contender;
use crate::kinds::pool::row::{Place, row};
use crate::kinds::pool::subject::Subject;

/// The settings of a replay on a device.
#[derive(Clone, Copy, Debug)]
pub(super) struct Settings {
    pub(super) protocol: Protocol,
    /// The time of every operation in nanoseconds, if all take the same.
    pub(super) operation_ns: Option<u64>,
    /// Digest of the operations' times in the traces, if these are played.
    pub(super) recorded: Option<Digest>,
    pub(super) capacity: Option<u64>,
}

/// The row of a contender in one process.
pub(super) fn of_turn(
    subject: &Subject,
    contender: &Contender,
    settings: &Settings,
    (repetition, started_ns): (u32, u64),
    device: &DeviceInfo,
    performance: Performance,
    provenance: Provenance,
) -> ReplayRow {
    let place = Place { key: device.key.clone(), name: device.name.clone(), l2_bytes: device.l2_bytes };
    ReplayRow {
        cell: cell_digest(subject, contender, settings, device, &provenance.host),
        repetition,
        capacity: settings.capacity,
        started_ns,
        ..row(subject, contender, (place, settings.protocol.work), performance, provenance)
    }
}

/// Digest of everything that defines the row except the repetition. It includes the device, its driver and its machine.
fn cell_digest(
    subject: &Subject,
    contender: &Contender,
    settings: &Settings,
    device: &DeviceInfo,
    host: &str,
) -> String {
    let plan = contender.plan_digest().map(|digest| digest.to_string());
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
