//! An audit: checks over rows of one kind, and what these checks share.

use std::collections::BTreeSet;

use super::finding::{Fault, Finding};
use crate::rows::group_by;

/// A check over all rows of a kind.
pub(super) type Check<R> = fn(&[R], &mut Vec<Finding>);

/// The cell of a row and the repetition; the workload and who ran.
pub(super) type Place<'r> = (&'r str, u32, [&'r str; 2]);

/// What these checks find, and missing repetitions; refutations first.
pub(super) fn run<R>(rows: &[R], place: fn(&R) -> Place<'_>, checks: &[Check<R>]) -> Vec<Finding> {
    let mut findings = Vec::new();
    checks.iter().for_each(|check| check(rows, &mut findings));
    missing_repetitions(rows, place, &mut findings);
    findings.sort_by_key(|finding| !finding.is_refutation());
    findings
}

pub(crate) fn or_none(value: Option<u64>) -> String {
    value.map_or_else(|| "none".to_owned(), |value| value.to_string())
}

/// Adds a finding if rows about a subject have several values.
pub(super) fn disagree(
    subject: &str,
    field: &str,
    values: impl Iterator<Item = String>,
    findings: &mut Vec<Finding>,
) {
    let values: BTreeSet<String> = values.collect();
    if values.len() > 1 {
        let values = values.into_iter().collect::<Vec<_>>().join(", ");
        let message = format!("{subject}: rows disagree on {field}: {values}");
        findings.push(Finding::new(Fault::InstanceMismatch, message));
    }
}

fn missing_repetitions<R>(rows: &[R], place: fn(&R) -> Place<'_>, findings: &mut Vec<Finding>) {
    for (cell, rows) in group_by(rows, |row| place(row).0) {
        let there: BTreeSet<u32> = rows.iter().map(|row| place(row).1).collect();
        let last = there.last().copied().unwrap_or(0);
        let missing: Vec<String> = (0..last).filter(|n| !there.contains(n)).map(|n| n.to_string()).collect();
        if !missing.is_empty() {
            let ([workload, who], missing) = (place(rows[0]).2, missing.join(", "));
            let message = format!("{workload}: {who} (cell {cell}): no rows for repetitions {missing}");
            findings.push(Finding::new(Fault::MissingRepetitions, message));
        }
    }
}
