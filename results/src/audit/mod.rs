//! Checks that rows agree across planners, across repetitions, and with their own status.
//!
//! A verified plan of one planner below the bound of another refutes that bound; no check of a single planner can show
//! this.

mod frameworks;
mod schedules;

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use planlab_dsa::{Evidence, Scope, Stop};

use crate::journal::Row;
use crate::record::{Record, Status};
use crate::replay::ReplayRow;
use crate::schedule::ScheduleRow;
use crate::{MissingShard, StoreError, files, framework, journal};
use planlab_dsa::performance::End;

pub use frameworks::audit_frameworks;
pub use schedules::audit_schedules;

/// Something wrong with a set of rows.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Finding {
    /// A claimed bound above the height of a verified plan in the bound's scope.
    RefutedBound {
        /// The workload key of the instance.
        workload: String,
        /// The planner that claims the bound.
        claimant: String,
        /// The bound in bytes.
        bound: u64,
        /// The evidence for the bound.
        evidence: Evidence,
        /// The planner whose plan is lower.
        refuter: String,
        /// The height of that plan in bytes.
        height: u64,
    },
    /// A row whose status reports a false plan or bound.
    Refuted {
        /// The workload.
        workload: String,
        /// The planner.
        planner: String,
        /// The row's status.
        status: Status,
        /// The row's reason.
        reason: String,
    },
    /// A replay in which live memory was handed out again, or changed without a write.
    CorruptReplay {
        /// The workload.
        workload: String,
        /// The contender that handed out the memory.
        contender: String,
        /// The device: `simulated`, `host`, `cuda:0`.
        device: String,
        /// The problem that was found.
        reason: String,
    },
    /// A row that contradicts itself.
    Inconsistent {
        /// The workload.
        workload: String,
        /// The planner.
        planner: String,
        /// The cell.
        cell: String,
        /// The contradiction.
        reason: String,
    },
    /// Rows of one instance that disagree about the instance.
    InstanceMismatch {
        /// Digest of the instance, or the workload's key.
        subject: String,
        /// The field that differs.
        field: &'static str,
        /// The different values.
        values: Vec<String>,
    },
    /// A cell without some of the repetitions before its last.
    MissingRepetitions {
        /// The workload.
        workload: String,
        /// The planner.
        planner: String,
        /// The cell.
        cell: String,
        /// The missing repetitions.
        missing: Vec<u32>,
    },
    /// A stored plan that contradicts its row.
    FalsePlan {
        /// The workload.
        workload: String,
        /// The planner.
        planner: String,
        /// The digest of the plan.
        plan: String,
        /// The contradiction.
        reason: String,
    },
    /// A bound on the time of an iteration that exceeds that of a valid schedule.
    RefutedTime {
        /// Workload, machine and capacity.
        workload: String,
        /// The scheduler that claims the bound.
        claimant: String,
        /// The bound in nanoseconds.
        bound_ns: u64,
        /// The scheduler whose schedule is faster.
        refuter: String,
        /// The time of its iteration in nanoseconds.
        iteration_ns: u64,
    },
    /// A stored schedule that contradicts its row.
    FalseSchedule {
        /// Workload, machine and capacity.
        workload: String,
        /// The scheduler.
        scheduler: String,
        /// The digest of the schedule.
        schedule: String,
        /// The contradiction.
        reason: String,
    },
    /// A lost shard.
    MissingShard(MissingShard),
    /// The last line of a journal is incomplete after a crash: its row is lost.
    TornLine {
        /// The journal.
        path: PathBuf,
        /// The line, from 1.
        line: u64,
        /// The bytes left of the line.
        bytes: u64,
    },
    /// There are instances or plans, but no rows: the rows are lost.
    NoRows {
        /// The number of instances.
        instances: usize,
        /// The number of plans.
        plans: usize,
    },
    /// A file that rows refer to and that is missing or damaged.
    MissingFile {
        /// `instance`, `plan`, `problem`, `schedule` or `timeline`.
        kind: &'static str,
        /// Its digest in the rows.
        digest: String,
        /// The workload of the first row that refers to it.
        workload: String,
        /// The number of rows that refer to it.
        rows: usize,
        /// Why it cannot be read, with its path.
        reason: String,
    },
}

impl Finding {
    /// Whether rows were lost.
    #[must_use]
    pub const fn is_loss_of_rows(&self) -> bool {
        matches!(self, Self::MissingShard(_) | Self::NoRows { .. })
    }

