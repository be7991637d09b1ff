//! The height of each planner on each workload, and pairs of heights of two planners. Cells with a given capacity do
//! not count.

use polars::prelude::*;

use super::cells::Cells;
use crate::StoreError;
use crate::columns::table;
use crate::rows::Status;
use crate::tables::{read, rows};

table! {
    /// The height of a planner on a workload.
    #[derive(Clone, Debug, PartialEq, Eq)]
    #[non_exhaustive]
    pub struct Height as "" {
        /// The index of the planner.
        pub planner_number: usize,
        /// The index of the workload.
        pub workload_number: usize,
        /// The lower median over its cells (seeds) with an answer, in bytes; `None` if no cell has one.
        pub height: Option<u64>,
    }
}

table! {
    /// The heights of a planner on the workloads for which a second planner also has a height, in bytes.
    #[derive(Clone, Debug, PartialEq, Eq)]
    #[non_exhaustive]
    pub struct HeightPairs as "" {
        /// The index of the planner.
        pub planner_number: usize,
        /// Its heights, by workload; never 0.
        pub own: Vec<u64>,
        /// The heights of the second planner.
        pub other: Vec<u64>,
    }
}

impl Cells {
    /// The heights of all planners on their workloads, by planner and workload.
    ///
    /// # Errors
    ///
    /// Like [`Cells::rows`], as for all functions below.
    pub fn planner_heights(&self) -> Result<Vec<Height>, StoreError> {
        read(heights_by_workload(self.free()))
    }

    /// Compares every planner with the one of this index, by planner.
    pub fn compare_with(&self, reference: usize) -> Result<Vec<HeightPairs>, StoreError> {
        let is_reference = || col("planner_number").eq(lit(reference as u64));
        let own = heights_by_workload(self.free()).filter(col("height").gt(lit(0_u64)));
        let other = own.clone().filter(is_reference());
        let other = other.select([col("workload_number"), col("height").alias("other")]);
        let by = [col("workload_number")];
        let pairs = own
            .filter(is_reference().not())
            .join(other, by.clone(), by, JoinArgs::new(JoinType::Inner))
            .sort(["planner_number", "workload_number"], SortMultipleOptions::default())
            .group_by_stable([col("planner_number")])
            .agg([col("height").alias("own"), col("other")]);
        read(pairs)
    }
}

/// One row per planner and workload of these cells.
pub(super) fn heights_by_workload(cells: LazyFrame) -> LazyFrame {
    let by = ["planner_number", "workload_number"];
    let answers = col("height").filter(rows::has_status(Status::is_answer)).drop_nulls();
    cells
        .group_by(by.map(col))
        .agg([answers.alias("heights")])
        .with_columns([rows::lower_middle("heights").alias("height")])
        .sort(by, SortMultipleOptions::default())
}
