//! The row that a store keeps, whatever its kind.

use std::collections::BTreeMap;
use std::ops::{Deref, DerefMut};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::provenance::Provenance;
use crate::columns::{Field, table};

table! {
    /// One row: a cell and a repetition, with the run of its kind. Files store the fields of the run alongside the others.
    /// Raw integers: bytes, nanoseconds.
    #[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
    pub struct Row<R> as "" {
        /// The version of the row.
        pub schema: u32,
        /// Digest of everything that defines the cell: contents, who ran in which version with which parameters,
        /// limits, seed.
        pub cell: String,
        /// The repetition, from 0.
        pub repetition: u32,
        /// Who ran on what, and what came of it.
        #[serde(flatten)]
        pub run: R,
        /// When it started, nanoseconds since 1970.
        pub started_ns: u64,
        /// Machine and build.
        pub provenance: Provenance,
    }
}

/// The fields of the run are read as fields of the row, as they are in files: `row.height`.
impl<R> Deref for Row<R> {
    type Target = R;

    fn deref(&self) -> &R {
        &self.run
    }
}

impl<R> DerefMut for Row<R> {
    fn deref_mut(&mut self) -> &mut R {
        &mut self.run
    }
}

impl<R> Row<R> {
    /// The row after a change.
    #[must_use]
    pub fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }

    /// Cell and repetition: among rows with one key the latest counts.
    pub(crate) fn key(&self) -> (&str, u32) {
        (&self.cell, self.repetition)
    }
}

/// The run of a row, by which rows are of a kind. A journal can hold it.
pub(crate) trait RowKind: Serialize + DeserializeOwned + Clone + PartialEq {
    /// The newest schema that this program reads.
    const KNOWN: u32;
    /// The name of the kind in shards and messages.
    const NAME: &'static str;
    /// The file name of the journal.
    const JOURNAL: &'static str;
    /// Whether each line of the journal begins with its checksum.
    const HAS_CHECKSUMS: bool = true;

    /// How much the result is worth beside that of another row with its key: higher is better.
    fn worth(&self) -> u8;

    /// The contradiction that makes the row invalid; `None` if it is plausible.
    fn contradiction(&self) -> Option<&'static str> {
        None
    }
}

/// Which of the rows with one key is the best: by worth, then by start.
pub(crate) fn rank_row<R: RowKind>(row: &Row<R>) -> (u8, u64) {
    (row.run.worth(), row.started_ns)
}

/// A kind whose rows are moved from the journal into shards.
pub(crate) trait ShardedKind: RowKind + Field {
    /// The folder name of the shards.
    const SHARDS: &'static str;
}

/// Groups things by a key; those of a group keep their order.
pub fn group_by<K: Ord, T>(all: impl IntoIterator<Item = T>, key: impl Fn(&T) -> K) -> BTreeMap<K, Vec<T>> {
    let mut groups: BTreeMap<K, Vec<T>> = BTreeMap::new();
    for one in all {
        groups.entry(key(&one)).or_default().push(one);
    }
    groups
}

/// Like [`table!`](crate::columns::table), for runs: `..group,` stands for the fields of a group at this place among the
/// others, so that files keep the order of their columns. The groups are `workload`, `limits` and `ending`.
macro_rules! run_table {
    ($(#[$meta:meta])* pub struct $name:ident { $($fields:tt)* }) => {
        $crate::rows::run_table!(@take [$(#[$meta])* pub struct $name] [] $($fields)*);
    };
    (@take [$($head:tt)*] [$($taken:tt)*]) => {
        $crate::columns::table! { $($head)* as "" { $($taken)* } }
    };
    (@take $head:tt [$($taken:tt)*] ..workload, $($rest:tt)*) => {
        $crate::rows::run_table!(@take $head [$($taken)*
            /// The suite that contains it, or empty.
            pub suite: String,
            /// Workload key: `chainer/alexnet/train/b32`. For several workloads in turn: their common part, or a name.
            pub workload: $crate::rows::WorkloadKey,
        ] $($rest)*);
    };
    (@take $head:tt [$($taken:tt)*] ..limits, $($rest:tt)*) => {
        $crate::rows::run_table!(@take $head [$($taken)*
            /// Seed of the run.
            pub seed: u64,
            /// Wall limit in nanoseconds.
            pub wall_limit_ns: Option<u64>,
            /// Memory limit of the process in bytes.
            pub memory_limit_bytes: Option<u64>,
            /// Work limit in the planner's or scheduler's units; a scheduler's are simulated iterations.
            pub work_limit: Option<u64>,
        ] $($rest)*);
    };
    (@take $head:tt [$($taken:tt)*] ..ending, $($rest:tt)*) => {
        $crate::rows::run_table!(@take $head [$($taken)*
            /// The mechanism that enforced the limits: `cgroup-v2`, `cgroup-v1`, `rlimit`, `none`.
            pub mechanism: String,
            /// How the run ended. With limited memory, `feasible` and `optimal` mean that the bytes in use fit at every
            /// moment; whether a plan of their offsets fits too is recorded separately.
            pub status: $crate::rows::Status,
            /// Why the run stopped, if the child could report it.
            pub stop: Option<planlab_dsa::Stop>,
            /// What went wrong, in one line, or why there is no result; empty if there is one.
            pub reason: String,
            /// Exit code of the child.
            pub exit_code: Option<i32>,
            /// Signal that ended the child.
            pub signal: Option<i32>,
            /// The end of the child's stderr.
            pub stderr_tail: String,
        ] $($rest)*);
    };
    (@take $head:tt [$($taken:tt)*]
        $(#[$meta:meta])* pub $field:ident: $kind:ty $(= $default:expr)?, $($rest:tt)*) => {
        $crate::rows::run_table!(
            @take $head [$($taken)* $(#[$meta])* pub $field: $kind $(= $default)?,] $($rest)*
        );
    };
}

/// An expression for each kind of rows that a store keeps in shards, with the type of its run under a name.
macro_rules! each_kind {
    ($run:ident => $of:expr) => {
        [
            {
                type $run = $crate::rows::PlannerRun;
                $of
            },
            {
                type $run = $crate::rows::ReplayRun;
                $of
            },
            {
                type $run = $crate::rows::SchedulerRun;
                $of
            },
        ]
    };
}

pub(crate) use {each_kind, run_table};
