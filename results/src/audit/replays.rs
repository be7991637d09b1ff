//! Checks that replays served what was requested, within their capacity.

use planlab_dsa::performance::End;

use super::checks::{Place, disagree, run};
use super::finding::{Fault, Finding};
use crate::rows::{ReplayRow, ReplayRun, group_by};

/// All problems in a set of replays, refutations first.
#[must_use]
pub fn audit_replays(rows: &[ReplayRow]) -> Vec<Finding> {
    run(rows, place, &[false_replays, requests])
}

fn place(row: &ReplayRow) -> Place<'_> {
    (&row.cell, row.repetition, [&row.workload, &row.contender])
}

fn false_replays(rows: &[ReplayRow], findings: &mut Vec<Finding>) {
    findings.extend(rows.iter().filter_map(false_replay));
}

/// Repetitions of a cell serve the same requests.
fn requests(rows: &[ReplayRow], findings: &mut Vec<Finding>) {
    for (cell, rows) in group_by(rows, |row| row.cell.as_str()) {
        let values = rows.iter().map(|row| format!("{} of {}", row.requests, row.requested_peak));
        disagree(cell, "the requests", values, findings);
    }
}

fn false_replay(row: &ReplayRow) -> Option<Finding> {
    let ReplayRun { workload, contender, device, capacity, .. } = &row.run;
    let reserved = row.performance.reserved_peak;
    let reason = match row.performance.status {
        End::Corrupt => {
            let message = format!("{workload}: {contender} on {device}: {}", row.performance.reason);
            return Some(Finding::new(Fault::CorruptReplay, message));
        }
        // On other devices the figure comes from a counter, which may be lower than the requests.
        End::Complete if device == "simulated" && reserved < row.requested_peak => {
            format!("it served {} bytes at once, but reserved {reserved} at most", row.requested_peak)
        }
        End::Complete => {
            let capacity = capacity.filter(|&capacity| capacity < reserved)?;
            format!("it reserved {reserved} bytes of a capacity of {capacity}")
        }
        _ => return None,
    };
    Some(Finding::from_inconsistent(workload, contender, &row.cell, &reason))
}
