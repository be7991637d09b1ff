//! One row of what serving the requests of a workload cost: by an online allocator, or from a plan, on simulated,
//! host or device memory.
//!
//! The rows of a folder are in its file `replays.jsonl`, a line for each with its checksum, as in a store's journal.

use std::fs::{self, File, OpenOptions};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::journal::{self, Journal, Row};
use crate::latest::Latest;
use crate::record::Provenance;
use crate::store::{Notice, refuse_foreign, torn};
use crate::{StoreError, files};

pub(crate) const FILE: &str = "replays.jsonl";

/// The version of the row; raised when a column changes its meaning.
pub const REPLAY_SCHEMA: u32 = 1;

/// How a replay ended. Closed: every row has one of these.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ReplayStatus {
    /// Every request was served.
    Complete,
    /// A request found no memory.
    OutOfMemory,
    /// Live memory was handed out again, or what was written was not there any more.
    Corrupt,
    /// The device or the contender is not there, or cannot do what was asked.
    Unavailable,
    /// The process that did it crashed, was killed or wrote nonsense.
    Failed,
}

/// What is done with the memory between a request and its free.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ReplayWork {
    /// Nothing: addresses alone.
    None,
    /// A byte of each page of 4 KiB is written.
    Pages,
    /// Every byte is written after the request and checked before the free.
    Pattern,
    /// On a device, one kernel writes the buffer after the request and one reads it before the free.
    Kernels,
    /// As `Kernels`, and the device is kept busy for as long as the recorded operations take.
    Operations,
}

/// One propagation that was timed, or played: times in nanoseconds, memory in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReplaySample {
    /// Propagations that the times are of: the times of short ones are taken together.
    pub propagations: u32,
    /// Wall time of all of them. Of several threads: until the last was done.
    pub wall_ns: u64,
    /// CPU time of all threads together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_ns: Option<u64>,
    /// On a device: the host's time until everything was enqueued. None where there is more than the driver's queue
    /// holds, so that the host waits for the device.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enqueue_ns: Option<u64>,
    /// On a device: from the first to the last of its work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device_ns: Option<u64>,
    /// What was reserved at its end, if that was looked at: over simulated memory before what is still live is freed,
    /// else after that, when a plan was made and what it replaces was given back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reserved: Option<u64>,
    /// The most that was reserved at once from its begin to its end, by the count of the memory below, if that was
    /// watched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reserved_peak: Option<u64>,
    /// Plans made so far, if it plans.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plans: Option<u64>,
    /// The time that making them took so far; part of the wall time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub planning_ns: Option<u64>,
}

/// Quantiles of the time for one call, from batches of calls, in picoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallTime {
    /// Half of the batches were faster.
    pub median_ps: u64,
    /// 99 of 100 batches were faster.
    pub p99_ps: u64,
    /// Batches.
    pub batches: u64,
}

