//! Lists all rows in the order of their cells.

use std::sync::Arc;

use planlab_dsa::Evidence;
use polars::prelude::*;

use super::cells::Cells;
use crate::StoreError;
use crate::columns::table;
use crate::files::frame::from_frame;
use crate::rows::{Lane, Record, Status};
use crate::tables::{Tables, collect, columns_of, read, refused, rows};

table! {
    /// The values that differ between the rows of a cell.
    #[derive(Clone, Debug, PartialEq)]
    #[non_exhaustive]
    pub struct ListedRow as "" {
        /// The index of its cell.
        pub number: u32,
        /// The repetition, from 0.
        pub repetition: u32,
        /// How the run ended.
        pub status: Status,
        /// Whether its times may be ranked.
        pub lane: Lane,
        /// Height of the best verified plan in bytes.
        pub height: Option<u64>,
        /// Median of the samples (the lower of two middles) in nanoseconds.
        pub median_ns: Option<u64>,
        /// The most resident memory of the child in bytes.
        pub peak_rss_bytes: Option<u64>,
        /// Hand-overs that the plan uses.
        pub hand_overs: u64,
        /// Units of work done.
        pub work: u64,
        /// Exit code of the child.
        pub exit_code: Option<i32>,
        /// Signal that ended the child.
        pub signal: Option<i32>,
        /// The evidence for the row's bound.
        pub bound_evidence: Evidence,
        /// What went wrong, in one line; empty if nothing did.
        pub reason: Arc<str>,
        /// Digest of the plan.
        pub plan: Option<Arc<str>>,
    }
}

/// All rows, by cell and repetition.
#[derive(Debug)]
pub struct Listing(DataFrame);

impl Tables {
    /// All rows, in the order of their cells.
    ///
    /// # Errors
    ///
    /// Errors of the store when its rows are read.
    pub fn list_rows(&self, cells: &Cells) -> Result<Listing, StoreError> {
        let numbers = cells.frame.clone().lazy().select([col("cell"), col("number")]);
        let listing = self
            .rows
            .clone()
            .with_columns([rows::lower_middle("samples_ns").alias("median_ns")])
            .join(numbers, [col("cell")], [col("cell")], JoinArgs::new(JoinType::Inner))
            .select(columns_of::<ListedRow>())
            .sort(["number", "repetition"], SortMultipleOptions::default());
        Ok(Listing(collect(listing)?))
    }

    /// The first repetition of these cells.
    ///
    /// # Errors
    ///
    /// Like [`Tables::list_rows`].
    pub fn first_records(&self, cells: &[&str]) -> Result<Vec<Record>, StoreError> {
        if cells.is_empty() {
            return Ok(Vec::new());
        }
        let cells = Series::new("cell".into(), cells).implode().map_err(refused)?;
        let is_one = col("cell").is_in(lit(cells.into_series()), false);
        let mut records = from_frame(collect(self.rows.clone().filter(is_one))?)?;
        records.sort_by(|a, b| (&a.cell, a.repetition).cmp(&(&b.cell, b.repetition)));
        records.dedup_by(|later, first| later.cell == first.cell);
        Ok(records)
    }
}

impl Listing {
    /// The number of rows.
    #[must_use]
    pub fn row_count(&self) -> usize {
        self.0.height()
    }

    /// `count` rows, starting at index `from`.
    ///
    /// # Errors
    ///
    /// [`StoreError::BadFile`] if a row has an unknown status or lane.
    pub fn rows(&self, from: usize, count: usize) -> Result<Vec<ListedRow>, StoreError> {
        let rows = self.0.slice(i64::try_from(from).unwrap_or(i64::MAX), count);
        read(rows.lazy())
    }
}
