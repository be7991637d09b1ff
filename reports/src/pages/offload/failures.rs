//! Failures: crashes, false results, time-outs, exhausted memory, and rows that contradict each other.

use planlab_results::audit::{Fault, Finding};
use planlab_results::table::{CellValue, Table, columns};

use super::tables;
use crate::data::planners::tables::{describe_exit, last_line};
use crate::format::format_counted;
use crate::site::Site;
use crate::site::page::Piece;

pub(super) fn failure_pieces(site: &Site<'_>) -> Vec<Piece> {
    let table = failure_table(site);
    let refuted = refutation_alerts(site);
    if table.rows.is_empty() && !refuted.is_empty() {
        return refuted;
    }
    if table.rows.is_empty() {
        let fine = "No scheduler crashed, was killed, ran over its limits or gave a false answer: every schedule passed the \
                    validator.";
        return vec![Piece::fine(fine)];
    }
    let lies = site.schedules.failures.iter().filter(|row| row.status.is_lie()).count();
    let rows = format_counted(table.rows.len() as u64, "row");
    let text = match lies {
        0 => format!("{rows} failed."),
        lies => format!("{rows} failed, {lies} of them with a false answer."),
    };
    let mut pieces = vec![Piece::alert(text), Piece::Table(table)];
    pieces.extend(refuted);
    pieces
}

/// Bounds that a valid schedule of the same or of another scheduler refutes, and stored schedules that contradict their rows.
pub(super) fn refutation_alerts(site: &Site<'_>) -> Vec<Piece> {
    let is_refuted = |finding: &&Finding| {
        matches!(finding.fault, Fault::RefutedTime | Fault::RefutedMemory | Fault::FalseSchedule)
    };
    site.findings.iter().filter(is_refuted).map(|finding| Piece::alert(finding.to_string())).collect()
}

fn failure_table(site: &Site<'_>) -> Table {
    Table::from_rows(
        "offload-failures",
        "Rows without a valid answer: a crash, a kill, a time-out, exhausted memory of the process, or a schedule that the \
         validator refused. That a net does not fit is no failure.",
        &site.schedules.failures,
        columns!(|row| [
            ("workload", "Workload", CellValue::text(row.workload.as_str())),
            ("machine", "Machine", CellValue::text(row.machine.as_str())),
            ("copies_gb", "GB/s", tables::copies((row.copy_out, row.copy_in))),
            ("capacity_gb", "Of GB", tables::gb(row.capacity)),
            ("scheduler", "Scheduler", CellValue::text(row.scheduler.as_str())),
            ("status", "Status", CellValue::text(row.status.name())),
            ("reason", "Reason", CellValue::text(row.reason.as_str())),
            ("exit", "Exit", CellValue::text(describe_exit(row.signal, row.exit_code))),
            ("stderr", "Last line of stderr", CellValue::text(last_line(&row.stderr_tail))),
        ]),
    )
}
