//! What an audit finds.

use std::fmt;

use crate::rows::Status;

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
    /// A bound on the memory of every schedule that exceeds what a valid schedule takes, or what the net proves.
    RefutedMemory,
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

    pub(super) fn from_refuted(workload: &str, planner: &str, status: Status, reason: &str) -> Self {
        Self::new(Fault::Refuted, format!("{workload}: {planner}: {}: {reason}", status.name()))
    }

    pub(super) fn from_inconsistent(workload: &str, planner: &str, cell: &str, reason: &str) -> Self {
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
                | Fault::RefutedMemory
                | Fault::CorruptReplay
        )
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}
