//! One row of what a scheduler came to: a net in training on a machine, in so much memory.
//!
//! Rows stand in the store's `schedules.jsonl`, and compacted in `schedules/<n>-<digest>.parquet`. The problems and
//! schedules that they name, and the timelines that a report draws, are documents of the store:
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
use crate::journal::Row;
use crate::key::WorkloadKey;
use crate::record::{Provenance, Status};
use crate::{StoreError, files, shards};

/// The version of the row; raised when a column changes its meaning.
pub const SCHEDULE_SCHEMA: u32 = 1;

/// A point of a scheduler's run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Improvement {
    /// Nanoseconds since the start of the run.
    pub elapsed_ns: u64,
    /// Simulated iterations by then.
    pub work: u64,
    /// Nanoseconds of an iteration by the best schedule.
    pub iteration_ns: u64,
}

/// How a schedule runs if operations do not take the times that it was made for: each takes its time, more or less by
/// up to `percent`, drawn evenly.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Disturbance {
    /// The most by which a time is off, in percent.
    pub percent: u64,
    /// How many draws there were.
    pub draws: u64,
    /// Nanoseconds of an iteration, the median of the draws.
    pub median_ns: u64,
    /// Nanoseconds of the slowest one.
    pub worst_ns: u64,
    /// Nanoseconds, the median, that the same draws take if nothing but the passes counts: what no schedule beats.
    pub compute_ns: u64,
}