    /// Whether a plan or a bound is false; `false` for rows that are missing or disagree.
    #[must_use]
    pub const fn is_refutation(&self) -> bool {
        matches!(
            self,
            Self::RefutedBound { .. }
                | Self::Refuted { .. }
                | Self::FalsePlan { .. }
                | Self::FalseSchedule { .. }
                | Self::RefutedTime { .. }
                | Self::CorruptReplay { .. }
        )
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::RefutedBound { workload, claimant, bound, evidence, refuter, height } => write!(
                f,
                "{workload}: {claimant} claims that no plan is lower than {bound} bytes ({evidence}), but \
                 {refuter} has one of {height} bytes"
            ),
            Self::Refuted { workload, planner, status, reason } => {
                write!(f, "{workload}: {planner}: {}: {reason}", status.name())
            }
            Self::CorruptReplay { workload, contender, device, reason } => {
                write!(f, "{workload}: {contender} on {device}: {reason}")
            }
            Self::Inconsistent { workload, planner, cell, reason } => {
                write!(f, "{workload}: {planner} (cell {cell}): {reason}")
            }
            Self::InstanceMismatch { subject, field, values } => {
                write!(f, "{subject}: rows disagree on {field}: {}", values.join(", "))
            }
            Self::MissingRepetitions { workload, planner, cell, missing } => {
                write!(f, "{workload}: {planner} (cell {cell}): no rows for repetitions {}", list(missing))
            }
            Self::FalsePlan { workload, planner, plan, reason } => {
                write!(f, "{workload}: {planner}: plan {plan}: {reason}")
            }
            Self::RefutedTime { workload, claimant, bound_ns, refuter, iteration_ns } => write!(
                f,
                "{workload}: {claimant} claims that no iteration takes less than {bound_ns} ns, but one of {refuter} \
                 takes {iteration_ns} ns"
            ),
            Self::FalseSchedule { workload, scheduler, schedule, reason } => {
                write!(f, "{workload}: {scheduler}: schedule {schedule}: {reason}")
            }
            Self::MissingShard(shard) => shard.fmt(f),
            Self::TornLine { path, line, bytes } => {
                let path = path.display();
                write!(
                    f,
                    "{path}:{line}: the last line was cut short after {bytes} bytes, and its row is lost"
                )
            }
            Self::NoRows { instances, plans } => {
                write!(
                    f,
                    "there are {instances} instances and {plans} plans, but no rows; the rows are lost or were set aside"
                )
            }
            Self::MissingFile { kind, workload, rows, reason, .. } => {
                let rows = if *rows == 1 { "1 row needs".to_owned() } else { format!("{rows} rows need") };
                write!(f, "{workload}: {rows} this {kind}, which cannot be read: {reason}")
            }
        }
    }
}

pub(crate) fn or_none(value: Option<u64>) -> String {
    value.map_or_else(|| "none".to_owned(), |value| value.to_string())
}

