//! Cells: a planner on a workload under one set of parameters, limits and seed. Its first repetition represents it.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use planlab_dsa::{Evidence, Stop};
use polars::prelude::*;

use super::planners::{Planner, Planners};
use crate::StoreError;
use crate::columns::{Field as _, Table, table};
use crate::files::frame::column_names;
use crate::rows::{Lane, Status};
use crate::statistics::{ShiftedMean, shifted_geometric_mean};
use crate::tables::{Tables, collect, read, refused, rows};

/// A shift of 1 % prevents gaps of 0 from dominating a geometric mean.
pub const GAP_SHIFT: f64 = 0.01;
/// The gap that a mean counts for a cell without an answer: that of a plan twice as high as the bound. No answer counts for
/// more, so that nobody gains by having none.
pub const PENALTY_GAP: f64 = 1.0;

/// The shifted mean of these values; the other cells count as failures.
pub(super) fn mean_of(values: &[f64], cells: usize, shift: f64) -> ShiftedMean {
    let missing = std::iter::repeat_n(None, cells.saturating_sub(values.len()));
    shifted_geometric_mean(values.iter().copied().map(Some).chain(missing), shift)
}

table! {
    /// A cell in a report: its first repetition, the best bound, the times of all repetitions. Strings that many cells
    /// share are stored once.
    #[derive(Clone, Debug, PartialEq)]
    #[non_exhaustive]
    pub struct CellRow as "" {
        /// Digest of everything that defines the cell.
        pub cell: Arc<str>,
        /// Workload key.
        pub workload: Arc<str>,
        /// The index of the workload, in the order of the keys.
        pub workload_number: usize,
        /// Digest of the instance.
        pub instance: Arc<str>,
        /// Planner key.
        pub planner: Arc<str>,
        /// The index of the planner in [`Cells::planners`].
        pub planner_number: usize,
        /// Parameters as a JSON object.
        pub parameters: Arc<str>,
        /// The suite that contains it, or empty.
        pub suite: Arc<str>,
        /// The machine's fingerprint.
        pub machine_host: Arc<str>,
        /// What went wrong, in one line; empty if nothing did.
        pub reason: Arc<str>,
        /// The evidence for the row's own bound.
        pub bound_evidence: Evidence,
        /// Digest of the plan.
        pub plan: Option<Arc<str>>,
        /// Why the run stopped.
        pub stop: Option<Stop>,
        /// How the run ended.
        pub status: Status,
        /// Whether its times may be ranked.
        pub lane: Lane,
        /// Seed of the run.
        pub seed: u64,
        /// Wall limit in nanoseconds.
        pub wall_limit_ns: Option<u64>,
        /// Memory limit in bytes.
        pub memory_limit_bytes: Option<u64>,
        /// The given capacity in bytes.
        pub target_bytes: Option<u64>,
        /// Number of buffers.
        pub buffers: u64,
        /// Height of the best verified plan in bytes.
        pub height: Option<u64>,
        /// The load that counts, in bytes: a buffer that may overwrite another does not count at its first step.
        pub load: u64,
        /// Load in bytes if no buffer takes another's place.
        pub load_without_in_place: u64,
        /// The best bound that the run itself proved, in bytes.
        pub bound: u64,
        /// The best bound on any plan that any run proved, in bytes.
        pub best_bound: u64,
        /// `(height - best_bound) / best_bound`; `None` for cells with a given capacity.
        pub gap: Option<f64>,
        /// Hand-overs that the plan uses.
        pub hand_overs: u64,
        /// The number of random legal orders of the graph in which the plan was run.
        pub orders_run: Option<u64>,
        /// The number of these orders in which two live buffers overlapped.
        pub orders_failed: Option<u64>,
        /// The proven minimum of memory over all legal orders of the graph, in bytes.
        pub order_bound: Option<u64>,
        /// Median of the first repetition's samples (the lower of two middles) in nanoseconds.
        pub median_ns: Option<u64>,
        /// Median of all samples that were taken alone, in nanoseconds.
        pub time_ns: Option<f64>,
        /// The most resident memory of the child in bytes.
        pub peak_rss_bytes: Option<u64>,
    }
}

impl CellRow {
    /// `(height - load) / load`, if there is a height.
    #[must_use]
    pub fn fragmentation(&self) -> Option<f64> {
        let (height, load) = (self.height?, self.load);
        Some(planlab_dsa::fragmentation(planlab_dsa::Bytes::new(height), planlab_dsa::Bytes::new(load)))
    }

