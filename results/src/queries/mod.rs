//! Queries over a store: its rows as lazy frames, and the tables of a report as queries over them.
//!
//! SQL sees the tables of [`Tables`]; [`COLUMNS`] gives the meaning of each column. Each other module is one table or
//! check.

mod cells;
mod columns;
mod findings;
mod gaps;
mod growth;
mod heights;
mod leaderboard;
mod listing;
mod planners;
mod replays;
mod rows;
mod scan;
mod schedules;
mod sql;
mod summary;

use std::path::Path;

use polars::prelude::*;

use crate::columns::Table;
use crate::fields::Field;
use crate::{StoreError, columns as files};

pub use cells::{CellRow, Cells};
pub use columns::{COLUMNS, ColumnDoc};
pub use gaps::{Gap, GroupGaps, PlannerGaps};
pub use heights::{Height, HeightPairs};
pub use leaderboard::{Board, GAP_SHIFT, Leader, Leaders, PENALTY_GAP};
pub use listing::{ListedRow, Listing};
pub use planners::{Planner, Variant};
pub use sql::{Answer, Cell, STACK};
pub use summary::{Failure, Limits};

/// The tables of a store. Opening reads only the keys of the rows; a query reads the rest when it needs it.
#[derive(Clone)]
pub struct Tables {
    rows: LazyFrame,
    replays: LazyFrame,
    schedules: LazyFrame,
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
            rows: rows::against_any_plan(scan::rows(dir)?),
            replays: replays::frame(dir)?,
            schedules: schedules::frame(dir)?,
        })
    }
}

/// The rows of a query.
fn collect(query: LazyFrame) -> Result<DataFrame, StoreError> {
    // polars panics on some invalid queries.
    let rows = files::caught(std::panic::AssertUnwindSafe(|| query.collect()));
    match rows {
        Ok(rows) => rows.map_err(refused),
        Err(panic) => Err(StoreError::Query { reason: panic_text(panic.as_ref()) }),
    }
}

/// The columns of a query.
fn small(query: LazyFrame) -> Result<Table, StoreError> {
    Ok(Table::of_frame(Path::new("results"), collect(query)?))
}

/// The rows of a query as values.
fn read<T: Field>(query: LazyFrame) -> Result<Vec<T>, StoreError> {
    T::read(&small(query)?, "")
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no reason given");
    format!("polars cannot answer this: {text}")
}

/// Converts an error of polars; an error of the store inside it is returned as such.
fn refused(error: PolarsError) -> StoreError {
    match error {
        PolarsError::Context { error, .. } => refused(*error),
        PolarsError::IO { error, msg } => {
            let reason = msg.map_or_else(|| error.to_string(), |msg| msg.to_string());
            let below = std::sync::Arc::try_unwrap(error).ok().and_then(std::io::Error::into_inner);
            let store = below.and_then(|below| below.downcast::<StoreError>().ok());
            store.map_or(StoreError::Query { reason }, |store| *store)
        }
        error => StoreError::Query { reason: error.to_string() },
    }
}
