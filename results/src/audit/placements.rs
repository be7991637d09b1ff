//! Checks that rows of placement agree across planners, across repetitions, and with their own status.
//!
//! A verified plan of one planner below the bound of another refutes that bound; no check of a single planner can show
//! this.

use std::collections::BTreeSet;
use std::sync::Arc;

use planlab_dsa::{Evidence, Scope, Stop};

use super::checks::{Place, disagree, or_none, run};
use super::finding::{Fault, Finding};
use crate::columns::table;
use crate::rows::{Record, Status, group_by};

table! {
    /// What the audit needs of a row. Strings that many rows share are stored once.
    #[derive(Clone, Debug)]
    pub(crate) struct Claim as "" {
        cell: Arc<str>,
        repetition: u32,
        workload: Arc<str>,
        instance: Arc<str>,
        buffers: u64,
        planner: Arc<str>,
        target_bytes: Option<u64>,
        status: Status,
        stop: Option<Stop>,
        reason: Arc<str>,
        height: Option<u64>,
        load: u64,
        relaxed_load: u64,
        bound: u64,
        bound_evidence: Evidence,
        bound_scope: Scope,
        bound_without_in_place: Option<u64>,
        hand_overs: u64,
    }
}

impl From<&Record> for Claim {
    fn from(row: &Record) -> Self {
        Self {
            cell: row.cell.as_str().into(),
            repetition: row.repetition,
            workload: row.workload.as_str().into(),
            instance: row.instance.as_str().into(),
            buffers: row.buffers,
            planner: row.planner.as_str().into(),
            target_bytes: row.target_bytes,
            status: row.status,
            stop: row.stop,
            reason: row.reason.as_str().into(),
            height: row.height,
            load: row.load,
            relaxed_load: row.relaxed_load,
            bound: row.bound,
            bound_evidence: row.bound_evidence,
            bound_scope: row.bound_scope,
            bound_without_in_place: row.bound_without_in_place,
            hand_overs: row.hand_overs,
        }
    }
}

/// All problems in a set of rows, refutations first.
#[must_use]
pub fn audit(records: &[Record]) -> Vec<Finding> {
    audit_claims(&records.iter().map(Claim::from).collect::<Vec<_>>())
}

/// All problems in a set of rows, refutations first.
pub(crate) fn audit_claims(rows: &[Claim]) -> Vec<Finding> {
    run(rows, place, &[refuted_bounds, refuted_capacities, statuses, mismatches])
}

fn place(row: &Claim) -> Place<'_> {
    (&row.cell, row.repetition, [&row.workload, &row.planner])
}

fn refuted_bounds(records: &[Claim], findings: &mut Vec<Finding>) {
    for rows in group_by(records, |r| &*r.instance).into_values() {
        let lowest = |scope: Scope| {
            let plans = rows.iter().filter(|r| scope.includes_hand_overs(r.hand_overs));
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
                if height < bound && seen.insert((&*row.planner, bound)) {
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
fn refuted_capacities(records: &[Claim], findings: &mut Vec<Finding>) {
    for rows in group_by(records, |r| &*r.instance).into_values() {
        let Some(refuter) = rows.iter().find(|r| r.height.is_some() && !r.status.is_lie()) else { continue };
        for row in rows.iter().filter(|r| r.status == Status::Infeasible && is_by_arena(r)) {
            let height = refuter.height.unwrap_or_default();
            let reason = format!("{}, but {} has a plan of {height} bytes", row.reason, refuter.planner);
            findings.push(Finding::from_refuted(&row.workload, &row.planner, row.status, &reason));
        }
    }
}

/// Whether an arena's capacity is out of reach, not the capacity that the run was given.
fn is_by_arena(row: &Claim) -> bool {
    row.stop == Some(Stop::Infeasible) && row.target_bytes.is_none_or(|target| row.bound <= target)
}

fn statuses(records: &[Claim], findings: &mut Vec<Finding>) {
    for row in records {
        if row.status.is_lie() {
            findings.push(Finding::from_refuted(&row.workload, &row.planner, row.status, &row.reason));
        } else if let Some(reason) = contradiction(row) {
            findings.push(Finding::from_inconsistent(&row.workload, &row.planner, &row.cell, &reason));
        }
    }
}

fn contradiction(row: &Claim) -> Option<String> {
    let Claim { height, bound, load, target_bytes, .. } = *row;
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

fn mismatches(records: &[Claim], findings: &mut Vec<Finding>) {
    type Field = (&'static str, fn(&Claim) -> String);
    let fields: [Field; 3] = [
        ("the number of buffers", |r| r.buffers.to_string()),
        ("the load", |r| r.relaxed_load.to_string()),
        ("the load without in-place", |r| r.load.to_string()),
    ];
    for (instance, rows) in group_by(records, |r| &*r.instance) {
        for (field, value) in fields {
            disagree(instance, field, rows.iter().map(|r| value(r)), findings);
        }
    }
    for (workload, rows) in group_by(records, |r| &*r.workload) {
        disagree(workload, "the instance", rows.iter().map(|r| r.instance.to_string()), findings);
    }
}
