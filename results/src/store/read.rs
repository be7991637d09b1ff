//! Reads the rows of a folder without opening the store for writing; a writer may be active.

use std::path::Path;

use super::folder::require_store;
use crate::StoreError;
use crate::files::shards;
use crate::rows::{Record, ReplayRow, ScheduleRow, against_any_plan};

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
    let dir = dir.as_ref();
    std::fs::read_dir(dir).map_err(StoreError::from_io("read", dir))?;
    shards::read_latest(dir)
}

/// The schedules of a folder, as [`read_rows`] reads its replays.
///
/// # Errors
///
/// Like [`read_rows`].
pub fn read_schedules(dir: impl AsRef<Path>) -> Result<Vec<ScheduleRow>, StoreError> {
    let dir = dir.as_ref();
    std::fs::read_dir(dir).map_err(StoreError::from_io("read", dir))?;
    shards::read_latest(dir)
}
