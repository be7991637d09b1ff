//! One row of a replay: the cost of serving a workload's requests, by an online allocator or from a plan, on simulated,
//! host or device memory.
//!
//! Rows are appended to the folder's file `replays.jsonl`, a separate journal. Several processes may write to it at the
//! same time: each locks the file while it appends, and none needs to open the store.
//! [`Store::compact_replays`](crate::Store) moves the rows into shards, `replays/<n>-<digest>.parquet`.

use std::fs::{self, File, OpenOptions};
use std::path::{Path, PathBuf};

use planlab_dsa::performance::{End, Performance, Work};
use serde::{Deserialize, Serialize};

use crate::fields::table;
use crate::journal::{Journal, Row as _, row};
use crate::key::WorkloadKey;
use crate::record::Provenance;
use crate::store::{Notice, refuse_foreign, torn};
use crate::{StoreError, files, shards};

/// The version of the row; raised when a column changes its meaning.
pub const REPLAY_SCHEMA: u32 = 1;

table! {
    /// One process: one contender on one workload. Raw integers: bytes, nanoseconds. Files store the fields of its
    /// [`Performance`] alongside its own.
    #[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
    pub struct ReplayRow as "" {
        /// [`REPLAY_SCHEMA`].
        pub schema: u32,
        /// Digest of everything that defines the row except the repetition: content of the workloads, contender, plan,
        /// device, work, threads, capacity, numbers of iterations.
        pub cell: String,
        /// The number of the process, from 0.
        pub repetition: u32,
        /// The suite that contains it, or empty.
        pub suite: String,
        /// Workload key: `chainer/alexnet/train/b32`. For several workloads in turn: their common part, or a name.
        pub workload: WorkloadKey,
        /// The keys of the propagations in order, if they are not all of `workload`.
        pub sequence: Vec<String>,
        /// Only calls before this step were played; `None` for the whole trace.
        pub until: Option<u32> = None,
        /// Digest of the instance; with several instances, a digest of their digests.
        pub instance: String,
        /// Requests of one propagation, or of the whole sequence if there is one.
        pub requests: u64,
        /// The most requested bytes live at once.
        pub requested_peak: u64,
        /// Bytes that live from before the propagation until after it (parameters, say); no other figure includes them.
        pub retained: Option<u64>,
        /// `plan`, `profile-guided`, `cupy2rc1-pool`, `glibc`, `jemalloc/oversize-1m`, `cuda-malloc-async/keep`, ...;
        /// `plan:NAME` for a plan from a file.
        pub contender: String,
        /// The planner's key, for contenders with a plan.
        pub planner: Option<String>,
        /// Digest of the plan.
        pub plan: Option<String>,
        /// `simulated`, `host`, `cuda:0`, `simulated-cuda` (a substitute for a GPU in tests; its times are
        /// meaningless).
        pub device: String,
        /// The device's name and driver; empty on the host.
        pub device_name: String,
        /// Bytes of the device's L2 cache, if the device reports them.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub l2_bytes: Option<u64> = None,
        /// What is done with the memory.
        pub work: Work,
        /// The number of threads. Each plays the whole sequence, with its own arena or pool if the contender has them.
        pub threads: u32,
        /// The limit of reserved bytes, if any.
        pub capacity: Option<u64>,
        /// The measurements.
        #[serde(flatten)]
        pub performance: Performance,
        /// Bytes that kernels wrote and read in one propagation, or in the whole sequence if there is one.
        pub touched_bytes: Option<u64> = None,
        /// Start time in nanoseconds since 1970.
        pub started_ns: u64,
        /// Machine and build.
        pub provenance: Provenance,
    }
}

impl ReplayRow {
    /// Whether all bytes live at once fit in the device's L2 cache, so that the memory behind the cache does not limit
    /// the kernels. `false` if the size of the cache is not known.
    #[must_use]
    pub fn fits_cache(&self) -> bool {
        self.l2_bytes.is_some_and(|l2_bytes| self.requested_peak <= l2_bytes)
    }
}

row!(ReplayRow, REPLAY_SCHEMA, ["replays", "replays.jsonl", "replays"], contender, |row| match row
    .performance
    .status
{
    End::Corrupt => 3,
    End::Complete | End::OutOfMemory => 2,
    End::Failed => 1,
    End::Unavailable => 0,
});

/// Appends rows to the replays of a folder, which is created if necessary. On return, they are on disk. A row replaces
/// an earlier one of the same cell and repetition. Several processes may append at the same time. Returns notices about
/// earlier rows.
///
/// # Errors
///
/// [`StoreError::Io`] if the folder cannot be written (the replays are then unchanged), [`StoreError::NotAStore`] if it
/// contains other files, [`StoreError::BadLine`] if an earlier row is damaged, [`StoreError::Schema`] if a newer
/// program wrote it.
pub fn append_rows(dir: impl AsRef<Path>, rows: &[ReplayRow]) -> Result<Vec<Notice>, StoreError> {
    let (mut writer, mut notices) = ReplayWriter::open(dir)?;
    notices.extend(writer.append(rows)?);
    Ok(notices)
}

/// Appends rows to the replays of a folder repeatedly: it reads existing rows when opened, and again only after another
/// writer was active.
#[derive(Debug)]
pub struct ReplayWriter {
    path: PathBuf,
    /// The lock: its holder may write.
    turn: File,
    journal: Journal<ReplayRow>,
}

impl ReplayWriter {
    /// Opens the replays of a folder, which is created if necessary. Returns notices about earlier rows.
    ///
    /// # Errors
    ///
    /// Like [`append_rows`].
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

    /// Appends rows; on return, they are on disk. A row replaces an earlier one of the same cell and repetition.
    ///
    /// # Errors
    ///
    /// Like [`append_rows`].
    pub fn append(&mut self, rows: &[ReplayRow]) -> Result<Vec<Notice>, StoreError> {
        self.turn.lock().map_err(StoreError::io("lock", &self.path))?;
        if !files::is_open_as(&self.turn, &self.path) {
            // A repair has replaced the file.
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

/// Opens the file, creating it if necessary, and waits until no other process holds its lock.
pub(crate) fn take_turn(path: &Path) -> Result<File, StoreError> {
    loop {
        let file = OpenOptions::new().append(true).create(true).open(path);
        let turn = file.map_err(StoreError::io("open for writing", path))?;
        turn.lock().map_err(StoreError::io("lock", path))?;
        // A repair may have replaced the file meanwhile.
        if files::is_open_as(&turn, path) {
            return Ok(turn);
        }
    }
}

/// The replays of a folder, only the latest row of each cell and repetition, in the order of their first appearance. An
/// empty list without such files. An incomplete last line is ignored.
///
/// # Errors
///
/// [`StoreError::Io`] if the folder cannot be read, [`StoreError::BadLine`] if a row is damaged,
/// [`StoreError::BadFile`] if a shard is, [`StoreError::Schema`] if a newer program wrote it.
pub fn read_rows(dir: impl AsRef<Path>) -> Result<Vec<ReplayRow>, StoreError> {
    let dir = dir.as_ref();
    fs::read_dir(dir).map_err(StoreError::io("read", dir))?;
    shards::read_latest(dir)
}

/// Whether a folder has a journal of replays.
pub(crate) fn has_journal(dir: &Path) -> bool {
    dir.join(ReplayRow::JOURNAL).exists()
}
