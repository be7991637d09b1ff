//! Gaps by workload, by group of workloads, and by planner. Cells with a given capacity have no gap and do not count.

use polars::prelude::*;

use super::cells::{Cells, GAP_SHIFT, mean_of};
use crate::StoreError;
use crate::columns::table;
use crate::rows::Status;
use crate::statistics::ShiftedMean;
use crate::tables::{read, rows};

table! {
    /// The result of a planner on a workload, from its first cell there.
    #[derive(Clone, Debug, PartialEq)]
    #[non_exhaustive]
    pub struct Gap as "" {
        /// The index of the workload.
        pub workload_number: usize,
        /// The index of the planner.
        pub planner_number: usize,
        /// How the run ended.
        pub status: Status,
        /// Height of the plan in bytes.
        pub height: Option<u64>,
        /// The gap, if there is an answer.
        pub answer_gap: Option<f64>,
    }
}

table! {
    /// The gaps of a planner on a group of workloads.
    #[derive(Clone, Debug, PartialEq)]
    #[non_exhaustive]
    pub struct GroupGaps as "" {
        /// The first two parts of the workloads' keys.
        pub workload_group: String,
        /// The index of the planner.
        pub planner_number: usize,
        /// The number of its cells in the group.
        pub cells: usize,
        /// The number of them with an answer.
        pub answers: usize,
        /// The gaps of the cells in their order; [`PENALTY_GAP`](super::PENALTY_GAP) at most, and where an answer
        /// lacks.
        pub scored_gaps: Vec<f64>,
    }
}

table! {
    /// All gaps of a planner.
    #[derive(Clone, Debug, PartialEq)]
    #[non_exhaustive]
    pub struct PlannerGaps as "" {
        /// The index of the planner.
        pub planner_number: usize,
        /// The number of its cells.
        pub cells: usize,
        /// The workloads of the cells with an answer, in the order of the cells.
        pub workloads: Vec<String>,
        /// Their gaps.
        pub gaps: Vec<f64>,
    }
}

impl GroupGaps {
    /// The geometric mean, shifted by [`GAP_SHIFT`], with penalties; cells that were not to have an answer are its
    /// failures.
    #[must_use]
    pub fn shifted_mean(&self) -> ShiftedMean {
        mean_of(&self.scored_gaps, self.cells, GAP_SHIFT)
    }
}

impl Cells {
    /// The gap of each planner on each of its workloads, by workload.
    ///
    /// # Errors
    ///
    /// Like [`Cells::rows`], as for all functions below.
    pub fn planner_gaps(&self) -> Result<Vec<Gap>, StoreError> {
        let first = ["status", "height", "answer_gap"].map(|name| col(name).first());
        let by = ["workload_number", "planner_number"];
        read(self.free().group_by(by.map(col)).agg(first).sort(by, SortMultipleOptions::default()))
    }

    /// The gaps of each planner on each group of workloads, by group in the order of the workloads.
    pub fn gaps_by_group(&self) -> Result<Vec<GroupGaps>, StoreError> {
        let by = [col("workload_group"), col("planner_number")];
        let first = col("number").min().over([col("workload_group")]).expect("a column").alias("group_from");
        let cells = self.free().with_columns([rows::workload_group()]).with_columns([first]);
        let groups = cells.group_by(by).agg([
            col("group_from").first(),
            len().cast(DataType::UInt64).alias("cells"),
            rows::has_status(Status::is_answer).cast(DataType::UInt64).sum().alias("answers"),
            col("scored_gap").drop_nulls().alias("scored_gaps"),
        ]);
        read(groups.sort(["group_from", "planner_number"], SortMultipleOptions::default()))
    }

    /// The gaps of each planner, by planner.
    pub fn gaps_by_planner(&self) -> Result<Vec<PlannerGaps>, StoreError> {
        let planners = self.free().group_by([col("planner_number")]).agg([
            len().cast(DataType::UInt64).alias("cells"),
            col("workload").filter(col("answer_gap").is_not_null()).alias("workloads"),
            col("answer_gap").drop_nulls().alias("gaps"),
        ]);
        read(planners.sort(["planner_number"], SortMultipleOptions::default()))
    }
}