table! {
    /// One row: a scheduler on a problem, and a repetition. Raw integers: bytes, nanoseconds.
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    pub struct ScheduleRow as "" {
        /// [`SCHEDULE_SCHEMA`].
        pub schema: u32,
        /// Digest of what makes the cell: problem, scheduler, planner, version, limits, seed.
        pub cell: String,
        /// From 0.
        pub repetition: u32,
        /// The suite that asked for it, or empty.
        pub suite: String,
        /// Workload key: `ideal/resnet50/train/b512`.
        pub workload: WorkloadKey,
        /// Digest of the problem: the store keeps it as `problems/<digest>.jsonl`.
        pub problem: String,
        /// Images, or sequences, of an iteration.
        pub batch: u64,
        /// Functions of the net.
        pub functions: u64,
        /// Feature maps that a backward pass reads: each is kept, swapped or recomputed.
        pub maps: u64,
        /// The machine's key.
        pub machine: String,
        /// Digest of the machine but for its memory: machine files may differ and have one key.
        pub rates_digest: Option<String> = None,
        /// Where the times of the passes are from: `roofline`, or `given`.
        pub times: Option<String> = None,
        /// Bytes per second from the device to the host.
        pub copy_out: f64,
        /// Bytes per second from the host to the device.
        pub copy_in: f64,
        /// Memory that the schedule may take, the base included, bytes.
        pub capacity: u64,
        /// Bytes that are taken throughout: parameters and workspace.
        pub base: u64,
        /// Nanoseconds of an iteration in which nothing waits: every pass once.
        pub compute_ns: u64,
        /// Scheduler key.
        pub scheduler: String,
        /// Digest of the scheduler's sources.
        pub scheduler_version: String,
        /// Seed of the run's random numbers.
        pub seed: u64,
        /// Wall limit, nanoseconds.
        pub wall_limit_ns: Option<u64>,
        /// Memory limit of the process, bytes.
        pub memory_limit_bytes: Option<u64>,
        /// Work limit, in simulated iterations.
        pub work_limit: Option<u64>,
        /// What enforced the limits.
        pub mechanism: String,
        /// How it ended. `feasible` and `optimal` say that the bytes in use fit at every moment; whether a plan of their
        /// offsets does is another question: [`fits`](Self::fits).
        pub status: Status,
        /// Why the run stopped, where the child could say.
        pub stop: Option<Stop>,
        /// What went wrong, or why there is no schedule; empty where there is one.
        pub reason: String,
        /// Exit code of the child.
        pub exit_code: Option<i32>,
        /// Signal that ended the child.
        pub signal: Option<i32>,
        /// The last of what the child wrote to stderr.
        pub stderr_tail: String,
        /// Nanoseconds of an iteration by the best valid schedule.
        pub iteration_ns: Option<u64>,
        /// Nanoseconds below which no schedule of `bound_scope` is, as proved.
        pub bound_ns: u64,
        /// How the bound was had: `compute` or `lp`.
        pub bound_evidence: String,
        /// Of which schedules the bound holds: `any` or `classes`.
        pub bound_scope: String,
        /// Feature maps that stay on the device.
        pub kept: Option<u64>,
        /// Feature maps that are copied to the host and back.
        pub swapped: Option<u64>,
        /// Feature maps that are dropped and computed again.
        pub recomputed: Option<u64>,
        /// Bytes that are copied to the host.
        pub copied_out: Option<u64>,
        /// Nanoseconds of functions that are computed again.
        pub recompute_ns: Option<u64>,
        /// The most bytes in use at once, the base included.
        pub live_peak: Option<u64>,
        /// Memory that the offsets of an online best fit need, the base included, bytes.
        pub best_fit_height: Option<u64>,
        /// Memory that the best offsets need, the base included, bytes.
        pub height: Option<u64>,
        /// A proven bound on `height`, bytes.
        pub height_bound: Option<u64>,
        /// How that bound was had.
        pub height_evidence: Evidence,
        /// The planner that placed the buffers.
        pub planner: String,
        /// The wall limit of its run, nanoseconds.
        pub planner_wall_ns: Option<u64>,
        /// How the planner ended, `feasible` for example; empty if none was asked. Without a plan of its own the height is that
        /// of the online best fit.
        #[serde(default)]
        pub planner_status: String,
        /// The planner's reason, if it has one.
        #[serde(default)]
        pub planner_reason: String,
        /// What became of the schedule with other times.
        pub disturbed: Vec<Disturbance>,
        /// Nanoseconds of the run, simulations and validations included.
        pub elapsed_ns: Option<u64>,
        /// CPU time of the child, nanoseconds.
        pub cpu_ns: Option<u64>,
        /// Most resident memory of the child, bytes.
        pub peak_rss_bytes: Option<u64>,
        /// Simulated iterations.
        pub work: u64,
        /// The best schedule over time.
        pub trajectory: Vec<Improvement>,
        /// Digest of the placement instance of the schedule's buffers.
        pub instance: Option<String>,
        /// Digest of the plan of their offsets.
        pub plan: Option<String>,
        /// Digest of the schedule: the store keeps it as `events/<digest>.jsonl`.
        pub schedule: Option<String>,
        /// When the cell started, nanoseconds since 1970.
        pub started_ns: u64,
        /// Machine and build.
        pub provenance: Provenance,
    }
}

impl ScheduleRow {
    /// Whether the buffers fit with their offsets; `None` without a schedule, or without a plan of it.
    #[must_use]
    pub fn fits(&self) -> Option<bool> {
        Some(self.height? <= self.capacity)
    }

    /// Images, or sequences, per second; `None` without a schedule.
    #[must_use]
    pub fn images_per_second(&self) -> Option<f64> {
        self.iteration_ns.map(|ns| per_second(self.batch, ns))
    }

    /// Images per second if nothing had to wait.
    #[must_use]
    pub fn images_per_second_at_most(&self) -> f64 {
        per_second(self.batch, self.compute_ns)
    }

    /// (iteration - bound) / bound.
    #[must_use]
    pub fn gap(&self) -> Option<f64> {
        let iteration = real(self.iteration_ns?);
        (self.bound_ns > 0).then(|| (iteration - real(self.bound_ns)) / real(self.bound_ns))
    }

    /// How much slower than an iteration in which nothing waits: 1 - speed / speed at most.
    #[must_use]
    pub fn loss(&self) -> Option<f64> {
        let iteration = real(self.iteration_ns?);
        (iteration > 0.0).then(|| 1.0 - real(self.compute_ns) / iteration)
    }
}

