//! Performance profiles of heights. Cells that were asked for a capacity do not count, nor do planners that hand memory
//! over in place.
//!
//! # References
//!
//! 1. E. D. Dolan, J. J. Moré: Benchmarking optimization software with performance profiles. Mathematical
//!    Programming 91 (2002). DOI 10.1007/s101070100263.

use polars::prelude::*;

use super::heights::heights;
use super::{Cells, read};
use crate::StoreError;
use crate::fields::table;
use crate::statistics::count;

table! {
    /// For each factor, the share of the workloads that a planner ran on, on which its height is within that factor of the
    /// lowest that any planner had there.
    #[derive(Clone, Debug, PartialEq)]
    pub struct Profile as "" {
        /// The planner's number.
        pub planner_number: usize,
        /// Height over the lowest height of the workload, ascending; workloads without an answer are left out.
        pub ratios: Vec<f64>,
        /// The number of workloads, answered or not.
        pub total: usize,
    }
}

impl Profile {
    /// The share of workloads with a ratio of at most `factor`.
    #[must_use]
    pub fn at(&self, factor: f64) -> f64 {
        if self.total == 0 {
            return 0.0;
        }
        count(self.ratios.partition_point(|&ratio| ratio <= factor)) / count(self.total)
    }
}

impl Cells {
    /// The profiles of the planners that ran on at least half as many workloads as any, by planner.
    ///
    /// # Errors
    ///
    /// As [`Cells::rows`].
    pub fn profiles(&self) -> Result<Vec<Profile>, StoreError> {
        let real = |bytes: Expr| bytes.cast(DataType::Float64);
        let least = col("height").min().over([col("workload_number")]).expect("a column");
        // Heights of 0 are equal to each other.
        let is_least = col("height").eq(col("least"));
        let ratio = when(is_least).then(lit(1.0)).otherwise(real(col("height")) / real(col("least")));
        let profiles = heights(self.free().filter(col("is_in_place").not()))
            .with_columns([least.alias("least")])
            .with_columns([ratio.alias("ratio")])
            .group_by([col("planner_number")])
            .agg([
                col("ratio").drop_nulls().sort(SortOptions::default()).alias("ratios"),
                len().cast(DataType::UInt64).alias("total"),
            ])
            .filter((col("total") * lit(2_u64)).gt_eq(col("total").max()));
        read(profiles.sort(["planner_number"], SortMultipleOptions::default()))
    }
}
