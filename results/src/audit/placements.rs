//! Checks that rows of placement agree across planners, across repetitions, and with their own status.
//!
//! A verified plan of one planner below the bound of another refutes that bound; no check of a single planner can show
//! this.

use std::collections::BTreeSet;

use planlab_dsa::{Scope, Stop};

use super::checks::{by, disagree, or_none, run};
use super::finding::{Fault, Finding};
use crate::rows::{Record, Status};

/// All problems in a set of rows, refutations first.
#[must_use]
pub fn audit(records: &[Record]) -> Vec<Finding> {
    run(records, &[refuted_bounds, refuted_capacities, statuses, mismatches])
}

fn refuted_bounds(records: &[Record], findings: &mut Vec<Finding>) {
    for rows in by(records, |r| r.instance.as_str()).into_values() {
        let lowest = |scope: Scope| {
            let plans = rows.iter().filter(|r| scope.holds(r.hand_overs));
            plans.filter_map(|r| Some((r.height?, r))).min_by_key(|&(height, _)| height)
        };
        let (any, plain) = (lowest(Scope::Any), lowest(Scope::NoHandOver));
        // One finding for each planner and bound, even if many cells repeat it.
        let mut seen = BTreeSet::new();
        for row in rows.iter().filter(|r| r.status != Status::BoundRefuted) {
            let lowest = if row.bound_scope == Scope::Any { any } else { plain };
            let claims = [(Some(row.bound), lowest), (row.bound_without_in_place, plain)];
            for (bound, lowest) in claims {
                let Some((bound, (height, refuter))) = bound.zip(lowest) else { continue };
                if height < bound && seen.insert((row.planner.as_str(), bound)) {
                    let (evidence, refuter) = (row.bound_evidence, &refuter.planner);
                    let message = format!(
                        "{}: {} claims that no plan is lower than {bound} bytes ({evidence}), but {refuter} has one of \
                         {height} bytes",
                        row.workload, row.planner
                    );
                    findings.push(Finding::new(Fault::RefutedBound, message));
                }
            }
        }
    }
}

/// Rows that claim that an arena cannot keep its capacity, although another planner has a plan.
fn refuted_capacities(records: &[Record], findings: &mut Vec<Finding>) {
    for rows in by(records, |r| r.instance.as_str()).into_values() {
        let Some(refuter) = rows.iter().find(|r| r.height.is_some() && !r.status.is_lie()) else { continue };
        for row in rows.iter().filter(|r| r.status == Status::Infeasible && is_by_arena(r)) {
            let height = refuter.height.unwrap_or_default();
            let reason = format!("{}, but {} has a plan of {height} bytes", row.reason, refuter.planner);
            findings.push(Finding::refuted(&row.workload, &row.planner, row.status, &reason));
        }
    }
}

/// Whether an arena's capacity is out of reach, not the capacity that the run was given.
fn is_by_arena(row: &Record) -> bool {
    row.stop == Some(Stop::Infeasible) && row.target_bytes.is_none_or(|target| row.bound <= target)
}

fn statuses(records: &[Record], findings: &mut Vec<Finding>) {
    for row in records {
        if row.status.is_lie() {
            findings.push(Finding::refuted(&row.workload, &row.planner, row.status, &row.reason));
        } else if let Some(reason) = contradiction(row) {
            findings.push(Finding::inconsistent(&row.workload, &row.planner, &row.cell, &reason));
        }
    }
}

fn contradiction(row: &Record) -> Option<String> {
    let Record { height, bound, load, target_bytes, .. } = *row;
    match (row.status, height) {
        (Status::Optimal | Status::Feasible, None) => Some("it has a plan, but no height".to_owned()),
        (Status::Optimal, Some(height)) if height != bound => {
            Some(format!("it is optimal, but its height {height} is not its bound {bound}"))
        }
        (Status::Feasible, Some(height)) if height <= bound => {
            Some(format!("it is not optimal, but its height {height} is not above its bound {bound}"))
        }
        (Status::Infeasible, _) if target_bytes.is_none_or(|target| bound <= target) && !is_by_arena(row) => {
            Some(format!(
                "it is infeasible, but its bound {bound} is not above a capacity (the row's: {})",
                or_none(target_bytes)
            ))
        }
        (_, Some(height)) if height < load && row.hand_overs == 0 => {
            Some(format!("its height {height} is below the load {load} without a hand-over"))
        }
        _ => None,
    }
}

fn mismatches(records: &[Record], findings: &mut Vec<Finding>) {
    type Field = (&'static str, fn(&Record) -> String);
    let fields: [Field; 3] = [
        ("the number of buffers", |r| r.buffers.to_string()),
        ("the load", |r| r.relaxed_load.to_string()),
        ("the load without in-place", |r| r.load.to_string()),
    ];
    for (instance, rows) in by(records, |r| r.instance.as_str()) {
        for (field, value) in fields {
            disagree(instance, field, rows.iter().map(|r| value(r)), findings);
        }
    }
    for (workload, rows) in by(records, |r| r.workload.as_str()) {
        disagree(workload, "the instance", rows.iter().map(|r| r.instance.clone()), findings);
    }
}
