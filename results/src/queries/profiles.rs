//! Performance profiles of heights. Cells with a given capacity do not count.
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
    /// For each factor: the share of a planner's workloads on which its height is within that factor of the lowest
    /// height of any planner.
    #[derive(Clone, Debug, PartialEq)]
    pub struct Profile as "" {
        /// The index of the planner.
        pub planner_number: usize,
        /// Height divided by the lowest height of the workload, ascending; workloads without an answer are left out.
        pub ratios: Vec<f64>,
        /// The number of workloads, answered or not.
        pub total: usize,
    }
}

impl Profile {
    /// The share of workloads whose ratio is at most `factor`.
    #[must_use]
    pub fn at(&self, factor: f64) -> f64 {
        if self.total == 0 {
            return 0.0;
        }
        count(self.ratios.partition_point(|&ratio| ratio <= factor)) / count(self.total)
    }
}

impl Cells {
    /// The profiles, by planner, of the planners that ran on at least half as many workloads as the busiest one.
    ///
    /// # Errors
    ///
    /// Like [`Cells::rows`].
    pub fn profiles(&self) -> Result<Vec<Profile>, StoreError> {
        let real = |bytes: Expr| bytes.cast(DataType::Float64);
        let least = col("height").min().over([col("workload_number")]).expect("a column");
        // Heights of 0 have the ratio 1.
        let is_least = col("height").eq(col("least"));
        let ratio = when(is_least).then(lit(1.0)).otherwise(real(col("height")) / real(col("least")));
        let profiles = heights(self.free())
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
