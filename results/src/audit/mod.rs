//! Checks that rows agree across planners, across repetitions, and with their own status.
//!
//! A verified plan of one planner below the bound of another refutes that bound; no check of a single planner can show
//! this.

mod frameworks;
mod schedules;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::PathBuf;

use planlab_dsa::{Scope, Stop};

use crate::journal::{Row, each_kind};
use crate::record::{Record, Status};
use crate::replay::ReplayRow;
use crate::{StoreError, files, framework, journal};
use planlab_dsa::performance::End;

pub use frameworks::audit_frameworks;
pub use schedules::audit_schedules;

/// What is wrong with a set of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault {
    /// A claimed bound above the height of a verified plan in the bound's scope.
    RefutedBound,
    /// A row whose status reports a false plan or bound.
    Refuted,
    /// A replay in which live memory was handed out again, or changed without a write.
    CorruptReplay,
    /// A row that contradicts itself.
    Inconsistent,
    /// Rows of one instance that disagree about the instance.
    InstanceMismatch,
    /// A cell without some of the repetitions before its last.
    MissingRepetitions,
    /// A stored plan that contradicts its row.
    FalsePlan,
    /// A bound on the time of an iteration that exceeds that of a valid schedule.
    RefutedTime,
    /// A stored schedule that contradicts its row.
    FalseSchedule,
    /// A lost shard.
    MissingShard,
    /// The last line of a journal is incomplete after a crash: its row is lost.
    TornLine,
    /// There are instances or plans, but no rows: the rows are lost.
    NoRows,
    /// A file that rows refer to and that is missing or damaged.
    MissingFile,
}

/// Something wrong with a set of rows. It is shown as its message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Its kind.
    pub fault: Fault,
    /// What was found, and where.
    pub message: String,
}

impl Finding {
    /// A finding.
    pub fn new(fault: Fault, message: impl Into<String>) -> Self {
        Self { fault, message: message.into() }
    }

    /// A file of a kind (`instance`, `plan`, `problem`, `schedule`, `timeline`) that rows refer to, the first of them of this
    /// workload, and why it cannot be read.
    #[must_use]
    pub fn missing_file(kind: &str, workload: &str, rows: usize, reason: &str) -> Self {
        let rows = if rows == 1 { "1 row needs".to_owned() } else { format!("{rows} rows need") };
        let message = format!("{workload}: {rows} this {kind}, which cannot be read: {reason}");
        Self::new(Fault::MissingFile, message)
    }

    fn refuted(workload: &str, planner: &str, status: Status, reason: &str) -> Self {
        Self::new(Fault::Refuted, format!("{workload}: {planner}: {}: {reason}", status.name()))
    }

    fn inconsistent(workload: &str, planner: &str, cell: &str, reason: &str) -> Self {
        Self::new(Fault::Inconsistent, format!("{workload}: {planner} (cell {cell}): {reason}"))
    }

    /// Whether rows were lost.
    #[must_use]
    pub const fn is_loss_of_rows(&self) -> bool {
        matches!(self.fault, Fault::MissingShard | Fault::NoRows)
    }

