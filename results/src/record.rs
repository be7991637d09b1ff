//! One row of planning results: a cell and a repetition.

use std::collections::{BTreeMap, BTreeSet};

use planlab_dsa::{Evidence, Scope, Stop};
use serde::{Deserialize, Serialize};

use crate::fields::table;
use crate::journal::row;
use crate::key::WorkloadKey;

/// The version of the row; raised when a column changes its meaning.
pub const SCHEMA: u32 = 1;

/// How a cell ended; every row has exactly one of these.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Status {
    /// A verified plan whose height equals a proven bound.
    Optimal,
    /// A verified plan.
    Feasible,
    /// A proven bound above the given capacity, or above that of an arena.
    Infeasible,
    /// Neither a plan nor a proof that none exists.
    Unknown,
    /// The planner does not honour a demand of the instance.
    Unsupported,
    /// The time limit was reached without a plan, or the planner did not stop and was killed (its last plan is kept).
    Timeout,
    /// The memory limit was reached without a plan.
    OutOfMemory,
    /// The child panicked or died from a signal that it caused itself.
    Crashed,
    /// The child was killed from outside.
    Killed,
    /// The plan overlaps. Rows from before `invalid-plan` existed also use it for plans that break another rule.
    InvalidOverlap,
    /// The plan breaks another rule of placement: a buffer has no row, moves from its pin, or ends past 2^64 - 1.
    InvalidPlan,
    /// The plan is not aligned.
    Misaligned,
    /// The plan needs more than an arena's capacity.
    OverCapacity,
    /// The bound lies above the height of a verified plan.
    BoundRefuted,
    /// The child's output is not an answer, or contradicts its own plan (a false height).
    BadOutput,
    /// The bench was interrupted.
    Interrupted,
}

impl Status {
    /// All statuses, in the order of reports.
    pub const ALL: [Self; 16] = [
        Self::Optimal,
        Self::Feasible,
        Self::Infeasible,
        Self::Unknown,
        Self::Unsupported,
        Self::Timeout,
        Self::OutOfMemory,
        Self::Crashed,
        Self::Killed,
        Self::InvalidOverlap,
        Self::InvalidPlan,
        Self::Misaligned,
        Self::OverCapacity,
        Self::BoundRefuted,
        Self::BadOutput,
        Self::Interrupted,
    ];

    /// The name in files and on screen.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Optimal => "optimal",
            Self::Feasible => "feasible",
            Self::Infeasible => "infeasible",
            Self::Unknown => "unknown",
            Self::Unsupported => "unsupported",
            Self::Timeout => "timeout",
            Self::OutOfMemory => "out-of-memory",
            Self::Crashed => "crashed",
            Self::Killed => "killed",
            Self::InvalidOverlap => "invalid-overlap",
            Self::InvalidPlan => "invalid-plan",
            Self::Misaligned => "misaligned",
            Self::OverCapacity => "over-capacity",
            Self::BoundRefuted => "bound-refuted",
            Self::BadOutput => "bad-output",
            Self::Interrupted => "interrupted",
        }
    }

    /// Whether the row has an answer: a plan that counts, or a proof that no plan exists.
    #[must_use]
    pub const fn is_answer(self) -> bool {
        matches!(self, Self::Optimal | Self::Feasible | Self::Infeasible)
    }

    /// Whether the planner broke its contract: it crashed, was killed, gave a false result, or wrote nonsense.
    #[must_use]
    pub const fn is_failure(self) -> bool {
        !self.is_answer()
            && !matches!(self, Self::Unknown | Self::Unsupported | Self::Timeout | Self::Interrupted)
    }

    /// Whether the row was to have an answer and has none: it failed, found nothing or ran out of time. A planner that
    /// does not support the instance was not to have one, nor was a run that a user ended.
    #[must_use]
    pub const fn lacks_answer(self) -> bool {
        !self.is_answer() && !matches!(self, Self::Unsupported | Self::Interrupted)
    }

    /// How much a row counts beside another of its cell: an answer of another run never hides a false result.
    pub(crate) const fn worth(self) -> u8 {
        match self {
            status if status.is_lie() => 3,
            Self::Interrupted => 0,
            status if status.is_answer() => 2,
            _ => 1,
        }
    }

    /// Whether a plan or a bound was refuted.
    #[must_use]
    pub const fn is_lie(self) -> bool {
        matches!(
            self,
            Self::InvalidOverlap
                | Self::InvalidPlan
                | Self::Misaligned
                | Self::OverCapacity
                | Self::BoundRefuted
        )
    }
}

/// Whether a row's times may be ranked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Lane {
    /// Heights and gaps; may have run alongside other cells, so its time is shown but never ranked.
    Quality,
    /// The cell ran alone.
    Timing,
}

impl Lane {
    /// The name in files and on screen.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Quality => "quality",
            Self::Timing => "timing",
        }
    }
}

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

