//! Checks kept schedules against their rows by validating each again, from its file, and bounds on the memory of every
//! schedule by computing each again, from its problem.

use std::collections::BTreeMap;
use std::path::Path;

use planlab_graph::{
    MemoryBound, Schedule, ScheduleEvidence, SchedulingProblem, bound_memory, validate_schedule,
};
use planlab_results::audit::{Fault, Finding};
use planlab_results::schedule::{Document, ScheduleRow, SchedulerRun, load_document, load_timeline};
use planlab_results::{StoreError, keeps_plans};

use crate::shell::exit::Failure;
use crate::shell::quantity::nanoseconds_of;

/// All faults of the documents that rows of schedules name. Curated records keep only rows.
///
/// # Errors
///
/// If the store cannot be read for another reason than a missing or damaged document.
pub(crate) fn audit(folder: &Path, rows: &[ScheduleRow]) -> Result<Vec<Finding>, Failure> {
    if !keeps_plans(folder) {
        return Ok(Vec::new());
    }
    let mut problems: BTreeMap<&str, Result<BoundedProblem, String>> = BTreeMap::new();
    let mut findings = Vec::new();
    for row in rows.iter().filter(|row| row.schedule.is_some() || claims_least_memory(row)) {
        let problem = &*problems.entry(&row.problem).or_insert_with(|| read_problem(folder, &row.problem));
        let missing = |kind: &str, reason: &str| Finding::missing_file(kind, &row.workload, 1, reason);
        if let Ok((_, bound)) = problem {
            findings.extend(refute_least_memory(bound, row));
        }
        let Some(digest) = &row.schedule else {
            findings.extend(problem.as_ref().err().map(|reason| missing("problem", reason)));
            continue;
        };
        let text = load_document(folder, Document::Schedule, digest).map_err(|error| error.to_string());
        match (problem, text) {
            (Err(reason), _) => findings.push(missing("problem", reason)),
            (_, Err(reason)) => findings.push(missing("schedule", &reason)),
            (Ok((problem, _)), Ok(text)) => {
                let reason = compare_with_row(problem, &text, row).err();
                findings.extend(reason.map(|reason| false_schedule(row, digest, &reason)));
            }
        }
        if let Err(error) = load_timeline(folder, digest) {
            findings.push(missing("timeline", &error.to_string()));
        }
    }
    Ok(findings)
}

/// A problem, and the memory that every schedule of it needs at least.
type BoundedProblem = (SchedulingProblem, MemoryBound);

/// Whether a row says what passes and sums take at least. A search is not repeated: the rows of other schedulers may refute
/// it.
fn claims_least_memory(row: &ScheduleRow) -> bool {
    row.least_memory.is_some()
        && row.least_memory_evidence.as_deref() != Some(ScheduleEvidence::Search.name())
}

fn refute_least_memory(bound: &MemoryBound, row: &ScheduleRow) -> Option<Finding> {
    let said = row.least_memory.filter(|&said| claims_least_memory(row) && said > bound.bytes.get())?;
    let bytes = bound.bytes;
    let message = format!(
        "{}: every schedule is said to need {said} bytes, but passes and sums need only {bytes}",
        describe_row(row)
    );
    Some(Finding::new(Fault::RefutedMemory, message))
}

fn describe_row(row: &ScheduleRow) -> String {
    let SchedulerRun { workload, machine, capacity, scheduler, .. } = &row.run;
    format!("{workload} on {machine} with {capacity} bytes: {scheduler}")
}

fn false_schedule(row: &ScheduleRow, digest: &str, reason: &str) -> Finding {
    Finding::new(Fault::FalseSchedule, format!("{}: schedule {digest}: {reason}", describe_row(row)))
}

fn read_problem(folder: &Path, digest: &str) -> Result<BoundedProblem, String> {
    let text =
        load_document(folder, Document::Problem, digest).map_err(|error: StoreError| error.to_string())?;
    let problem = SchedulingProblem::read_jsonl("problem", &text, None).map_err(|error| error.to_string())?;
    let bound = bound_memory(&problem);
    Ok((problem, bound))
}

/// Compares a schedule with its row; the error says how they differ.
fn compare_with_row(problem: &SchedulingProblem, text: &str, row: &ScheduleRow) -> Result<(), String> {
    let schedule = Schedule::read_jsonl("schedule", text).map_err(|error| error.to_string())?;
    let audited = validate_schedule(problem, &schedule, None).map_err(|violation| violation.to_string())?;
    let found = nanoseconds_of(audited.seconds);
    if let Some(said) = row.iteration_ns.filter(|said| said.abs_diff(found) > 1) {
        return Err(format!("an iteration takes {found} ns, its row says {said}"));
    }
    let height = audited.height.get();
    match row.height {
        Some(said) if said != height => Err(format!("its offsets need {height} bytes, its row says {said}")),
        _ => Ok(()),
    }
}