fn list(numbers: &[u32]) -> String {
    numbers.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

/// All problems in a set of rows, refutations first.
#[must_use]
pub fn audit(records: &[Record]) -> Vec<Finding> {
    let mut findings = Vec::new();
    refuted_bounds(records, &mut findings);
    refuted_capacities(records, &mut findings);
    statuses(records, &mut findings);
    mismatches(records, &mut findings);
    missing_repetitions(records.iter().map(Subject::of_record), &mut findings);
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
    missing_repetitions(rows.iter().map(Subject::of_replay), &mut findings);
    findings.sort_by_key(|finding| !finding.is_refutation());
    findings
}

fn false_replay(row: &ReplayRow) -> Option<Finding> {
    let (workload, contender) = (row.workload.to_string(), row.contender.clone());
    let reason = match row.performance.status {
        End::Corrupt => {
            let (device, reason) = (row.device.clone(), row.performance.reason.clone());
            return Some(Finding::CorruptReplay { workload, contender, device, reason });
        }
        // On other devices the figure comes from a counter, which may be lower than the requests.
        End::Complete if row.device == "simulated" && row.performance.reserved_peak < row.requested_peak => {
            let (served, reserved) = (row.requested_peak, row.performance.reserved_peak);
            format!("it served {served} bytes at once, but reserved {reserved} at most")
        }
        End::Complete => {
            let capacity = row.capacity.filter(|&capacity| capacity < row.performance.reserved_peak)?;
            format!("it reserved {} bytes of a capacity of {capacity}", row.performance.reserved_peak)
        }
        _ => return None,
    };
    Some(Finding::Inconsistent { workload, planner: contender, cell: row.cell.clone(), reason })
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
    let mut findings: Vec<Finding> = missing.map(Finding::MissingShard).collect();
    let count = |folder: &str| files::list(&dir.join(folder), "parquet").map(|paths| paths.len());
    let (instances, plans) = (count("instances")?, count("plans")?);
    if findings.is_empty() && !has_rows && plans > 0 {
        findings.push(Finding::NoRows { instances, plans });
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
    let rows = torn::<Record>(dir)?.into_iter().chain(torn::<ReplayRow>(dir)?);
    let frameworks = framework::torn(dir)?.map(|(path, line, bytes)| Finding::TornLine { path, line, bytes });
    Ok(rows.chain(torn::<ScheduleRow>(dir)?).chain(frameworks).collect())
}

fn torn<R: Row>(dir: &std::path::Path) -> Result<Option<Finding>, StoreError> {
    let path = dir.join(R::JOURNAL);
    let torn = journal::read::<R>(&path)?.torn;
    Ok(torn.map(|(line, bytes)| Finding::TornLine { path, line, bytes }))
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
        let mut seen = std::collections::BTreeSet::new();
        for row in rows.iter().filter(|r| r.status != Status::BoundRefuted) {
            let lowest = if row.bound_scope == Scope::Any { any } else { plain };
            let claims = [(Some(row.bound), lowest), (row.bound_without_in_place, plain)];
            for (bound, lowest) in claims {
                let Some((bound, (height, refuter))) = bound.zip(lowest) else { continue };
                if height < bound && seen.insert((row.planner.as_str(), bound)) {
                    findings.push(Finding::RefutedBound {
                        workload: row.workload.to_string(),
                        claimant: row.planner.clone(),
                        bound,
                        evidence: row.bound_evidence,
                        refuter: refuter.planner.clone(),
                        height,
                    });
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
            findings.push(Finding::Refuted {
                workload: row.workload.to_string(),
                planner: row.planner.clone(),
                status: row.status,
                reason: format!("{}, but {} has a plan of {height} bytes", row.reason, refuter.planner),
            });
        }
    }
}

/// Whether an arena's capacity is out of reach, not the capacity that the run was given.
fn is_by_arena(row: &Record) -> bool {
    row.stop == Some(Stop::Infeasible) && row.target_bytes.is_none_or(|target| row.bound <= target)
}

fn statuses(records: &[Record], findings: &mut Vec<Finding>) {
    for row in records {
        let (workload, planner) = (row.workload.to_string(), row.planner.clone());
        if row.status.is_lie() {
            let (status, reason) = (row.status, row.reason.clone());
            findings.push(Finding::Refuted { workload, planner, status, reason });
        } else if let Some(reason) = contradiction(row) {
            findings.push(Finding::Inconsistent { workload, planner, cell: row.cell.clone(), reason });
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

fn disagree(
    subject: &str,
    field: &'static str,
    values: impl Iterator<Item = String>,
    findings: &mut Vec<Finding>,
) {
    let values: std::collections::BTreeSet<String> = values.collect();
    if values.len() > 1 {
        let values = values.into_iter().collect();
        findings.push(Finding::InstanceMismatch { subject: subject.to_owned(), field, values });
    }
}

/// The subject of a row.
struct Subject<'r> {
    cell: &'r str,
    repetition: u32,
    workload: &'r str,
    planner: &'r str,
}

impl<'r> Subject<'r> {
    fn of_record(row: &'r Record) -> Self {
        let Record { cell, repetition, workload, planner, .. } = row;
        Self { cell, repetition: *repetition, workload, planner }
    }

    fn of_schedule(row: &'r ScheduleRow) -> Self {
        let ScheduleRow { cell, repetition, workload, scheduler, .. } = row;
        Self { cell, repetition: *repetition, workload, planner: scheduler }
    }

    fn of_replay(row: &'r ReplayRow) -> Self {
        let ReplayRow { cell, repetition, workload, contender, .. } = row;
        Self { cell, repetition: *repetition, workload, planner: contender }
    }
}

fn missing_repetitions<'r>(rows: impl Iterator<Item = Subject<'r>>, findings: &mut Vec<Finding>) {
    let rows: Vec<Subject<'_>> = rows.collect();
    for (cell, rows) in by(&rows, |row| row.cell) {
        let last = rows.iter().map(|row| row.repetition).max().unwrap_or(0);
        let missing: Vec<u32> = (0..last).filter(|n| rows.iter().all(|row| row.repetition != *n)).collect();
        if let (false, Some(row)) = (missing.is_empty(), rows.first()) {
            let (workload, planner) = (row.workload.to_owned(), row.planner.to_owned());
            let cell = cell.to_owned();
            findings.push(Finding::MissingRepetitions { workload, planner, cell, missing });
        }
    }
}
