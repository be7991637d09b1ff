//! The tables of a store as lazy frames.

use std::path::Path;

use polars::prelude::*;

use super::collect::refused;
use super::{replays, rows, scan, schedules};
use crate::StoreError;
use crate::files::frame::to_frame;
use crate::rows::Record;

/// The tables of a store. Opening reads only the keys of the rows; a query reads the rest when it needs it.
#[derive(Clone)]
pub struct Tables {
    pub(crate) rows: LazyFrame,
    pub(super) replays: LazyFrame,
    pub(super) schedules: LazyFrame,
}

impl std::fmt::Debug for Tables {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tables").finish_non_exhaustive()
    }
}

impl Tables {
    /// Opens the tables of the store in a folder; a writer may be active.
    ///
    /// # Errors
    ///
    /// Like [`read_records`](crate::read_records), [`read_rows`](crate::replay::read_rows) and
    /// [`read_schedules`](crate::schedule::read_schedules).
    pub fn open(dir: impl AsRef<Path>) -> Result<Self, StoreError> {
        let dir = dir.as_ref();
        Ok(Self {
            rows: rows::against_any_plan(scan::scan_rows(dir)?),
            replays: replays::replay_frame(dir)?,
            schedules: schedules::frame(dir)?,
        })
    }

    /// Tables of rows in memory.
    ///
    /// # Errors
    ///
    /// Errors of polars; none are known to occur.
    pub fn of_records(records: &[Record]) -> Result<Self, StoreError> {
        let rows = to_frame(records).map_err(refused)?.lazy();
        let rows = rows::against_any_plan(rows);
        Ok(Self { rows, replays: DataFrame::empty().lazy(), schedules: DataFrame::empty().lazy() })
    }
}
