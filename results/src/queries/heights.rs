//! The height of each planner on each workload, and that of planners beside one of them. Cells that were asked for a
//! capacity do not count.

use polars::prelude::*;

use super::{Cells, read, rows};
use crate::StoreError;
use crate::fields::table;
use crate::record::Status;

table! {
    /// The height of a planner on a workload.
    #[derive(Clone, Debug, PartialEq, Eq)]
    #[non_exhaustive]
    pub struct Height as "" {
        /// The planner's number.
        pub planner_number: usize,
        /// The workload's number.
        pub workload_number: usize,
        /// The lower median over its cells (seeds) with an answer, bytes; none where no cell has one.
        pub height: Option<u64>,
    }
}

table! {
    /// The heights of a planner on the workloads that another one has a height for, too; bytes.
    #[derive(Clone, Debug, PartialEq, Eq)]
    #[non_exhaustive]
    pub struct HeightPairs as "" {
        /// The planner's number.
        pub planner_number: usize,
        /// Its heights, by workload; none is 0.
        pub own: Vec<u64>,
        /// Those of the other.
        pub other: Vec<u64>,
    }
}

impl Cells {
    /// The heights of all planners on the workloads that they ran on, by planner and workload.
    ///
    /// # Errors
    ///
    /// As [`Cells::rows`]; so of all that follow.
    pub fn heights(&self) -> Result<Vec<Height>, StoreError> {
        read(heights(self.free()))
    }

    /// Every planner that hands no memory over against the one of this number, by planner.
    pub fn against(&self, reference: usize) -> Result<Vec<HeightPairs>, StoreError> {
        let is_reference = || col("planner_number").eq(lit(reference as u64));
        let own = heights(self.free().filter(col("is_in_place").not())).filter(col("height").gt(lit(0_u64)));
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

/// A row for each planner and workload of these cells.
pub(super) fn heights(cells: LazyFrame) -> LazyFrame {
    let by = ["planner_number", "workload_number"];
    let answers = col("height").filter(rows::is(Status::is_answer)).drop_nulls();
    cells
        .group_by(by.map(col))
        .agg([answers.alias("heights")])
        .with_columns([rows::lower_middle("heights").alias("height")])
        .sort(by, SortMultipleOptions::default())
}
