//! One row of planning results: a cell and a repetition.

use std::collections::BTreeMap;

use planlab_dsa::{Evidence, Scope, Stop};
use serde::{Deserialize, Serialize};

use super::row::{Row, RowKind, ShardedKind, group_by, run_table};
use super::status::Lane;
use crate::columns::numbers;

/// The version of the row; raised when a column changes its meaning.
pub const SCHEMA: u32 = 1;

/// A point of the trajectory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Point {
    /// Nanoseconds since the start of the run.
    pub elapsed_ns: u64,
    /// The incumbent's height in bytes.
    pub height: Option<u64>,
    /// The bound in bytes.
    pub bound: u64,
}

numbers! {
    Point { elapsed_ns, height, bound }
}

/// A row of a planner on an instance. It is the oldest row, and keeps its name.
pub type Record = Row<PlannerRun>;

run_table! {
    /// A planner on an instance.
    #[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
    pub struct PlannerRun {
        /// Whether its times may be ranked.
        pub lane: Lane,
        ..workload,
        /// Digest of the instance.
        pub instance: String,
        /// Number of buffers.
        pub buffers: u64,
        /// Planner key.
        pub planner: String,
        /// Digest of the planner's sources.
        pub planner_version: String,
        /// Parameters as a JSON object.
        pub parameters: String,
        ..limits,
        /// The given capacity in bytes.
        pub target_bytes: Option<u64>,
        ..ending,
        /// Height of the best verified plan in bytes.
        pub height: Option<u64>,
        /// Load in bytes if no buffer takes another's place.
        pub load: u64,
        /// The load that counts, in bytes: without the first steps of buffers that may overwrite another. No plan is lower.
        pub relaxed_load: u64,
        /// The best proven bound on any plan, in bytes.
        pub bound: u64,
        /// The evidence for the bound.
        pub bound_evidence: Evidence,
        /// The plans for which the bound holds: any. Rows of older versions may have a bound on plans without hand-overs.
        pub bound_scope: Scope,
        /// Hand-overs that the plan uses.
        pub hand_overs: u64,
        /// Planning time of each sample in nanoseconds, without verification; after a warm-up if a sample takes less
        /// than a second, otherwise the single run.
        pub samples_ns: Vec<u64>,
        /// The time that an external planner reports for itself, in nanoseconds.
        pub reported_ns: Option<u64> = None,
        /// The number of random legal orders of the graph in which the plan was run; `None` without a graph.
        pub orders_run: Option<u64> = None,
        /// The number of these orders in which two live buffers overlapped.
        pub orders_failed: Option<u64> = None,
        /// The proven minimum of memory over all legal orders of the graph, in bytes: a lower bound on `relaxed_load`,
        /// or on `load` for a planner without hand-overs.
        pub order_bound: Option<u64> = None,
        /// The best proven bound on plans without hand-overs, in bytes, if the instance permits some and the planner uses
        /// none.
        pub bound_without_in_place: Option<u64> = None,
        /// CPU time of the child in nanoseconds.
        pub cpu_ns: Option<u64>,
        /// Units of work done.
        pub work: u64,
        /// The most resident memory of the child in bytes.
        pub peak_rss_bytes: Option<u64>,
        /// Incumbent and bound over time.
        pub trajectory: Vec<Point>,
        /// Digest of the plan; the store keeps the plan under it.
        pub plan: Option<String>,
    }
}

impl RowKind for PlannerRun {
    const KNOWN: u32 = SCHEMA;
    const NAME: &'static str = "records";
    const JOURNAL: &'static str = "journal.jsonl";

    fn worth(&self) -> u8 {
        self.status.row_worth()
    }
}

impl ShardedKind for PlannerRun {
    const SHARDS: &'static str = "shards";
}

impl Record {
    /// `(height - bound) / bound`, if there is a height.
    #[must_use]
    pub fn gap(&self) -> Option<f64> {
        let (height, bound) = (self.height?, self.bound);
        Some(planlab_dsa::gap(planlab_dsa::Bytes::new(height), planlab_dsa::Bytes::new(bound)))
    }

    /// `(height - load) / load`, if there is a height, with the load that counts.
    #[must_use]
    pub fn fragmentation(&self) -> Option<f64> {
        let (height, load) = (self.height?, self.relaxed_load);
        Some(planlab_dsa::fragmentation(planlab_dsa::Bytes::new(height), planlab_dsa::Bytes::new(load)))
    }

    /// The planner with its non-default parameters.
    #[must_use]
    pub fn planner_label(&self) -> String {
        planner_label(&self.planner, &self.parameters)
    }

    /// The number of threads that the planner could use.
    #[must_use]
    pub fn threads(&self) -> u64 {
        threads(&self.parameters)
    }

    /// Whether the wall limit ended the run, so that its time only reflects the limit.
    #[must_use]
    pub fn is_cut(&self) -> bool {
        self.stop == Some(Stop::Deadline)
    }

    /// The median of the samples in nanoseconds (the lower of two middles); `None` without samples.
    #[must_use]
    pub fn median_ns(&self) -> Option<u64> {
        let mut sorted = self.samples_ns.clone();
        sorted.sort_unstable();
        sorted.get(sorted.len().checked_sub(1)? / 2).copied()
    }
}

/// A planner with its non-default parameters.
#[must_use]
pub fn planner_label(planner: &str, parameters: &str) -> String {
    match parameters.trim() {
        "" | "{}" | "null" => planner.to_owned(),
        parameters => format!("{planner} {parameters}"),
    }
}

/// The number of threads that a planner with these parameters could use.
#[must_use]
pub fn threads(parameters: &str) -> u64 {
    let parameters: serde_json::Value = serde_json::from_str(parameters).unwrap_or_default();
    parameters["threads"].as_u64().unwrap_or(1)
}

/// The rows by `key` and repetition; if several builds share a key, only the rows of the build that ran last.
pub fn latest_builds<'r, K: Ord>(
    rows: impl IntoIterator<Item = &'r Record>,
    key: impl Fn(&Record) -> K,
) -> BTreeMap<K, Vec<&'r Record>> {
    let latest = |(key, rows): (K, Vec<&'r Record>)| {
        let last = |rows: &Vec<&Record>| rows.iter().map(|row| row.started_ns).max();
        let builds = group_by(rows, |row| row.cell.as_str());
        let mut rows = builds.into_values().max_by_key(last)?;
        rows.sort_by_key(|row| row.repetition);
        Some((key, rows))
    };
    group_by(rows, |row| key(row)).into_iter().filter_map(latest).collect()
}
