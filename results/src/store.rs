//! The crash-safe store of rows, instances and plans.
//!
//! ```text
//! <dir>/lock                          held by the one writer
//! <dir>/journal.jsonl                 rows, appended and flushed one by one
//! <dir>/shards/<n>-<digest>.parquet   rows, compacted
//! <dir>/manifest.json                 the shards that were written
//! <dir>/instances/<digest>.parquet    instances with their labels, each once
//! <dir>/plans/<digest>.parquet        plans, each once
//! <dir>/replays.jsonl                 rows of replays, see [`crate::replay`]
//! <dir>/replays/<n>-<digest>.parquet  rows of replays, compacted
//! <dir>/schedules.jsonl               rows of schedules, see [`crate::schedule`], which also has their documents
//! <dir>/schedules/<n>-<digest>.parquet rows of schedules, compacted
//! <dir>/frameworks.jsonl              rows of frameworks, see [`crate::framework`]
//! ```
//!
//! Files under the folders appear whole or not at all. Compaction writes the shard, then lists it in the manifest, and
//! empties the journal once both are on disk. A crash in between leaves rows in both. Readers count these as one row:
//! among rows of one cell and repetition the latest counts, and the journal is later than the shards.

use std::collections::BTreeSet;
use std::fmt;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read as _, Seek as _, Write as _};
use std::path::{Path, PathBuf};

use planlab_files::first_foreign;

#[cfg(feature = "parquet")]
use crate::journal;
use crate::journal::{Row as _, each_kind};
use crate::manifest::{self, Manifest, MissingShard, missing_shards};
use crate::record::{Record, against_any_plan};
#[cfg(feature = "parquet")]
use crate::replay::{self, ReplayRow};
use crate::schedule::{self, Document, ScheduleRow};
use crate::shards::{self, Rows};
use crate::{StoreError, files, framework};

/// Information for the reader that requires no action.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Notice {
    /// The last line of the journal was cut short by a crash; its row is lost and will be made again.
    TornLine {
        /// The journal.
        path: PathBuf,
        /// The line, from 1.
        line: u64,
        /// The bytes that were left of the line.
        bytes: u64,
    },
    /// A shard is missing; its rows are lost and will be made again.
    MissingShard(MissingShard),
}

impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TornLine { path, line, bytes } => {
                let path = path.display();
                write!(f, "{path}:{line}: dropped a last line of {bytes} bytes that was cut short")
            }
            Self::MissingShard(shard) => shard.fmt(f),
        }
    }
}

/// A store that is open for writing. It has one writer at a time.
#[derive(Debug)]
pub struct Store {
    dir: PathBuf,
    rows: Rows<Record>,
    /// Opened on first use: most stores have none.
    schedules: Option<Rows<ScheduleRow>>,
    notices: Vec<Notice>,
    _lock: File,
}

impl Store {
    /// Opens the store of a folder, which is created if necessary.
    ///
    /// # Errors
    ///
    /// [`StoreError::Locked`] while another process writes to it, [`StoreError::Io`] if the folder cannot be written,
    /// [`StoreError::NotAStore`] if it contains other files.
    ///
    /// [`StoreError::BadLine`] and [`StoreError::BadFile`] if a file is damaged, [`StoreError::Schema`] if a newer
    /// program made it.
    pub fn open(dir: impl AsRef<Path>) -> Result<Self, StoreError> {
        let dir = dir.as_ref();
        refuse_foreign(dir)?;
        for folder in [dir, &dir.join(Record::SHARDS), &dir.join("instances"), &dir.join("plans")] {
            files::create_folder(folder)?;
        }
        let lock = lock(&dir.join("lock"))?;
        let (rows, cut) = Rows::open(dir)?;
        files::sync_folder(dir)?;
        let mut notices = torn(&dir.join(Record::JOURNAL), cut);
        notices.extend(missing_shards(dir)?.into_iter().map(Notice::MissingShard));
        let mut store = Self { dir: dir.to_path_buf(), rows, schedules: None, notices, _lock: lock };
        if dir.join(ScheduleRow::JOURNAL).exists() || dir.join(ScheduleRow::SHARDS).exists() {
            store.schedules_mut()?;
        }
        Ok(store)
    }

    /// The folder.
    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Notices from opening the store.
    #[must_use]
    pub fn notices(&self) -> &[Notice] {
        &self.notices
    }

    /// The latest row of each cell and repetition, in the order in which the cells first appeared.
    #[must_use]
    pub fn records(&self) -> &[Record] {
        self.rows.latest.rows()
    }

