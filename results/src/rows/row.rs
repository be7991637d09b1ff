//! What all rows that a store keeps have in common.

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

    /// The schema of this row.
    fn schema(&self) -> u32;

    /// Cell and repetition: among rows with one key the latest counts.
    fn key(&self) -> (&str, u32);

    /// The workload's key.
    fn workload(&self) -> &str;

    /// The planner, the scheduler or the contender.
    fn contender_key(&self) -> &str;

    /// When it started, in nanoseconds since 1970.
    fn started_ns(&self) -> u64;

    /// How much its result is worth beside that of another row with its key: higher is better.
    fn worth(&self) -> u8;
}

/// Implements [`Row`]: the newest schema, kind, journal and shards of such rows, and who made one.
macro_rules! row {
    ($row:ident, $known:ident, [$kind:literal, $journal:literal, $shards:literal], $planner:ident, $worth:expr) => {
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

            fn workload(&self) -> &str {
                &self.workload
            }

            fn contender_key(&self) -> &str {
                &self.$planner
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
pub(crate) use row;
