//! Makes a row of a contender's process on the host.

use planlab_dsa::Digest;
use planlab_replay::{End, Performance};
use planlab_results::Provenance;
use planlab_results::replay::ReplayRow;

use super::kind::{HostReplay, Settings};
use crate::cells::CellEnd;
use crate::kinds::pool::contender::Contender;
use crate::kinds::pool::row::{Place, performance_of_death, row};
use crate::kinds::pool::subject::Subject;
use crate::process::Death;
use crate::shell::quantity;

/// The row of a process on the host.
pub(super) fn of_process(
    subject: &Subject,
    contender: &Contender,
    settings: &Settings,
    (repetition, started_ns): (u32, u64),
    end: &CellEnd<HostReplay>,
    provenance: Provenance,
) -> ReplayRow {
    let place = (Place::of_host("host"), settings.work);
    ReplayRow {
        cell: cell_digest(subject, contender, settings, &provenance.host),
        repetition,
        threads: settings.threads,
        capacity: settings.capacity,
        started_ns,
        ..row(subject, contender, place, performance_of(contender, settings, end), provenance)
    }
}

/// Digest of everything that defines the row except the repetition. It includes the machine.
fn cell_digest(subject: &Subject, contender: &Contender, settings: &Settings, host: &str) -> String {
    let plan = contender.plan_digest().map(|digest| digest.to_string());
    let parts = serde_json::json!([
        "host replay 3",
        host,
        subject.instance.to_string(),
        contender.row_key(),
        contender.planner,
        plan,
        "host",
        settings.work,
        settings.threads,
        settings.capacity,
        quantity::as_nanoseconds(settings.budget),
        settings.iterations,
        settings.warm_up,
    ]);
    Digest::of_bytes(parts.to_string().as_bytes()).to_string()
}

fn performance_of(contender: &Contender, settings: &Settings, cell: &CellEnd<HostReplay>) -> Performance {
    match &cell.end {
        Ok(Ok(report)) => {
            let lack = report.refused_range.map(|bytes| no_addresses(contender, bytes, settings.threads));
            let reason = lack.unwrap_or_else(|| report.performance.reason.clone());
            Performance { reason, ..report.performance.clone() }
        }
        Ok(Err(reason)) | Err(Death::Unreadable(reason)) => {
            Performance::without_measurements(End::Failed, reason.clone())
        }
        Err(death) => performance_of_death(death, &cell.stderr_tail, settings.limit),
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