    /// Whether the wall limit ended the run, so that its time only reflects the limit.
    #[must_use]
    pub fn is_cut(&self) -> bool {
        self.stop == Some(Stop::Deadline)
    }
}

/// The cells of a store, by workload in a given order, then by planner, parameters, seed and time limit. Leaderboards,
/// gaps, profiles and pairs are queries over them.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Cells {
    /// The columns of [`CellRow`], and further columns for queries.
    pub(super) frame: DataFrame,
    /// The planners with their parameters, by label.
    pub planners: Vec<Planner>,
    /// The number of rows, over all repetitions, for each planner (by index) and status.
    pub statuses: BTreeMap<(usize, Status), u64>,
}

impl Tables {
    /// One row per cell, from its first repetition, with values derived from all rows.
    fn cell_frame(&self) -> LazyFrame {
        let is_first = col("repetition").eq(col("repetition").min().over([col("cell")]).expect("a column"));
        let first = rows::with_gap(rows::with_best_bound(self.rows.clone()))
            .filter(is_first)
            .with_columns([rows::lower_middle("samples_ns").alias("median_ns")])
            .with_columns(rows::load_columns());
        let times = self
            .rows
            .clone()
            .filter(col("lane").eq(lit(Lane::Timing.name())).and(rows::has_status(Status::is_answer)))
            .select([col("cell"), col("samples_ns").cast(DataType::List(Box::new(DataType::Float64)))])
            .explode(
                by_name(["samples_ns"], true, false),
                ExplodeOptions { empty_as_null: false, keep_nulls: false },
            )
            .group_by([col("cell")])
            .agg([col("samples_ns").median().alias("time_ns")]);
        let numbers = ["planner_number", "workload_number"];
        let known = column_names::<CellRow>().into_iter().filter(|name| !numbers.contains(&name.as_str()));
        first
            .join(times, [col("cell")], [col("cell")], JoinArgs::new(JoinType::Left))
            .select(known.map(col).collect::<Vec<_>>())
    }

    /// All cells, by workload in the order of `by_key`.
    ///
    /// # Errors
    ///
    /// Errors of the store when its rows are read.
    pub fn cells(&self, by_key: impl Fn(&str, &str) -> Ordering) -> Result<Cells, StoreError> {
        let Planners { planners, statuses, variants } = self.planners()?;
        let first = collect(self.cell_frame())?;
        let workloads = numbered_workloads(&first, by_key)?;
        let variant = ["planner", "parameters", "wall_limit_ns"].map(col);
        // A cell without a time limit belongs to the variant without one.
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

/// The keys of the workloads with their indices in the order of `by_key`.
fn numbered_workloads(
    cells: &DataFrame,
    by_key: impl Fn(&str, &str) -> Ordering,
) -> Result<DataFrame, StoreError> {
    let keys = collect(cells.clone().lazy().group_by([col("workload")]).agg([]))?;
    let mut keys = Table::of_frame(Path::new("results"), keys).text_column("workload")?;
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
    /// If a row lacks a value or has an unknown status. The same holds for all queries over cells.
    pub fn rows(&self) -> Result<Vec<CellRow>, StoreError> {
        read(self.frame.clone().lazy())
    }

    /// The cells without a given capacity. `answer_gap` is the gap, or null if the run failed, even if it left a plan
    /// before it failed. `scored_gap` and `scored_time` are what a mean counts: the gap up to the penalty, which also
    /// stands where an answer lacks, so that no answer counts for more than none; and the time, or the time limit.
    pub(super) fn free(&self) -> LazyFrame {
        let gap = when(rows::has_status(Status::is_answer)).then(col("gap")).otherwise(lit(NULL));
        let lacks_answer = || rows::has_status(Status::lacks_answer);
        let is_capped = lacks_answer().or(col("answer_gap").gt(lit(PENALTY_GAP)).fill_null(lit(false)));
        let limit = when(col("lane").eq(lit(Lane::Timing.name())))
            .then(col("wall_limit_ns").cast(DataType::Float64))
            .otherwise(lit(NULL));
        self.frame
            .clone()
            .lazy()
            .filter(col("target_bytes").is_null())
            .with_columns([gap.alias("answer_gap")])
            .with_columns([
                when(is_capped).then(lit(PENALTY_GAP)).otherwise(col("answer_gap")).alias("scored_gap"),
                when(lacks_answer()).then(limit).otherwise(col("time_ns")).alias("scored_time"),
            ])
    }
}