    /// Whether a plan or a bound is false; `false` for rows that are missing or disagree.
    #[must_use]
    pub const fn is_refutation(&self) -> bool {
        matches!(
            self.fault,
            Fault::RefutedBound
                | Fault::Refuted
                | Fault::FalsePlan
                | Fault::FalseSchedule
                | Fault::RefutedTime
                | Fault::CorruptReplay
        )
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

pub(crate) fn or_none(value: Option<u64>) -> String {
    value.map_or_else(|| "none".to_owned(), |value| value.to_string())
}

/// All problems in a set of rows, refutations first.
#[must_use]
pub fn audit(records: &[Record]) -> Vec<Finding> {
    let mut findings = Vec::new();
    refuted_bounds(records, &mut findings);
    refuted_capacities(records, &mut findings);
    statuses(records, &mut findings);
    mismatches(records, &mut findings);
    missing_repetitions(records, &mut findings);
    findings.sort_by_key(|finding| !finding.is_refutation());
    findings
}

/// All problems in a set of replays, refutations first.
#[must_use]
pub fn audit_replays(rows: &[ReplayRow]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for row in rows {
        findings.extend(false_replay(row));
    }
    for (cell, rows) in by(rows, |row| row.cell.as_str()) {
        let value = |row: &ReplayRow| format!("{} of {}", row.requests, row.requested_peak);
        disagree(cell, "the requests", rows.iter().map(|row| value(row)), &mut findings);
    }
    missing_repetitions(rows, &mut findings);
    findings.sort_by_key(|finding| !finding.is_refutation());
    findings
}

fn false_replay(row: &ReplayRow) -> Option<Finding> {
    let ReplayRow { workload, contender, device, capacity, .. } = row;
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
    Some(Finding::inconsistent(workload, contender, &row.cell, &reason))
}

/// Finds shards that a store's manifest names but that are missing. For a store without rows, also checks whether it
/// once had some.
///
/// # Errors
///
/// [`StoreError`] if the folder or its manifest cannot be read.
pub fn audit_shards(dir: impl AsRef<std::path::Path>, has_rows: bool) -> Result<Vec<Finding>, StoreError> {
    let dir = dir.as_ref();
    let missing = crate::missing_shards(dir)?.into_iter();
    let lost = |shard: crate::MissingShard| Finding::new(Fault::MissingShard, shard.to_string());
    let mut findings: Vec<Finding> = missing.map(lost).collect();
    let count = |folder: &str| files::list(&dir.join(folder), "parquet").map(|paths| paths.len());
    let (instances, plans) = (count("instances")?, count("plans")?);
    if findings.is_empty() && !has_rows && plans > 0 {
        findings.push(Finding::new(
            Fault::NoRows,
            format!(
                "there are {instances} instances and {plans} plans, but no rows; the rows are lost or were set aside"
            ),
        ));
    }
    Ok(findings)
}

/// Checks whether the last line of each journal is incomplete. A line may also be incomplete because a writer is
/// appending it right now.
///
/// # Errors
///
/// [`StoreError`] if a journal cannot be read.
pub fn audit_ends(dir: impl AsRef<std::path::Path>) -> Result<Vec<Finding>, StoreError> {
    let dir = dir.as_ref();
    let mut torn = each_kind!(R => torn::<R>(dir)?).to_vec();
    torn.push(framework::torn(dir)?);
    let finding = |(path, line, bytes): (PathBuf, u64, u64)| {
        let path = path.display();
        let message =
            format!("{path}:{line}: the last line was cut short after {bytes} bytes, and its row is lost");
        Finding::new(Fault::TornLine, message)
    };
    Ok(torn.into_iter().flatten().map(finding).collect())
}

/// The journal of a kind of rows, its incomplete last line, if it has one, and the bytes left of it.
fn torn<R: Row>(dir: &std::path::Path) -> Result<Option<(PathBuf, u64, u64)>, StoreError> {
    let path = dir.join(R::JOURNAL);
    let torn = journal::read::<R>(&path)?.torn;
    Ok(torn.map(|(line, bytes)| (path, line, bytes)))
}

pub(crate) fn by<'r, R: 'r, K: Ord>(
    rows: impl IntoIterator<Item = &'r R>,
    key: impl Fn(&'r R) -> K,
) -> BTreeMap<K, Vec<&'r R>> {
    let mut groups: BTreeMap<K, Vec<&R>> = BTreeMap::new();
    for row in rows {
        groups.entry(key(row)).or_default().push(row);
    }
    groups
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

fn disagree(subject: &str, field: &str, values: impl Iterator<Item = String>, findings: &mut Vec<Finding>) {
    let values: BTreeSet<String> = values.collect();
    if values.len() > 1 {
        let values = values.into_iter().collect::<Vec<_>>().join(", ");
        let message = format!("{subject}: rows disagree on {field}: {values}");
        findings.push(Finding::new(Fault::InstanceMismatch, message));
    }
}

fn missing_repetitions<R: Row>(rows: &[R], findings: &mut Vec<Finding>) {
    for (cell, rows) in by(rows, |row| row.key().0) {
        let there: BTreeSet<u32> = rows.iter().map(|row| row.key().1).collect();
        let last = there.last().copied().unwrap_or(0);
        let missing: Vec<String> = (0..last).filter(|n| !there.contains(n)).map(|n| n.to_string()).collect();
        if let (false, Some(row)) = (missing.is_empty(), rows.first()) {
            let (workload, planner, missing) = (row.workload(), row.contender_key(), missing.join(", "));
            let message = format!("{workload}: {planner} (cell {cell}): no rows for repetitions {missing}");
            findings.push(Finding::new(Fault::MissingRepetitions, message));
        }
    }
}