    /// The latest row of a cell and repetition.
    #[must_use]
    pub fn record(&self, cell: &str, repetition: u32) -> Option<&Record> {
        self.rows.latest.get(cell, repetition)
    }

    /// Appends a row; on return, the row is on disk. It replaces an earlier row of the same cell and repetition.
    ///
    /// # Errors
    ///
    /// [`StoreError::Io`]; the journal is then unchanged.
    pub fn append(&mut self, record: &Record) -> Result<(), StoreError> {
        self.append_all(std::slice::from_ref(record))
    }

    /// Appends rows with one flush for all of them.
    ///
    /// # Errors
    ///
    /// [`StoreError::Io`]; the journal is then unchanged.
    pub fn append_all(&mut self, records: &[Record]) -> Result<(), StoreError> {
        self.rows.append(records)
    }
}

impl Store {
    fn schedules_mut(&mut self) -> Result<&mut Rows<ScheduleRow>, StoreError> {
        if self.schedules.is_none() {
            let (rows, cut) = Rows::open(&self.dir)?;
            self.notices.extend(torn(&self.dir.join(ScheduleRow::JOURNAL), cut));
            files::sync_folder(&self.dir)?;
            self.schedules = Some(rows);
        }
        Ok(self.schedules.as_mut().expect("opened above"))
    }

    /// The latest row of a scheduler's cell and repetition.
    #[must_use]
    pub fn schedule(&self, cell: &str, repetition: u32) -> Option<&ScheduleRow> {
        self.schedules.as_ref()?.latest.get(cell, repetition)
    }

    /// Appends a row of a schedule; on return, the row is on disk. It replaces an earlier row of the same cell and
    /// repetition.
    ///
    /// # Errors
    ///
    /// Like [`append`](Self::append), and like [`read_schedules`](schedule::read_schedules) at the first row.
    pub fn append_schedule(&mut self, row: &ScheduleRow) -> Result<(), StoreError> {
        self.schedules_mut()?.append(std::slice::from_ref(row))
    }

    /// Stores a problem or a schedule under the digest of its text; returns the digest.
    ///
    /// # Errors
    ///
    /// [`StoreError::Io`].
    pub fn put_document(&self, document: Document, text: &str) -> Result<String, StoreError> {
        schedule::put(&self.dir, document, text)
    }

    /// Stores the timeline of a schedule under the schedule's digest.
    ///
    /// # Errors
    ///
    /// [`StoreError::Io`].
    pub fn put_timeline(&self, schedule: &str, timeline: &schedule::Timeline) -> Result<(), StoreError> {
        let text = serde_json::to_string(timeline).map_err(|error| StoreError::Row {
            cell: schedule.to_owned(),
            repetition: 0,
            reason: error.to_string(),
        })?;
        schedule::put_as(&self.dir, Document::Timeline, schedule, &text)
    }
}

#[cfg(feature = "parquet")]
impl Store {
    /// Moves the journal's rows into a new shard and returns its path; `None` if there are no rows to move.
    ///
    /// # Errors
    ///
    /// [`StoreError::Io`]; no row is lost, and the journal keeps all rows that are not in a shard.
    pub fn compact(&mut self) -> Result<Option<PathBuf>, StoreError> {
        self.rows.compact(&self.dir)
    }

    /// Compacts the rows of replays, and locks their file meanwhile. A journal with an incomplete last line stays
    /// unchanged: the next writer reports the lost row.
    ///
    /// # Errors
    ///
    /// Like [`compact`](Self::compact), and like [`replay::read_rows`] if a row is damaged.
    pub fn compact_replays(&mut self) -> Result<Option<PathBuf>, StoreError> {
        let path = self.dir.join(ReplayRow::JOURNAL);
        if !path.exists() {
            return Ok(None);
        }
        let turn = replay::take_turn(&path)?;
        let is_torn = journal::read::<ReplayRow>(&path)?.torn.is_some();
        let shard = if is_torn { None } else { Rows::<ReplayRow>::open(&self.dir)?.0.compact(&self.dir)? };
        turn.unlock().map_err(StoreError::io("unlock", &path))?;
        Ok(shard)
    }

    /// Compacts the rows of schedules.
    ///
    /// # Errors
    ///
    /// Like [`compact`](Self::compact).
    pub fn compact_schedules(&mut self) -> Result<Option<PathBuf>, StoreError> {
        let dir = self.dir.clone();
        self.schedules.as_mut().map_or(Ok(None), |rows| rows.compact(&dir))
    }

