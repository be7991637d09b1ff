//! Reads the rows of a folder without opening the store for writing; a writer may be active.

use std::path::Path;

use super::folder::require_store;
use crate::StoreError;
use crate::files::{Latest, journal, shards};
use crate::rows::{
    FrameworkRow, FrameworkRun, Record, ReplayRow, Row, RowKind as _, ScheduleRow, ShardedKind,
    against_any_plan,
};

/// The latest row of each cell and repetition. Rows of older versions have the bound on any plan, as new ones do.
///
/// # Errors
///
/// Like [`Store::open`](crate::Store::open), except for the lock. It is also an error if the folder does not exist, or has neither a
/// journal nor shards nor replays nor a manifest: [`StoreError::NoResults`].
pub fn read_records(dir: impl AsRef<Path>) -> Result<Vec<Record>, StoreError> {
    let dir = dir.as_ref();
    require_store(dir)?;
    Ok(against_any_plan(shards::read_latest(dir)?))
}

/// The replays of a folder, only the latest row of each cell and repetition, in the order of their first appearance. An
/// empty list without such files. An incomplete last line is ignored.
///
/// # Errors
///
/// [`StoreError::Io`] if the folder cannot be read, [`StoreError::BadLine`] if a row is damaged,
/// [`StoreError::BadFile`] if a shard is, [`StoreError::Schema`] if a newer program wrote it.
pub fn read_rows(dir: impl AsRef<Path>) -> Result<Vec<ReplayRow>, StoreError> {
    read_sharded(dir.as_ref())
}

/// The schedules of a folder, as [`read_rows`] reads its replays.
///
/// # Errors
///
/// Like [`read_rows`].
pub fn read_schedules(dir: impl AsRef<Path>) -> Result<Vec<ScheduleRow>, StoreError> {
    read_sharded(dir.as_ref())
}

fn read_sharded<R: ShardedKind>(dir: &Path) -> Result<Vec<Row<R>>, StoreError> {
    std::fs::read_dir(dir).map_err(StoreError::from_io("read", dir))?;
    shards::read_latest(dir)
}

/// The framework rows of a folder, one of each cell and repetition, in the order of their first appearance: a row with
/// figures comes before one without, and otherwise the latest counts. An empty list without such a file. An incomplete
/// last line is ignored.
///
/// # Errors
///
/// [`StoreError::Io`] if the file cannot be read, [`StoreError::BadLine`] if a line is not a row,
/// [`StoreError::Schema`] if a newer program wrote it.
pub fn read_frameworks(dir: impl AsRef<Path>) -> Result<Vec<FrameworkRow>, StoreError> {
    let journal = journal::read_journal(&dir.as_ref().join(FrameworkRun::JOURNAL))?;
    Ok(Latest::best_of(journal.rows).into_rows())
}
