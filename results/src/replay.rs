//! One row of what serving the requests of a workload cost: by an online allocator, or from a plan, on simulated,
//! host or device memory.
//!
//! Rows are appended to the folder's file `replays.jsonl`, a journal of their own. Processes may write to it at the same
//! time: each locks the file while it appends, and none needs the store. [`Store::compact_replays`](crate::Store) moves them into shards, `replays/<n>-<digest>.parquet`.

use std::fs::{self, File, OpenOptions};
use std::path::{Path, PathBuf};

use planlab_dsa::performance::{Performance, Work};
use serde::{Deserialize, Serialize};

use crate::fields::table;
use crate::journal::{Journal, Row};
use crate::key::WorkloadKey;
use crate::record::Provenance;
use crate::store::{Notice, refuse_foreign, torn};
use crate::{StoreError, files, shards};

/// The version of the row; raised when a column changes its meaning.
pub const REPLAY_SCHEMA: u32 = 1;

table! {
    /// One contender on one workload, one process. Raw integers: bytes, nanoseconds. In files the fields of its
    /// [`Performance`] stand beside its own.
    #[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
    pub struct ReplayRow as "" {
        /// [`REPLAY_SCHEMA`].
        pub schema: u32,
        /// Digest of what makes the row but for the repetition: content of the workloads, contender, plan, device,
        /// work, threads, capacity, numbers of iterations.
        pub cell: String,
        /// The number of the process, from 0.
        pub repetition: u32,
        /// The suite that asked for it, or empty.
        pub suite: String,
        /// Workload key: `chainer/alexnet/train/b32`. Of several workloads in turn: what they share, or a name.
        pub workload: WorkloadKey,
        /// The keys of the propagations in their order, where they are not all of `workload`.
        pub sequence: Vec<String>,
        /// Only what comes before this step was played; `None` for all of the trace.
        pub until: Option<u32> = None,
        /// Digest of the instance; of the digests, where there are several.
        pub instance: String,
        /// Requests of one propagation; of all in the sequence, where there is one.
        pub requests: u64,
        /// The most bytes of requests live at once.
        pub requested_peak: u64,
        /// Bytes that live from before the propagation to after it (parameters, say), not in any figure here.
        pub retained: Option<u64>,
        /// `plan`, `profile-guided`, `cupy2rc1-pool`, `glibc`, `jemalloc/oversize-1m`, `cuda-malloc-async/keep`, ...;
        /// of a plan from a file `plan:NAME`.
        pub contender: String,
        /// Who planned: the planner's key, of contenders that have a plan.
        pub planner: Option<String>,
        /// Digest of the plan.
        pub plan: Option<String>,
        /// `simulated`, `host`, `cuda:0`, `simulated-cuda` (what stands for a GPU in tests: its times mean nothing).
        pub device: String,
        /// What the device calls itself, with its driver; empty on the host.
        pub device_name: String,
        /// Bytes of the device's L2 cache, where it says so.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub l2_bytes: Option<u64> = None,
        /// What is done with the memory.
        pub work: Work,
        /// Threads, each with the whole sequence and, where the contender has arenas or pools, one of its own.
        pub threads: u32,
        /// The most that might be reserved, if that was limited.
        pub capacity: Option<u64>,
        /// What it came to.
        #[serde(flatten)]
        pub performance: Performance,
        /// Bytes that kernels wrote and read in one propagation, of all in the sequence, where there is one.
        pub touched_bytes: Option<u64> = None,
        /// When it started, nanoseconds since 1970.
        pub started_ns: u64,
        /// Machine and build.
        pub provenance: Provenance,
    }
}

impl ReplayRow {
    /// Whether all that is live at once fits in the device's L2 cache: the memory behind the cache is then not what
    /// bounds the kernels. False where the size of the cache is not known.
    #[must_use]
    pub fn fits_cache(&self) -> bool {
        self.l2_bytes.is_some_and(|l2_bytes| self.requested_peak <= l2_bytes)
    }
}

impl Row for ReplayRow {
    const KNOWN: u32 = REPLAY_SCHEMA;
    const KIND: &'static str = "replays";
    const JOURNAL: &'static str = "replays.jsonl";
    const SHARDS: &'static str = "replays";

    fn schema(&self) -> u32 {
        self.schema
    }

    fn key(&self) -> (&str, u32) {
        (&self.cell, self.repetition)
    }
}

/// Appends rows to the replays of a folder, which is made where there is none; when it returns, they are
/// on the disk. A row of the same cell and repetition is replaced. Several processes may do so at the
/// same time. Gives what was noticed of the rows before.
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
        let path = dir.join(ReplayRow::JOURNAL);
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

/// Opens the file, which is made where there is none, and waits until no other process holds its lock.
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
/// came; none where there are no such files. A torn last line is left out.
///
/// # Errors
///
/// [`StoreError::Io`] where the folder cannot be read, [`StoreError::Corrupt`] where a row is damaged,
/// [`StoreError::BadFile`] where a shard is, [`StoreError::Schema`] where a newer program wrote it.
pub fn read_rows(dir: impl AsRef<Path>) -> Result<Vec<ReplayRow>, StoreError> {
    let dir = dir.as_ref();
    fs::read_dir(dir).map_err(StoreError::io("read", dir))?;
    shards::read_latest(dir)
}

/// Whether a folder has a journal of replays.
pub(crate) fn has_journal(dir: &Path) -> bool {
    dir.join(ReplayRow::JOURNAL).exists()
}
