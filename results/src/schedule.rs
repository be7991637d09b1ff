//! One row of a scheduler's result: the training of a net on a machine with limited memory.
//!
//! Rows are in the store's `schedules.jsonl`, or compacted in `schedules/<n>-<digest>.parquet`. The store keeps the
//! problems and schedules that they name, and the timelines for reports, as documents:
//!
//! ```text
//! <dir>/problems/<digest>.jsonl   training nets with machine and capacity
//! <dir>/events/<digest>.jsonl     schedules
//! <dir>/timelines/<digest>.json   when each event of a schedule runs, see [`Timeline`]
//! ```

use std::path::Path;

use planlab_dsa::{Digest, Evidence, Stop};
use serde::{Deserialize, Serialize};

use crate::fields::table;
use crate::format::real;
use crate::journal::row;
use crate::key::WorkloadKey;
use crate::record::{Provenance, Status};
use crate::{StoreError, files, shards};

/// The version of the row; raised when a column changes its meaning.
pub const SCHEDULE_SCHEMA: u32 = 1;

/// A point of a scheduler's trajectory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Improvement {
    /// Nanoseconds since the start of the run.
    pub elapsed_ns: u64,
    /// Simulated iterations until then.
    pub work: u64,
    /// Time of an iteration with the best schedule, in nanoseconds.
    pub iteration_ns: u64,
}

/// The times of a schedule if operations deviate from their assumed times: each takes up to `percent` more or less,
/// uniformly at random.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Disturbance {
    /// The largest deviation in percent.
    pub percent: u64,
    /// The number of draws.
    pub draws: u64,
    /// Median time of an iteration over the draws, in nanoseconds.
    pub median_ns: u64,
    /// Time of the slowest iteration in nanoseconds.
    pub worst_ns: u64,
    /// Median time of the passes alone with the same draws, in nanoseconds: a lower bound for every schedule.
    pub compute_ns: u64,
}

table! {
    /// One row: a scheduler on a problem, and a repetition. Raw integers: bytes, nanoseconds.
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    pub struct ScheduleRow as "" {
        /// [`SCHEDULE_SCHEMA`].
        pub schema: u32,
        /// Digest of everything that defines the cell: problem, scheduler, planner, version, limits, seed.
        pub cell: String,
        /// The repetition, from 0.
        pub repetition: u32,
        /// The suite that contains it, or empty.
        pub suite: String,
        /// Workload key: `ideal/resnet50/train/b512`.
        pub workload: WorkloadKey,
        /// Digest of the problem: the store keeps it as `problems/<digest>.jsonl`.
        pub problem: String,
        /// Images or sequences per iteration.
        pub batch: u64,
        /// The number of functions in the net.
        pub functions: u64,
        /// The number of feature maps that a backward pass reads: each is kept, swapped or recomputed.
        pub maps: u64,
        /// The machine's key.
        pub machine: String,
        /// Digest of the machine without its memory: different machine files may share one key.
        pub rates_digest: Option<String> = None,
        /// The source of the passes' times: `roofline` or `given`.
        pub times: Option<String> = None,
        /// Bytes per second from the device to the host.
        pub copy_out: f64,
        /// Bytes per second from the host to the device.
        pub copy_in: f64,
        /// Memory available to the schedule in bytes, base included.
        pub capacity: u64,
        /// Bytes that are always in use: parameters and workspace.
        pub base: u64,
        /// Time of an iteration without waiting in nanoseconds: every pass once.
        pub compute_ns: u64,
        /// Scheduler key.
        pub scheduler: String,
        /// Digest of the scheduler's sources.
        pub scheduler_version: String,
        /// Seed of the run.
        pub seed: u64,
        /// Wall limit in nanoseconds.
        pub wall_limit_ns: Option<u64>,
        /// Memory limit of the process in bytes.
        pub memory_limit_bytes: Option<u64>,
        /// Work limit in simulated iterations.
        pub work_limit: Option<u64>,
        /// The mechanism that enforced the limits.
        pub mechanism: String,
        /// How the run ended. `feasible` and `optimal` mean that the bytes in use fit at every moment;
        /// [`fits`](Self::fits) says whether a plan of their offsets fits too.
        pub status: Status,
        /// Why the run stopped, if the child could report it.
        pub stop: Option<Stop>,
        /// What went wrong, or why there is no schedule; empty if there is one.
        pub reason: String,
        /// Exit code of the child.
        pub exit_code: Option<i32>,
        /// Signal that ended the child.
        pub signal: Option<i32>,
        /// The end of the child's stderr.
        pub stderr_tail: String,
        /// Time of an iteration with the best valid schedule, in nanoseconds.
        pub iteration_ns: Option<u64>,
        /// A proven lower bound on the time of schedules in `bound_scope`, in nanoseconds.
        pub bound_ns: u64,
        /// The evidence for the bound: `compute` or `lp`.
        pub bound_evidence: String,
        /// The schedules for which the bound holds: `any`. Older versions had bounds on `classes`, those that keep, swap
        /// or recompute each map.
        pub bound_scope: String,
        /// Feature maps that stay on the device.
        pub kept: Option<u64>,
        /// Feature maps that are copied to the host and back.
        pub swapped: Option<u64>,
        /// Feature maps that are dropped and computed again.
        pub recomputed: Option<u64>,
        /// Bytes that are copied to the host.
        pub copied_out: Option<u64>,
        /// Time spent recomputing functions in nanoseconds.
        pub recompute_ns: Option<u64>,
        /// The most bytes in use at once, base included.
        pub live_peak: Option<u64>,
        /// Memory in bytes for the offsets of an online best fit, base included.
        pub best_fit_height: Option<u64>,
        /// Memory in bytes for the best offsets, base included.
        pub height: Option<u64>,
        /// A proven bound on `height` in bytes.
        pub height_bound: Option<u64>,
        /// The evidence for that bound.
        pub height_evidence: Evidence,
        /// The planner that placed the buffers.
        pub planner: String,
        /// The wall limit of its run in nanoseconds.
        pub planner_wall_ns: Option<u64>,
        /// How the planner ended, `feasible` for example; empty if no planner was run. Without a plan from the planner,
        /// the height is that of the online best fit.
        #[serde(default)]
        pub planner_status: String,
        /// The planner's reason, if any.
        #[serde(default)]
        pub planner_reason: String,
        /// The schedule's times under deviations.
        pub disturbed: Vec<Disturbance>,
        /// Time of the run in nanoseconds, simulations and validations included.
        pub elapsed_ns: Option<u64>,
        /// CPU time of the child in nanoseconds.
        pub cpu_ns: Option<u64>,
        /// The most resident memory of the child in bytes.
        pub peak_rss_bytes: Option<u64>,
        /// The number of simulated iterations.
        pub work: u64,
        /// The best schedule over time.
        pub trajectory: Vec<Improvement>,
        /// Digest of the placement instance of the schedule's buffers.
        pub instance: Option<String>,
        /// Digest of the plan of their offsets.
        pub plan: Option<String>,
        /// Digest of the schedule: the store keeps it as `events/<digest>.jsonl`.
        pub schedule: Option<String>,
        /// Start time in nanoseconds since 1970.
        pub started_ns: u64,
        /// Machine and build.
        pub provenance: Provenance,
    }
}