/// One contender on one workload, one process. Raw integers: bytes, nanoseconds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReplayRow {
    /// [`REPLAY_SCHEMA`].
    pub schema: u32,
    /// Digest of what makes the row but for the repetition: content of the workloads, contender, plan, device, work,
    /// threads, capacity, numbers of iterations.
    pub cell: String,
    /// The number of the process, from 0.
    pub repetition: u32,
    /// The suite that asked for it, or empty.
    pub suite: String,
    /// Workload key: `chainer/alexnet/train/b32`. Of several workloads in turn: what they share, or a name.
    pub workload: String,
    /// The keys of the propagations in their order, where they are not all of `workload`.
    pub sequence: Vec<String>,
    /// Only what comes before this step was played; `None` for all of the trace.
    #[serde(default)]
    pub until: Option<u32>,
    /// Digest of the instance; of the digests, where there are several.
    pub instance: String,
    /// Requests of one propagation; of all in the sequence, where there is one.
    pub requests: u64,
    /// `plan`, `profile-guided`, `cupy2rc1-pool`, `glibc`, `jemalloc/oversize-1m`, `cuda-malloc-async/keep`, ...; of a
    /// plan from a file `plan:NAME`.
    pub contender: String,
    /// Who planned: the planner's key, of contenders that have a plan.
    pub planner: Option<String>,
    /// Digest of the plan.
    pub plan: Option<String>,
    /// `simulated`, `host`, `cuda:0`, `simulated-cuda` (what stands for a GPU in tests: its times mean nothing).
    pub device: String,
    /// What the device calls itself, with its driver; empty on the host.
    pub device_name: String,
    /// What is done with the memory.
    pub work: ReplayWork,
    /// Threads, each with the whole sequence and, where the contender has arenas or pools, one of its own.
    pub threads: u32,
    /// The most that might be reserved, if that was limited.
    pub capacity: Option<u64>,
    /// How it ended.
    pub status: ReplayStatus,
    /// What went wrong, in one line; empty where nothing did.
    pub reason: String,
    /// Propagations before the timed ones.
    pub warm_up: u32,
    /// Whether the reserved bytes had stopped changing by then; without a warm-up, by the last propagation.
    pub is_steady: bool,
    /// Timed propagations in their order.
    pub samples: Vec<ReplaySample>,
    /// Time for a request.
    pub alloc: Option<CallTime>,
    /// Time for a free.
    pub free: Option<CallTime>,
    /// The most bytes of requests live at once.
    pub requested_peak: u64,
    /// Bytes that live from before the propagation to after it (parameters, say), not in any figure here.
    pub retained: Option<u64>,
    /// The most bytes ever reserved.
    pub reserved_peak: u64,
    /// The most bytes ever handed out at once, as the contender rounds them.
    pub used_peak: Option<u64>,
    /// The most bytes that the process or the device had more than before, by their own counters.
    pub physical_peak: Option<u64>,
    /// Calls for memory to the device or the system, warm-up included.
    pub device_allocations: u64,
    /// Entries of free lists that were looked at in one propagation, when steady.
    pub search_steps: u64,
    /// Time that threads waited for locks, nanoseconds, where the contender says so.
    pub lock_wait_ns: Option<u64>,
    /// How often the device had no room, of contenders that then gave something back and asked again, or failed.
    #[serde(default)]
    pub refusals: Option<u64>,
    /// Bytes that kernels wrote and read in one propagation, of all in the sequence, where there is one.
    #[serde(default)]
    pub touched_bytes: Option<u64>,
    /// Bytes of the device's L2 cache, where it says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub l2_bytes: Option<u64>,
    /// When it started, nanoseconds since 1970.
    pub started_ns: u64,
    /// Machine and build.
    pub provenance: Provenance,
}

impl ReplayRow {
    /// Whether all that is live at once fits in the device's L2 cache: the memory behind the cache is then not what
    /// bounds the kernels. False where the size of the cache is not known.
    #[must_use]
    pub fn fits_cache(&self) -> bool {
        self.l2_bytes.is_some_and(|l2_bytes| self.requested_peak <= l2_bytes)
    }

    /// Propagations that its samples are of, without the warm-up.
    #[must_use]
    pub fn propagations(&self) -> u64 {
        self.samples.iter().map(|sample| u64::from(sample.propagations)).sum()
    }
}

impl ReplayStatus {
    /// The name in files and on screen.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Complete => "complete",
            Self::OutOfMemory => "out-of-memory",
            Self::Corrupt => "corrupt",
            Self::Unavailable => "unavailable",
            Self::Failed => "failed",
        }
    }
}

impl ReplayWork {
    /// The name in files and on screen.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Pages => "pages",
            Self::Pattern => "pattern",
            Self::Kernels => "kernels",
            Self::Operations => "operations",
        }
    }
}

impl Row for ReplayRow {
    const KNOWN: u32 = REPLAY_SCHEMA;

    fn schema(&self) -> u32 {
        self.schema
    }

    fn key(&self) -> (&str, u32) {
        (&self.cell, self.repetition)
    }
}