fn per_second(batch: u64, ns: u64) -> f64 {
    if ns == 0 { 0.0 } else { real(batch) * 1e9 / real(ns) }
}

#[expect(clippy::cast_precision_loss, reason = "for ratios")]
const fn real(number: u64) -> f64 {
    number as f64
}

impl Row for ScheduleRow {
    const KNOWN: u32 = SCHEDULE_SCHEMA;
    const KIND: &'static str = "schedules";
    const JOURNAL: &'static str = "schedules.jsonl";
    const SHARDS: &'static str = "schedules";

    fn schema(&self) -> u32 {
        self.schema
    }

    fn key(&self) -> (&str, u32) {
        (&self.cell, self.repetition)
    }
}

/// The schedules of a folder, the latest row of each cell and repetition in the order in which they first came; none
/// where there are no such files. A torn last line is left out.
///
/// # Errors
///
/// [`StoreError::Io`] where the folder cannot be read, [`StoreError::Corrupt`] where a row is damaged,
/// [`StoreError::BadFile`] where a shard is, [`StoreError::Schema`] where a newer program wrote it.
pub fn read_schedules(dir: impl AsRef<Path>) -> Result<Vec<ScheduleRow>, StoreError> {
    let dir = dir.as_ref();
    std::fs::read_dir(dir).map_err(StoreError::io("read", dir))?;
    shards::read_latest(dir)
}

/// Kinds of documents beside the rows of schedules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Document {
    /// A training net with machine and capacity.
    Problem,
    /// A schedule, placed.
    Schedule,
    /// What a report draws of a schedule; under the schedule's digest.
    Timeline,
}

impl Document {
    /// All of them.
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

/// Keeps a problem or a schedule under the digest of its text, which it gives.
///
/// # Errors
///
/// [`StoreError::Io`].
pub(crate) fn put(dir: &Path, document: Document, text: &str) -> Result<String, StoreError> {
    let digest = Digest::of_bytes(text.as_bytes()).to_string();
    put_as(dir, document, &digest, text)?;
    Ok(digest)
}

/// Keeps a document under a digest. One that is there already is left as it is.
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
/// [`StoreError::Io`] where it is gone, [`StoreError::BadFile`] where it is not text, or not what was kept.
pub fn load_document(dir: impl AsRef<Path>, document: Document, digest: &str) -> Result<String, StoreError> {
    let path = document.path(dir.as_ref(), digest);
    let text = std::fs::read(&path).map_err(StoreError::io("read", &path))?;
    if document != Document::Timeline && Digest::of_bytes(&text).to_string() != digest {
        let reason = "it is damaged: its content has another digest than its name says";
        return Err(StoreError::bad_file(&path, &reason));
    }
    String::from_utf8(text).map_err(|error| StoreError::bad_file(&path, &error))
}

/// When each event of a schedule runs, and how much memory is in use: what a report draws.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Timeline {
    /// Every event, by engine in the order `compute`, `out`, `in`, each in its order.
    pub spans: Vec<TimelineSpan>,
    /// Bytes in use, the base included, from each moment on; ascending, from 0.
    pub memory: Vec<MemoryStep>,
    /// The memory that there is, bytes.
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
    /// The function, or the feature map.
    pub name: String,
    /// Bytes that are copied, or written.
    pub bytes: u64,
    /// Nanoseconds from the start of the iteration to the start of the event.
    pub start_ns: u64,
    /// Nanoseconds to its completion.
    pub end_ns: u64,
}

/// A step of the memory of a timeline.
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
/// As [`load_document`]; [`StoreError::BadFile`] where it is no timeline.
pub fn load_timeline(dir: impl AsRef<Path>, schedule: &str) -> Result<Timeline, StoreError> {
    let dir = dir.as_ref();
    let text = load_document(dir, Document::Timeline, schedule)?;
    let bad = |error: serde_json::Error| {
        StoreError::bad_file(&Document::Timeline.path(dir, schedule), &format!("not a timeline: {error}"))
    };
    serde_json::from_str(&text).map_err(bad)
}