impl ScheduleRow {
    /// Whether the buffers fit with their offsets; `None` without a schedule, or without a plan for it.
    #[must_use]
    pub fn fits(&self) -> Option<bool> {
        Some(self.height? <= self.capacity)
    }

    /// Images or sequences per second; `None` without a schedule.
    #[must_use]
    pub fn images_per_second(&self) -> Option<f64> {
        self.iteration_ns.map(|ns| per_second(self.batch, ns))
    }

    /// Images per second without any waiting.
    #[must_use]
    pub fn images_per_second_at_most(&self) -> f64 {
        per_second(self.batch, self.compute_ns)
    }

    /// (iteration - bound) / bound, and 0 if the two differ by rounding alone.
    #[must_use]
    pub fn gap(&self) -> Option<f64> {
        let above = self.iteration_ns?.saturating_sub(self.bound_ns);
        // Both are rounded to nanoseconds.
        let gap = if above > 1 { real(above) / real(self.bound_ns) } else { 0.0 };
        (self.bound_ns > 0).then_some(if gap > ROUNDING { gap } else { 0.0 })
    }

    /// The slowdown compared with an iteration without waiting: 1 - speed / highest speed.
    #[must_use]
    pub fn loss(&self) -> Option<f64> {
        let iteration = real(self.iteration_ns?);
        (iteration > 0.0).then(|| 1.0 - real(self.compute_ns) / iteration)
    }
}

fn per_second(batch: u64, ns: u64) -> f64 {
    if ns == 0 { 0.0 } else { real(batch) * 1e9 / real(ns) }
}

/// The relative difference of two times below which they count as equal.
const ROUNDING: f64 = 1e-9;

row!(ScheduleRow, SCHEDULE_SCHEMA, ["schedules", "schedules.jsonl", "schedules"], scheduler, |row| row
    .status
    .worth());

