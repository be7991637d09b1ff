//! Checks that schedule rows agree with each other and with themselves.

use super::checks::{Place, disagree, or_none, run};
use super::finding::{Fault, Finding};
use crate::rows::{ScheduleRow, SchedulerRun, Status, group_by};
use crate::show::format::as_real;

/// The relative difference below which two times are equal, as when a run claims a bound.
const SAME: f64 = 1e-9;
/// The nanoseconds by which two stored times are rounded.
const ROUNDED: f64 = 1.0;

/// All problems in a set of schedules, refutations first.
#[must_use]
pub fn audit_schedules(rows: &[ScheduleRow]) -> Vec<Finding> {
    run(rows, place, &[statuses, refuted_bounds, problems])
}

fn place(row: &ScheduleRow) -> Place<'_> {
    (&row.cell, row.repetition, [&row.workload, &row.scheduler])
}

fn statuses(rows: &[ScheduleRow], findings: &mut Vec<Finding>) {
    for row in rows {
        let problem = || describe_problem(row);
        if row.status.is_lie() {
            findings.push(Finding::from_refuted(&problem(), &row.scheduler, row.status, &row.reason));
        } else if let Some(reason) = find_contradiction(row) {
            findings.push(Finding::from_inconsistent(&problem(), &row.scheduler, &row.cell, &reason));
        }
    }
}

/// Rows of one problem agree on it.
fn problems(rows: &[ScheduleRow], findings: &mut Vec<Finding>) {
    for (problem, rows) in group_by(rows, |row| row.problem.as_str()) {
        let values = rows.iter().map(|row| format!("{} maps in {} ns", row.maps, row.compute_ns));
        disagree(problem, "the problem", values, findings);
    }
}

/// The workload with machine, links and capacity.
fn describe_problem(row: &ScheduleRow) -> String {
    let SchedulerRun { workload, machine, copy_out, copy_in, capacity, .. } = &row.run;
    format!("{workload} on {machine} ({copy_out:e} bytes/s out, {copy_in:e} in) with {capacity} bytes")
}

/// Valid schedules that are faster than the bound of a row that covers them, or take less memory than it says all take.
fn refuted_bounds(rows: &[ScheduleRow], findings: &mut Vec<Finding>) {
    for rows in group_by(rows, |row| (row.compute_ns, row.base)).into_values() {
        findings.extend(rows.iter().filter_map(|row| refuted_time(row, &rows)));
        findings.extend(rows.iter().filter_map(|row| refuted_memory(row, &rows)));
    }
}

fn refuted_memory(row: &ScheduleRow, rows: &[&ScheduleRow]) -> Option<Finding> {
    let least = row.least_memory?;
    let covered = rows.iter().filter(|other| names_net_and_machine(row) == names_net_and_machine(other));
    let (peak, refuter) = covered.filter_map(|row| Some((row.live_peak?, &row.scheduler))).min()?;
    (peak < least).then(|| {
        let message = format!(
            "{}: {} claims that every schedule needs {least} bytes, but one of {refuter} takes {peak}",
            describe_problem(row),
            row.scheduler
        );
        Finding::new(Fault::RefutedMemory, message)
    })
}

fn refuted_time(row: &ScheduleRow, rows: &[&ScheduleRow]) -> Option<Finding> {
    let covered = rows.iter().filter(|other| covers_schedule(row, other));
    let (iteration_ns, refuter) =
        covered.filter_map(|row| Some((row.iteration_ns?, &row.scheduler))).min_by_key(|(ns, _)| *ns)?;
    let is_refuted = as_real(iteration_ns) < as_real(row.bound_ns) * (1.0 - SAME) - ROUNDED;
    is_refuted.then(|| {
        let message = format!(
            "{}: {} claims that no iteration takes less than {} ns, but one of {refuter} takes {iteration_ns} ns",
            describe_problem(row),
            row.scheduler,
            row.bound_ns
        );
        Finding::new(Fault::RefutedTime, message)
    })
}

/// Whether a row's bound covers the schedule of the other row: one of the same net and machine that takes no more memory
/// than the row's problem has. Older versions had bounds on schedules of a class, in rows of such schedules.
fn covers_schedule(row: &ScheduleRow, other: &ScheduleRow) -> bool {
    (row.bound_scope == "any" || row.bound_scope == other.bound_scope)
        && (row.problem == other.problem
            || names_net_and_machine(row) == names_net_and_machine(other)
                && other.live_peak.unwrap_or(other.capacity) <= row.capacity)
}

/// What determines a problem without its capacity.
fn names_net_and_machine(row: &ScheduleRow) -> impl PartialEq {
    let SchedulerRun { workload, batch, machine, rates_digest, times, .. } = &row.run;
    let links = [row.copy_out, row.copy_in].map(f64::to_bits);
    (workload, *batch, machine, rates_digest, times, links, [row.base, row.compute_ns])
}

fn find_contradiction(row: &ScheduleRow) -> Option<String> {
    if row.status == Status::Infeasible {
        return contradict_infeasible(row);
    }
    if row.iteration_ns.is_none() {
        let says = format!("it is {}, but has no time of an iteration", row.status.name());
        return row.status.is_answer().then_some(says);
    }
    let counts = [row.kept, row.swapped, row.recomputed].map(Option::unwrap_or_default);
    let SchedulerRun { capacity, base, height, .. } = row.run;
    let peak = row.live_peak.unwrap_or(0);
    // A map that is both swapped and recomputed counts once.
    if counts.iter().sum::<u64>() != row.maps {
        return Some(format!("{counts:?} maps are kept, swapped and recomputed, of {}", row.maps));
    }
    if peak > capacity || peak < base {
        return Some(format!("{peak} bytes are in use at most, of {capacity} with {base} reserved"));
    }
    if let Some(height) = height.filter(|&height| height < peak) {
        return Some(format!("its offsets need {height} bytes, but {peak} are in use at once"));
    }
    if let (Some(height), Some(bound)) = (height, row.height_bound)
        && height < bound
    {
        return Some(format!("its offsets need {height} bytes, below the proven {bound}"));
    }
    None
}

fn contradict_infeasible(row: &ScheduleRow) -> Option<String> {
    let SchedulerRun { capacity, least_memory, iteration_ns, .. } = row.run;
    if iteration_ns.is_some() {
        return Some("it is infeasible, but has a schedule".to_owned());
    }
    let is_proved = least_memory.is_some_and(|least| least > capacity);
    (!is_proved).then(|| {
        let least = or_none(least_memory);
        format!(
            "it is infeasible, but its least memory ({least}) is not above its capacity of {capacity} bytes"
        )
    })
}
