//! What all rows that a store keeps have in common: a trait, and fields that are declared once.

use std::collections::BTreeMap;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::columns::Field;

/// A row that a journal can hold.
pub(crate) trait Row: Field + Serialize + DeserializeOwned + Clone + PartialEq {
    /// The newest schema that this program reads.
    const KNOWN: u32;
    /// The kind in the shards of such rows.
    #[cfg_attr(not(feature = "parquet"), allow(dead_code, reason = "there are no shards"))]
    const KIND: &'static str;
    /// The file name of the journal.
    const JOURNAL: &'static str;
    /// The folder name of the shards.
    const SHARDS: &'static str;

    fn schema(&self) -> u32;

    /// Cell and repetition: among rows with one key the latest counts.
    fn key(&self) -> (&str, u32);

    /// When it started, in nanoseconds since 1970.
    fn started_ns(&self) -> u64;

    /// How much its result is worth beside that of another row with its key: higher is better.
    fn worth(&self) -> u8;
}

/// Groups things by a key; those of a group keep their order.
pub fn group_by<K: Ord, T>(all: impl IntoIterator<Item = T>, key: impl Fn(&T) -> K) -> BTreeMap<K, Vec<T>> {
    let mut groups: BTreeMap<K, Vec<T>> = BTreeMap::new();
    for one in all {
        groups.entry(key(&one)).or_default().push(one);
    }
    groups
}

/// Implements [`Row`]: the newest schema, kind, journal and shards of such rows, and what a row is worth.
macro_rules! row {
    ($row:ident, $known:ident, [$kind:literal, $journal:literal, $shards:literal], $worth:expr) => {
        impl $crate::rows::Row for $row {
            const KNOWN: u32 = $known;
            const KIND: &'static str = $kind;
            const JOURNAL: &'static str = $journal;
            const SHARDS: &'static str = $shards;

            fn schema(&self) -> u32 {
                self.schema
            }

            fn key(&self) -> (&str, u32) {
                (&self.cell, self.repetition)
            }

            fn started_ns(&self) -> u64 {
                self.started_ns
            }

            fn worth(&self) -> u8 {
                let worth: fn(&Self) -> u8 = $worth;
                worth(self)
            }
        }
    };
}

/// Like [`table!`](crate::columns::table), for rows: `..group,` stands for the fields of a group at this place among
/// the others, so that files keep the order of their columns. The groups are `cell`, `workload`, `limits`, `ending`
/// and `origin`.
macro_rules! row_table {
    ($(#[$meta:meta])* pub struct $name:ident { $($fields:tt)* }) => {
        $crate::rows::row_table!(@take [$(#[$meta])* pub struct $name] [] $($fields)*);
    };
    (@take [$($head:tt)*] [$($taken:tt)*]) => {
        $crate::columns::table! { $($head)* as "" { $($taken)* } }
    };
    (@take $head:tt [$($taken:tt)*] ..cell, $($rest:tt)*) => {
        $crate::rows::row_table!(@take $head [$($taken)*
            /// The version of the row.
            pub schema: u32,
            /// Digest of everything that defines the cell: contents, who ran in which version with which parameters,
            /// limits, seed.
            pub cell: String,
            /// The repetition, from 0.
            pub repetition: u32,
        ] $($rest)*);
    };
    (@take $head:tt [$($taken:tt)*] ..workload, $($rest:tt)*) => {
        $crate::rows::row_table!(@take $head [$($taken)*
            /// The suite that contains it, or empty.
            pub suite: String,
            /// Workload key: `chainer/alexnet/train/b32`. For several workloads in turn: their common part, or a name.
            pub workload: $crate::rows::WorkloadKey,
        ] $($rest)*);
    };
    (@take $head:tt [$($taken:tt)*] ..limits, $($rest:tt)*) => {
        $crate::rows::row_table!(@take $head [$($taken)*
            /// Seed of the run.
            pub seed: u64,
            /// Wall limit in nanoseconds.
            pub wall_limit_ns: Option<u64>,
            /// Memory limit of the process in bytes.
            pub memory_limit_bytes: Option<u64>,
            /// Work limit in the units of who ran; of a scheduler, simulated iterations.
            pub work_limit: Option<u64>,
        ] $($rest)*);
    };
    (@take $head:tt [$($taken:tt)*] ..ending, $($rest:tt)*) => {
        $crate::rows::row_table!(@take $head [$($taken)*
            /// The mechanism that enforced the limits: `cgroup-v2`, `cgroup-v1`, `rlimit`, `none`.
            pub mechanism: String,
            /// How the run ended. With limited memory, `feasible` and `optimal` mean that the bytes in use fit at every
            /// moment; whether a plan of their offsets fits too is said apart.
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
    (@take $head:tt [$($taken:tt)*] ..origin, $($rest:tt)*) => {
        $crate::rows::row_table!(@take $head [$($taken)*
            /// When it started, nanoseconds since 1970.
            pub started_ns: u64,
            /// Machine and build.
            pub provenance: $crate::rows::Provenance,
        ] $($rest)*);
    };
    (@take $head:tt [$($taken:tt)*]
        $(#[$meta:meta])* pub $field:ident: $kind:ty $(= $default:expr)?, $($rest:tt)*) => {
        $crate::rows::row_table!(
            @take $head [$($taken)* $(#[$meta])* pub $field: $kind $(= $default)?,] $($rest)*
        );
    };
}

/// An expression for each kind of rows that a store keeps, with its type under a name.
macro_rules! each_kind {
    ($row:ident => $of:expr) => {
        [
            {
                type $row = $crate::rows::Record;
                $of
            },
            {
                type $row = $crate::rows::ReplayRow;
                $of
            },
            {
                type $row = $crate::rows::ScheduleRow;
                $of
            },
        ]
    };
}

pub(crate) use {each_kind, row, row_table};