    /// Stores an instance with its labels under its digest. An intact existing file stays unchanged, labels included.
    ///
    /// # Errors
    ///
    /// [`StoreError::Io`], or [`StoreError::Labels`] if there is not one label per buffer.
    pub fn put_instance(
        &self,
        instance: &planlab_dsa::Instance,
        labels: &planlab_dsa::Labels,
    ) -> Result<planlab_dsa::Digest, StoreError> {
        crate::instances::put_instance(&self.dir, instance, labels)
    }

    /// Stores a plan under its digest.
    ///
    /// # Errors
    ///
    /// [`StoreError::Io`].
    pub fn put_plan(&self, plan: &planlab_dsa::Plan) -> Result<planlab_dsa::Digest, StoreError> {
        crate::instances::put_plan(&self.dir, plan)
    }
}

/// The latest row of each cell and repetition, without opening the store for writing; a writer may be active. Rows of
/// older versions have the bound on any plan, as new ones do.
///
/// # Errors
///
/// Like [`Store::open`], except for the lock. It is also an error if the folder does not exist, or has neither a
/// journal nor shards nor replays nor a manifest: [`StoreError::NoResults`].
pub fn read_records(dir: impl AsRef<Path>) -> Result<Vec<Record>, StoreError> {
    let dir = dir.as_ref();
    require_store(dir)?;
    Ok(against_any_plan(shards::read_latest(dir)?))
}

/// Whether a folder is a store that keeps the instances and plans that its rows name. Curated records contain only
/// rows: neither a manifest nor folders of instances and plans.
#[must_use]
pub fn keeps_plans(dir: impl AsRef<Path>) -> bool {
    let dir = dir.as_ref();
    [manifest::path(dir), dir.join("instances"), dir.join("plans")].iter().any(|path| path.exists())
}

/// Refuses a folder that has contents but no results: it serves another purpose.
pub(crate) fn refuse_foreign(dir: &Path) -> Result<(), StoreError> {
    // In this order: another writer that begins a store meanwhile first creates a file that identifies it.
    match first_foreign(dir, &BTreeSet::new()).map_err(StoreError::io("read", dir))? {
        Some(file) if !is_store(dir) => Err(StoreError::NotAStore { path: dir.to_path_buf(), file }),
        _ => Ok(()),
    }
}

/// Refuses a folder that does not exist or has no results.
pub(crate) fn require_store(dir: &Path) -> Result<(), StoreError> {
    std::fs::read_dir(dir).map_err(StoreError::io("read", dir))?;
    if is_store(dir) { Ok(()) } else { Err(StoreError::NoResults { path: dir.to_path_buf() }) }
}

/// Whether a folder has results, or had them.
fn is_store(dir: &Path) -> bool {
    let has = |name: &str| dir.join(name).exists();
    let has_manifest = || match Manifest::read_if_there(dir) {
        Ok(manifest) => manifest.is_some(),
        // Other programs also use this file name.
        Err(_) => has("instances") || has("plans"),
    };
    each_kind!(R => has(R::JOURNAL) || has(R::SHARDS)).contains(&true)
        || framework::is_there(dir)
        || has_manifest()
}

/// The notice of an incomplete last line, if there was one.
pub(crate) fn torn(path: &Path, torn: Option<(u64, u64)>) -> Vec<Notice> {
    torn.map(|(line, bytes)| Notice::TornLine { path: path.to_path_buf(), line, bytes }).into_iter().collect()
}

pub(crate) fn lock(path: &Path) -> Result<File, StoreError> {
    let mut file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .open(path)
        .map_err(StoreError::io("open for writing", path))?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            let mut holder = String::new();
            // Only for the message: if the name is unreadable, it stays empty.
            let _ = file.read_to_string(&mut holder);
            return Err(StoreError::Locked { path: path.to_path_buf(), holder: holder.trim().to_owned() });
        }
        Err(TryLockError::Error(error)) => return Err(StoreError::io("lock", path)(error)),
    }
    name_holder(&mut file).map_err(StoreError::io("write", path))?;
    Ok(file)
}

/// A lock file begins with this word; any other content belongs to another program.
const HOLDER: &str = "process ";

fn name_holder(file: &mut File) -> std::io::Result<()> {
    let mut there = String::new();
    (&*file).take(1 << 10).read_to_string(&mut there)?;
    if !there.is_empty() && !there.starts_with(HOLDER) {
        return Err(std::io::Error::other("it is no lock of planlab; name another folder"));
    }
    file.set_len(0)?;
    file.rewind()?;
    writeln!(file, "{HOLDER}{}", std::process::id())
}
