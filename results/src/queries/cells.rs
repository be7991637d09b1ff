//! Cells: a planner on a workload under one set of parameters, limits and seed. Its first repetition stands for it.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use planlab_dsa::{Evidence, Stop};
use polars::prelude::*;

use super::planners::{Planner, Planners};
use super::{Tables, collect, read, refused, rows};
use crate::StoreError;
use crate::columns::Table;
use crate::fields::{Field as _, table};
use crate::frame::names;
use crate::record::{Lane, Status};

table! {
    /// What a report knows of a cell: its first repetition, the best bound, the times of all repetitions. Texts that many
    /// cells share are there once.
    #[derive(Clone, Debug, PartialEq)]
    #[non_exhaustive]
    pub struct CellRow as "" {
        /// Digest of what makes the cell.
        pub cell: Arc<str>,
        /// Workload key.
        pub workload: Arc<str>,
        /// The number of the workload, in the order of their keys.
        pub workload_number: usize,
        /// Digest of the instance.
        pub instance: Arc<str>,
        /// Planner key.
        pub planner: Arc<str>,
        /// Where the planner stands in [`Cells::planners`].
        pub planner_number: usize,
        /// Parameters as a JSON object.
        pub parameters: Arc<str>,
        /// The suite that asked for it, or empty.
        pub suite: Arc<str>,
        /// The machine's fingerprint.
        pub machine_host: Arc<str>,
        /// What went wrong, in one line; empty where nothing did.
        pub reason: Arc<str>,
        /// How the row's own bound was had.
        pub bound_evidence: Evidence,
        /// Digest of the plan.
        pub plan: Option<Arc<str>>,
        /// Why the run stopped.
        pub stop: Option<Stop>,
        /// How it ended.
        pub status: Status,
        /// Whether its times may be ranked.
        pub lane: Lane,
        /// Seed of the run's random numbers.
        pub seed: u64,
        /// Wall limit, nanoseconds.
        pub wall_limit_ns: Option<u64>,
        /// Memory limit, bytes.
        pub memory_limit_bytes: Option<u64>,
        /// Capacity that was asked for, bytes.
        pub target_bytes: Option<u64>,
        /// Number of buffers.
        pub buffers: u64,
        /// Height of the best verified plan, bytes.
        pub height: Option<u64>,
        /// Load, bytes.
        pub load: u64,
        /// The best bound that the run itself proved, bytes.
        pub bound: u64,
        /// The best bound that anybody proved for plans like this one, bytes.
        pub best_bound: u64,
        /// `(height - best_bound) / best_bound`; none for cells that were asked for a capacity.
        pub gap: Option<f64>,
        /// Hand-overs that the plan uses.
        pub hand_overs: u64,
        /// Random legal orders of the graph in which the plan was run.
        pub orders_run: Option<u64>,
        /// In how many of them two live buffers overlapped.
        pub orders_failed: Option<u64>,
        /// The least memory that any legal order of the graph needs, as proved, bytes.
        pub order_bound: Option<u64>,
        /// Median of the first repetition's samples (the lower of two middles), nanoseconds.
        pub median_ns: Option<u64>,
        /// Median of all samples that were taken alone, nanoseconds.
        pub time_ns: Option<f64>,
        /// Most resident memory of the child, bytes.
        pub peak_rss_bytes: Option<u64>,
    }
}

impl CellRow {
    /// `(height - load) / load`, where there is a height.
    #[must_use]
    pub fn fragmentation(&self) -> Option<f64> {
        let (height, load) = (self.height?, self.load);
        Some(planlab_dsa::fragmentation(planlab_dsa::Bytes::new(height), planlab_dsa::Bytes::new(load)))
    }

    /// Whether the wall limit ended the run: its time is the limit's.
    #[must_use]
    pub fn is_cut(&self) -> bool {
        self.stop == Some(Stop::Deadline)
    }
}

/// The cells of a store, by workload in a given order, then by planner, parameters, seed and time limit: what
/// leaderboards, gaps, profiles and pairs are queries over.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Cells {
    /// The columns of [`CellRow`], and those that queries need beside.
    pub(super) frame: DataFrame,
    /// The planners with their parameters, by label.
    pub planners: Vec<Planner>,
    /// How many rows, of all repetitions, there are of each planner (its number) and status.
    pub statuses: BTreeMap<(usize, Status), u64>,
}