/// Appends rows to the replays of a folder, which is made where there is none; when it returns, they are
/// on the disk. A row of the same cell and repetition is replaced. Several writers take turns. Gives what
/// was noticed of the rows before.
///
/// # Errors
///
/// [`StoreError::Io`] where the folder cannot be written (the replays are then as before),
/// [`StoreError::NotAStore`] where it holds something else,
/// [`StoreError::Corrupt`] where a row before is damaged, [`StoreError::Schema`] where a newer program
/// wrote it.
pub fn append_rows(dir: impl AsRef<Path>, rows: &[ReplayRow]) -> Result<Vec<Notice>, StoreError> {
    let (mut writer, mut notices) = ReplayWriter::open(dir)?;
    notices.extend(writer.append(rows)?);
    Ok(notices)
}

/// Appends rows to the replays of a folder again and again: what is there is read when it is opened, and after that
/// only where another writer was there meanwhile.
#[derive(Debug)]
pub struct ReplayWriter {
    path: PathBuf,
    /// Who holds its lock may write.
    turn: File,
    journal: Journal<ReplayRow>,
}

impl ReplayWriter {
    /// Opens the replays of a folder, which is made where there is none. Gives what was noticed of the rows before.
    ///
    /// # Errors
    ///
    /// As [`append_rows`].
    pub fn open(dir: impl AsRef<Path>) -> Result<(Self, Vec<Notice>), StoreError> {
        let dir = dir.as_ref();
        refuse_foreign(dir)?;
        files::create_folder(dir)?;
        let path = dir.join(FILE);
        let turn = take_turn(&path)?;
        let (journal, content) = Journal::<ReplayRow>::open(&path)?;
        turn.unlock().map_err(StoreError::io("unlock", &path))?;
        files::sync_folder(dir)?;
        let notices = torn(&path, content.torn);
        Ok((Self { path, turn, journal }, notices))
    }

    /// Appends rows; when it returns, they are on the disk. A row of the same cell and repetition is replaced.
    ///
    /// # Errors
    ///
    /// As [`append_rows`].
    pub fn append(&mut self, rows: &[ReplayRow]) -> Result<Vec<Notice>, StoreError> {
        self.turn.lock().map_err(StoreError::io("lock", &self.path))?;
        if !files::is_open_as(&self.turn, &self.path) {
            // A repair has put another file in its place.
            self.turn = take_turn(&self.path)?;
            self.journal = Journal::open(&self.path)?.0;
        }
        let appended = self.append_alone(rows);
        self.turn.unlock().map_err(StoreError::io("unlock", &self.path))?;
        appended
    }

    fn append_alone(&mut self, rows: &[ReplayRow]) -> Result<Vec<Notice>, StoreError> {
        let there = fs::metadata(&self.path).map_err(StoreError::io("read", &self.path))?.len();
        let mut notices = Vec::new();
        if there != self.journal.length() {
            let (journal, content) = Journal::open(&self.path)?;
            self.journal = journal;
            notices = torn(&self.path, content.torn);
        }
        self.journal.append(rows)?;
        Ok(notices)
    }
}

/// Opens the file, which is made where there is none, and waits for the turn to write to it.
pub(crate) fn take_turn(path: &Path) -> Result<File, StoreError> {
    loop {
        let file = OpenOptions::new().append(true).create(true).open(path);
        let turn = file.map_err(StoreError::io("open for writing", path))?;
        turn.lock().map_err(StoreError::io("lock", path))?;
        // A repair may have put another file in its place meanwhile.
        if files::is_open_as(&turn, path) {
            return Ok(turn);
        }
    }
}

/// The replays of a folder, the latest row of each cell and repetition in the order in which they first
/// came; none where there is no such file. A torn last line is left out.
///
/// # Errors
///
/// [`StoreError::Io`] where the folder cannot be read, [`StoreError::Corrupt`] where a row is damaged,
/// [`StoreError::Schema`] where a newer program wrote it.
pub fn read_rows(dir: impl AsRef<Path>) -> Result<Vec<ReplayRow>, StoreError> {
    let dir = dir.as_ref();
    fs::read_dir(dir).map_err(StoreError::io("read", dir))?;
    Ok(Latest::of(journal::read(&dir.join(FILE))?.rows).into_rows())
}

/// Whether a folder has replays.
pub(crate) fn is_there(dir: &Path) -> bool {
    dir.join(FILE).exists()
}