/// The schedules of a folder, only the latest row of each cell and repetition, in the order of their first appearance.
/// An empty list without such files. An incomplete last line is ignored.
///
/// # Errors
///
/// [`StoreError::Io`] if the folder cannot be read, [`StoreError::BadLine`] if a row is damaged,
/// [`StoreError::BadFile`] if a shard is, [`StoreError::Schema`] if a newer program wrote it.
pub fn read_schedules(dir: impl AsRef<Path>) -> Result<Vec<ScheduleRow>, StoreError> {
    let dir = dir.as_ref();
    std::fs::read_dir(dir).map_err(StoreError::io("read", dir))?;
    shards::read_latest(dir)
}

/// Kinds of documents that the store keeps for schedules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Document {
    /// A training net with machine and capacity.
    Problem,
    /// A schedule with offsets.
    Schedule,
    /// The data that a report draws for a schedule, under the schedule's digest.
    Timeline,
}

impl Document {
    /// All kinds.
    pub const ALL: [Self; 3] = [Self::Problem, Self::Schedule, Self::Timeline];

    pub(crate) const fn folder(self) -> &'static str {
        match self {
            Self::Problem => "problems",
            Self::Schedule => "events",
            Self::Timeline => "timelines",
        }
    }

    pub(crate) const fn extension(self) -> &'static str {
        match self {
            Self::Problem | Self::Schedule => "jsonl",
            Self::Timeline => "json",
        }
    }

    fn path(self, dir: &Path, digest: &str) -> std::path::PathBuf {
        dir.join(self.folder()).join(format!("{digest}.{}", self.extension()))
    }
}

/// Stores a problem or a schedule under the digest of its text; returns the digest.
///
/// # Errors
///
/// [`StoreError::Io`].
pub(crate) fn put(dir: &Path, document: Document, text: &str) -> Result<String, StoreError> {
    let digest = Digest::of_bytes(text.as_bytes()).to_string();
    put_as(dir, document, &digest, text)?;
    Ok(digest)
}

/// Stores a document under a digest, unless it exists already.
pub(crate) fn put_as(dir: &Path, document: Document, digest: &str, text: &str) -> Result<(), StoreError> {
    let path = document.path(dir, digest);
    if path.exists() {
        return Ok(());
    }
    files::create_folder(&dir.join(document.folder()))?;
    files::write_whole(&path, text.as_bytes())
}

/// The text of a document that a row names.
///
/// # Errors
///
/// [`StoreError::Io`] if it is missing, [`StoreError::BadFile`] if it is not text, or differs from what was stored.
pub fn load_document(dir: impl AsRef<Path>, document: Document, digest: &str) -> Result<String, StoreError> {
    let path = document.path(dir.as_ref(), digest);
    let text = std::fs::read(&path).map_err(StoreError::io("read", &path))?;
    if document != Document::Timeline && Digest::of_bytes(&text).to_string() != digest {
        let reason = "it is damaged: its content has another digest than its name says";
        return Err(StoreError::bad_file(&path, &reason));
    }
    String::from_utf8(text).map_err(|error| StoreError::bad_file(&path, &error))
}

/// The times of a schedule's events, and its memory over time, for a report to draw.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Timeline {
    /// All events, by engine in the order `compute`, `out`, `in`, and in the engine's order.
    pub spans: Vec<TimelineSpan>,
    /// Bytes in use, base included, from each moment on; ascending, from 0.
    pub memory: Vec<MemoryStep>,
    /// The available memory in bytes.
    pub capacity: u64,
    /// Nanoseconds from the start to the last completion.
    pub iteration_ns: u64,
}

/// An event of a timeline.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TimelineSpan {
    /// `compute`, `out` or `in`.
    pub engine: String,
    /// `forward`, `recompute`, `backward`, `accumulate`, `copy-out` or `copy-in`.
    pub task: String,
    /// The name of the function or feature map.
    pub name: String,
    /// Bytes copied or written.
    pub bytes: u64,
    /// Nanoseconds from the start of the iteration to the start of the event.
    pub start_ns: u64,
    /// Nanoseconds to its completion.
    pub end_ns: u64,
}

/// One step of a timeline's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryStep {
    /// Nanoseconds from the start of the iteration.
    pub at_ns: u64,
    /// Bytes in use from then on.
    pub bytes: u64,
}

/// The timeline of a schedule.
///
/// # Errors
///
/// Like [`load_document`]; [`StoreError::BadFile`] if it is not a timeline.
pub fn load_timeline(dir: impl AsRef<Path>, schedule: &str) -> Result<Timeline, StoreError> {
    let dir = dir.as_ref();
    let text = load_document(dir, Document::Timeline, schedule)?;
    let bad = |error: serde_json::Error| {
        StoreError::bad_file(&Document::Timeline.path(dir, schedule), &format!("not a timeline: {error}"))
    };
    serde_json::from_str(&text).map_err(bad)
}