impl Tables {
    /// A row for each cell, as its first repetition is, with what follows from all rows.
    fn cell_frame(&self) -> LazyFrame {
        let is_first = col("repetition").eq(col("repetition").min().over([col("cell")]).expect("a column"));
        let first = rows::with_gap(rows::with_best_bound(self.rows.clone()))
            .filter(is_first)
            .with_columns([rows::lower_middle("samples_ns").alias("median_ns")]);
        let times = self
            .rows
            .clone()
            .filter(col("lane").eq(lit(Lane::Timing.name())).and(rows::is(Status::is_answer)))
            .select([col("cell"), col("samples_ns").cast(DataType::List(Box::new(DataType::Float64)))])
            .explode(
                by_name(["samples_ns"], true, false),
                ExplodeOptions { empty_as_null: false, keep_nulls: false },
            )
            .group_by([col("cell")])
            .agg([col("samples_ns").median().alias("time_ns")]);
        let numbers = ["planner_number", "workload_number"];
        let known = names::<CellRow>().into_iter().filter(|name| !numbers.contains(&name.as_str()));
        first
            .join(times, [col("cell")], [col("cell")], JoinArgs::new(JoinType::Left))
            .select(known.map(col).collect::<Vec<_>>())
    }

    /// All cells, by workload in the order of `by_key`.
    ///
    /// # Errors
    ///
    /// Whatever the store refuses when its rows are read.
    pub fn cells(&self, by_key: impl Fn(&str, &str) -> Ordering) -> Result<Cells, StoreError> {
        let Planners { planners, statuses, variants } = self.planners()?;
        let first = collect(self.cell_frame())?;
        let workloads = numbered_workloads(&first, by_key)?;
        let variant = ["planner", "parameters", "wall_limit_ns"].map(col);
        // A cell without a time limit is one of the variant without one.
        let of_variant = JoinArgs { nulls_equal: true, ..JoinArgs::new(JoinType::Inner) };
        let order = ["workload_number", "planner", "parameters", "seed", "wall_limit_ns", "cell"];
        let cells = first
            .lazy()
            .join(workloads.lazy(), [col("workload")], [col("workload")], JoinArgs::new(JoinType::Inner))
            .join(variants.lazy(), variant.clone(), variant, of_variant)
            .sort(order, SortMultipleOptions::default())
            .with_row_index("number", None);
        Ok(Cells { frame: collect(cells)?, planners, statuses })
    }
}

/// The keys of the workloads with their numbers in the order of `by_key`.
fn numbered_workloads(
    cells: &DataFrame,
    by_key: impl Fn(&str, &str) -> Ordering,
) -> Result<DataFrame, StoreError> {
    let keys = collect(cells.clone().lazy().group_by([col("workload")]).agg([]))?;
    let mut keys = Table::of_frame(Path::new("results"), keys).text("workload")?;
    keys.sort_by(|a, b| by_key(a, b));
    let mut columns = Vec::new();
    String::write("workload", &keys.iter().collect::<Vec<_>>(), &mut columns);
    let numbers: Vec<usize> = (0..keys.len()).collect();
    usize::write("workload_number", &numbers.iter().collect::<Vec<_>>(), &mut columns);
    DataFrame::new(keys.len(), columns).map_err(refused)
}

impl Cells {
    /// The cells.
    ///
    /// # Errors
    ///
    /// Of a row that lacks a value, or has an unknown status; so of all queries over cells.
    pub fn rows(&self) -> Result<Vec<CellRow>, StoreError> {
        read(self.frame.clone().lazy())
    }

    /// The cells that were asked for the lowest height. `answer_gap` is the gap, or null if the run failed, even if it left a
    /// plan behind before that.
    pub(super) fn free(&self) -> LazyFrame {
        let gap = when(rows::is(Status::is_answer)).then(col("gap")).otherwise(lit(NULL));
        self.frame
            .clone()
            .lazy()
            .filter(col("target_bytes").is_null())
            .with_columns([gap.alias("answer_gap")])
    }
}
