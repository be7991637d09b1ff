//! The crash-safe store of rows, instances and plans.
//!
//! ```text
//! <dir>/lock                          held by the one writer
//! <dir>/journal.jsonl                 rows, appended and flushed one by one
//! <dir>/shards/<n>-<digest>.parquet   rows, compacted
//! <dir>/manifest.json                 the shards that were written
//! <dir>/instances/<digest>.parquet    instances with their labels, each once
//! <dir>/plans/<digest>.parquet        plans, each once
//! <dir>/replays.jsonl                 rows of replays, see `replays.rs`
//! <dir>/replays/<n>-<digest>.parquet  rows of replays, compacted
//! <dir>/schedules.jsonl               rows of schedules; for their documents see `documents.rs`
//! <dir>/schedules/<n>-<digest>.parquet rows of schedules, compacted
//! <dir>/frameworks.jsonl              rows of frameworks, without checksums, because a script writes them
//! ```
//!
//! Files under the folders appear whole or not at all. Compaction writes the shard, then lists it in the manifest, and
//! empties the journal once both are on disk. A crash in between leaves rows in both. Readers count these as one row:
//! among rows of one cell and repetition the latest counts, and the journal is later than the shards.

mod documents;
mod folder;
#[cfg(feature = "parquet")]
mod instances;
mod merge;
mod notice;
mod read;
mod repair;
mod replays;
mod writer;

pub use documents::{Document, MemoryStep, Timeline, TimelineSpan, load_document, load_timeline};
pub use folder::keeps_plans;
#[cfg(feature = "parquet")]
pub(crate) use folder::require_store;
#[cfg(feature = "parquet")]
pub use instances::{load_instance, load_plan};
pub use merge::{Merged, merge_stores};
pub use notice::Notice;
pub use read::{read_frameworks, read_records, read_rows, read_schedules};
pub use repair::{Repair, repair_store};
pub use replays::{ReplayWriter, append_rows};
pub use writer::Store;