table! {
    /// The machine and the build that a row was made on.
    #[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
    pub struct Provenance as "machine_" {
        /// A digest of CPU model, cores, memory and kernel: compare times only if it is equal.
        pub host: String,
        /// CPU model.
        pub cpu: String,
        /// Cores that the process may use.
        pub cores: u32,
        /// Kernel release.
        pub kernel: String,
        /// Frequency governor, or `unknown`.
        pub governor: String,
        /// `on`, `off` or `unknown`.
        pub turbo: String,
        /// One-minute load average when the cell started, in thousandths.
        pub load_average_milli: u64,
        /// Cells that ran at the same time, including this one.
        pub concurrency: u32,
        /// Commit that the binary was built from, or `unknown`.
        pub git_commit: String,
        /// Whether the tree had uncommitted changes.
        pub git_dirty: bool,
        /// Compiler.
        pub rustc: String,
        /// Profile and flags of the build.
        pub flags: String,
    }
}

table! {
    /// One row: a cell and a repetition. Raw integers: bytes, nanoseconds.
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    pub struct Record as "" {
        /// [`SCHEMA`].
        pub schema: u32,
        /// Digest of everything that defines the cell: workload content, planner, version, parameters, limits, seed.
        pub cell: String,
        /// The repetition, from 0.
        pub repetition: u32,
        /// Whether its times may be ranked.
        pub lane: Lane,
        /// The suite that contains it, or empty.
        pub suite: String,
        /// Workload key: `chainer/alexnet/train/b32`.
        pub workload: WorkloadKey,
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
        /// Seed of the run.
        pub seed: u64,
        /// Wall limit in nanoseconds.
        pub wall_limit_ns: Option<u64>,
        /// Memory limit in bytes.
        pub memory_limit_bytes: Option<u64>,
        /// Work limit in the planner's units.
        pub work_limit: Option<u64>,
        /// The given capacity in bytes.
        pub target_bytes: Option<u64>,
        /// The mechanism that enforced the limits: `cgroup-v2`, `cgroup-v1`, `rlimit`, `none`.
        pub mechanism: String,
        /// How the run ended.
        pub status: Status,
        /// Why the run stopped, if the child could report it.
        pub stop: Option<Stop>,
        /// What went wrong, in one line; empty if nothing did.
        pub reason: String,
        /// Exit code of the child.
        pub exit_code: Option<i32>,
        /// Signal that ended the child.
        pub signal: Option<i32>,
        /// The end of the child's stderr.
        pub stderr_tail: String,
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
        /// When the cell started, nanoseconds since 1970.
        pub started_ns: u64,
        /// Machine and build.
        pub provenance: Provenance,
    }
}

row!(Record, SCHEMA, ["records", "journal.jsonl", "shards"], planner, |row| row.status.worth());

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

    /// Returns the row with a bound on any plan. Older versions measured a planner without hand-overs against the bound on plans
    /// without them, even if the instance permits some; such a row states the load instead, and keeps its bound apart.
    fn against_any_plan(&mut self) {
        let bound = std::mem::replace(&mut self.bound, self.relaxed_load);
        self.bound_without_in_place = Some(bound);
        (self.bound_evidence, self.bound_scope) = (Evidence::Load, Scope::Any);
        for point in &mut self.trajectory {
            point.bound = self.relaxed_load;
        }
        let was_capacity = self.target_bytes.is_some_and(|target| self.bound <= target && target < bound);
        match self.status {
            Status::Optimal if self.height > Some(self.bound) => self.status = Status::Feasible,
            Status::Infeasible if was_capacity => self.status = Status::Unknown,
            _ => {}
        }
    }

    /// Whether the row shows that its instance permits hand-overs.
    fn shows_permissions(&self) -> bool {
        self.relaxed_load < self.load || self.hand_overs > 0 || self.bound_without_in_place.is_some()
    }

    fn is_by_search(&self) -> bool {
        SEARCHES.contains(&self.planner.as_str())
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

/// Planners that use hand-overs where an instance permits some. In older rows they bounded any plan there, and plans
/// without hand-overs elsewhere.
pub(crate) const SEARCHES: [&str; 2] = ["exact", "portfolio"];

/// The rows with bounds on any plan. An older bound on plans without hand-overs is one on any plan if the instance
/// permits none.
pub(crate) fn against_any_plan(mut records: Vec<Record>) -> Vec<Record> {
    let is_older = |row: &Record| row.bound_scope == Scope::NoHandOver;
    if !records.iter().any(is_older) {
        return records;
    }
    let mut rows_of: BTreeMap<&str, Vec<&Record>> = BTreeMap::new();
    for row in &records {
        rows_of.entry(&row.instance).or_default().push(row);
    }
    let permitting: BTreeSet<String> =
        rows_of.iter().filter(|(_, rows)| permits(rows)).map(|(&instance, _)| instance.to_owned()).collect();
    for row in &mut records {
        if is_older(row) && permitting.contains(&row.instance) {
            row.against_any_plan();
        }
    }
    records
}

/// Whether an instance with these rows permits hand-overs, as far as its rows show.
fn permits(rows: &[&Record]) -> bool {
    let of_searches = || rows.iter().filter(|row| row.is_by_search());
    let bounds_any = of_searches().any(|row| row.bound_scope == Scope::Any && row.status.is_answer());
    let bounds_plain = of_searches().any(|row| row.bound_scope == Scope::NoHandOver);
    rows.iter().any(|row| row.shows_permissions()) || (bounds_any && !bounds_plain)
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
