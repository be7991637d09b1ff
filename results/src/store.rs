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
//! ```
//!
//! Files under the folders appear whole or not at all. Compaction writes the shard first, then names it in the
//! manifest, and empties the journal once both are on the disk; a crash in between leaves rows in both, which are one row to
//! every reader: of the rows of one cell and repetition the latest counts, and the journal is later than
//! the shards.

use std::collections::BTreeSet;
use std::fmt;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read as _, Seek as _, Write as _};
use std::path::{Path, PathBuf};

use planlab_files::first_foreign;

use crate::journal::{self, Journal};
use crate::latest::Latest;
#[cfg(feature = "parquet")]
use crate::manifest::Shard;
use crate::manifest::{self, Manifest, MissingShard, missing_shards};
use crate::record::Record;
use crate::{StoreError, files, replay};

pub(crate) const JOURNAL: &str = "journal.jsonl";
pub(crate) const SHARDS: &str = "shards";

/// Something that a reader should know and need not act on.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Notice {
    /// The last line of the journal was cut short by a crash; its row is lost and will be made again.
    TornLine {
        /// The journal.
        path: PathBuf,
        /// From 1.
        line: u64,
        /// How much of the line there was.
        bytes: u64,
    },
    /// A shard is gone; its rows are lost and will be made again.
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

/// A store that is open for writing. There is one writer at a time.
#[derive(Debug)]
pub struct Store {
    dir: PathBuf,
    journal: Journal<Record>,
    latest: Latest<Record>,
    /// Indices of rows that no shard has yet.
    fresh: BTreeSet<usize>,
    notices: Vec<Notice>,
    _lock: File,
}

impl Store {
    /// Opens the store of a folder, and makes the folder where there is none.
    ///
    /// # Errors
    ///
    /// [`StoreError::Locked`] while another process writes to it, [`StoreError::Io`] where the folder
    /// cannot be written, [`StoreError::NotAStore`] where it holds something else, [`StoreError::Corrupt`] and
    /// [`StoreError::BadFile`] where a file is damaged, [`StoreError::Schema`] where it was made by a newer program.
    pub fn open(dir: impl AsRef<Path>) -> Result<Self, StoreError> {
        let dir = dir.as_ref();
        refuse_foreign(dir)?;
        for folder in [dir, &dir.join(SHARDS), &dir.join("instances"), &dir.join("plans")] {
            files::create_folder(folder)?;
        }
        let lock = lock(&dir.join("lock"))?;
        let path = dir.join(JOURNAL);
        let (journal, content) = Journal::open(&path)?;
        files::sync_folder(dir)?;
        let mut latest = Latest::of(read_shards(dir)?);
        let fresh = content.rows.into_iter().filter_map(|record| latest.put(record)).collect();
        let mut notices = torn(&path, content.torn);
        notices.extend(missing_shards(dir)?.into_iter().map(Notice::MissingShard));
        Ok(Self { dir: dir.to_path_buf(), journal, latest, fresh, notices, _lock: lock })
    }

    /// The folder.
    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// What was noticed when the store was opened.
    #[must_use]
    pub fn notices(&self) -> &[Notice] {
        &self.notices
    }

    /// The latest row of each cell and repetition, in the order in which the cells first came.
    #[must_use]
    pub fn records(&self) -> &[Record] {
        self.latest.rows()
    }

    /// The latest row of a cell and repetition.
    #[must_use]
    pub fn record(&self, cell: &str, repetition: u32) -> Option<&Record> {
        self.latest.get(cell, repetition)
    }

    /// Appends a row; when it returns, the row is on the disk. A row of the same cell and repetition is
    /// replaced.
    ///
    /// # Errors
    ///
    /// [`StoreError::Io`]; the journal is then as it was before.
    pub fn append(&mut self, record: &Record) -> Result<(), StoreError> {
        self.append_all(std::slice::from_ref(record))
    }

    /// Appends rows with one flush for all of them.
    ///
    /// # Errors
    ///
    /// [`StoreError::Io`]; the journal is then as it was before.
    pub fn append_all(&mut self, records: &[Record]) -> Result<(), StoreError> {
        self.journal.append(records)?;
        for record in records {
            if let Some(at) = self.latest.put(record.clone()) {
                self.fresh.insert(at);
            }
        }
        Ok(())
    }
}

#[cfg(feature = "parquet")]
impl Store {
    /// Moves the journal's rows into a new shard and gives its path; `None` where there are none to move.
    ///
    /// # Errors
    ///
    /// [`StoreError::Io`]; no row is lost, and the journal still has what no shard has.
    pub fn compact(&mut self) -> Result<Option<PathBuf>, StoreError> {
        let shard = if self.fresh.is_empty() { None } else { Some(self.write_shard()?) };
        self.fresh.clear();
        if !self.journal.is_empty() {
            self.journal.clear()?;
        }
        Ok(shard)
    }

    fn write_shard(&self) -> Result<PathBuf, StoreError> {
        let rows: Vec<&Record> = self.fresh.iter().map(|&at| &self.latest.rows()[at]).collect();
        let bytes = crate::frame::encode(&rows)?;
        let digest = planlab_dsa::Digest::of_bytes(&bytes).short();
        let number = next_shard(&self.dir)?;
        let path = self.dir.join(SHARDS).join(format!("{number:06}-{digest}.parquet"));
        let mut manifest = with_all_shards(&self.dir, Manifest::read(&self.dir)?)?;
        files::write_whole(&path, &bytes)?;
        manifest.shards.push(shard(&path, rows.len()));
        manifest.write(&self.dir)?;
        Ok(path)
    }

    /// Keeps an instance with its labels, under its digest. An instance that is there already, and whole, is left
    /// as it is, labels included.
    ///
    /// # Errors
    ///
    /// [`StoreError::Io`], or [`StoreError::Labels`] where there is not one label for each buffer.
    pub fn put_instance(
        &self,
        instance: &planlab_dsa::Instance,
        labels: &planlab_dsa::Labels,
    ) -> Result<planlab_dsa::Digest, StoreError> {
        crate::instances::put_instance(&self.dir, instance, labels)
    }

    /// Keeps a plan under its digest.
    ///
    /// # Errors
    ///
    /// [`StoreError::Io`].
    pub fn put_plan(&self, plan: &planlab_dsa::Plan) -> Result<planlab_dsa::Digest, StoreError> {
        crate::instances::put_plan(&self.dir, plan)
    }
}

/// The latest row of each cell and repetition, without opening the store for writing; a writer may be
/// at work.
///
/// # Errors
///
/// As [`Store::open`], save the lock. A folder that is not there is an error, and so is one that has
/// neither a journal nor shards nor replays nor a manifest: [`StoreError::NoResults`].
pub fn read_records(dir: impl AsRef<Path>) -> Result<Vec<Record>, StoreError> {
    let dir = dir.as_ref();
    require_store(dir)?;
    // The journal first: rows that a writer moves to a shard meanwhile are then seen in either.
    let journal = journal::read(&dir.join(JOURNAL))?;
    Ok(Latest::of(read_shards(dir)?.into_iter().chain(journal.rows)).into_rows())
}

/// Whether a folder is a store that keeps the instances and plans that its rows name. Curated records have rows alone:
/// neither a manifest nor folders of instances and plans.
#[must_use]
pub fn keeps_plans(dir: impl AsRef<Path>) -> bool {
    let dir = dir.as_ref();
    [manifest::path(dir), dir.join("instances"), dir.join("plans")].iter().any(|path| path.exists())
}

/// Refuses a folder that holds something and no results: what is in it belongs to somebody else.
pub(crate) fn refuse_foreign(dir: &Path) -> Result<(), StoreError> {
    // In this order: another writer may begin a store meanwhile, and makes first what tells one.
    match first_foreign(dir, &BTreeSet::new()).map_err(StoreError::io("read", dir))? {
        Some(file) if !is_store(dir) => Err(StoreError::NotAStore { path: dir.to_path_buf(), file }),
        _ => Ok(()),
    }
}

/// Refuses a folder that is not there, or has no results.
pub(crate) fn require_store(dir: &Path) -> Result<(), StoreError> {
    std::fs::read_dir(dir).map_err(StoreError::io("read", dir))?;
    if is_store(dir) { Ok(()) } else { Err(StoreError::NoResults { path: dir.to_path_buf() }) }
}

/// Whether a folder has results, or has lost them.
fn is_store(dir: &Path) -> bool {
    let has = |name: &str| dir.join(name).exists();
    let has_manifest = || match Manifest::read_if_there(dir) {
        Ok(manifest) => manifest.is_some(),
        // Other programs have a file of this name too.
        Err(_) => has("instances") || has("plans"),
    };
    has(JOURNAL) || has(SHARDS) || replay::is_there(dir) || has_manifest()
}

/// The manifest, with the shards that it does not name yet.
#[cfg(feature = "parquet")]
pub(crate) fn with_all_shards(dir: &Path, mut manifest: Manifest) -> Result<Manifest, StoreError> {
    for path in files::list(&dir.join(SHARDS), "parquet")? {
        let is_named = |known: &Shard| path.file_name().is_some_and(|name| name == known.name.as_str());
        if !manifest.shards.iter().any(is_named) {
            let rows = read_shard(&path)?.len();
            manifest.shards.push(shard(&path, rows));
        }
    }
    Ok(manifest)
}

#[cfg(not(feature = "parquet"))]
pub(crate) fn with_all_shards(dir: &Path, manifest: Manifest) -> Result<Manifest, StoreError> {
    read_shards(dir).map(|_| manifest)
}

#[cfg(feature = "parquet")]
fn shard(path: &Path, rows: usize) -> Shard {
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    Shard { name, rows: rows as u64 }
}

/// The notice of a torn last line, where there was one.
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
            // Only for the message: an unreadable name leaves it empty.
            let _ = file.read_to_string(&mut holder);
            return Err(StoreError::Locked { path: path.to_path_buf(), holder: holder.trim().to_owned() });
        }
        Err(TryLockError::Error(error)) => return Err(StoreError::io("lock", path)(error)),
    }
    name_holder(&mut file).map_err(StoreError::io("write", path))?;
    Ok(file)
}

/// What a lock file says begins so; one that says something else is somebody's file.
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

#[cfg(feature = "parquet")]
fn next_shard(dir: &Path) -> Result<u64, StoreError> {
    let shards = files::list(&dir.join(SHARDS), "parquet")?;
    let numbers = shards.iter().filter_map(|path| {
        let name = path.file_name()?.to_str()?;
        name.split_once('-')?.0.parse::<u64>().ok()
    });
    Ok(numbers.max().map_or(1, |last| last + 1))
}

#[cfg(feature = "parquet")]
fn read_shards(dir: &Path) -> Result<Vec<Record>, StoreError> {
    let mut records = Vec::new();
    for path in files::list(&dir.join(SHARDS), "parquet")? {
        records.append(&mut read_shard(&path)?);
    }
    Ok(records)
}

/// The rows of a shard; none where it is gone meanwhile.
#[cfg(feature = "parquet")]
pub(crate) fn read_shard(path: &Path) -> Result<Vec<Record>, StoreError> {
    let Some(bytes) = files::read_if_there(path)? else { return Ok(Vec::new()) };
    let name = path.file_stem().and_then(|name| name.to_str()).unwrap_or_default();
    let digest = planlab_dsa::Digest::of_bytes(&bytes).short();
    // A shard that somebody else named says nothing of its content.
    let is_ours = name.split_once('-').is_some_and(|(number, rest)| {
        number.parse::<u64>().is_ok()
            && rest.len() == digest.len()
            && rest.bytes().all(|b| b.is_ascii_hexdigit())
    });
    if is_ours && !name.ends_with(&digest) {
        let reason = "it is damaged: its content has another digest than its name says; \
                      `planlab audit --repair` sets it aside";
        return Err(StoreError::bad_file(path, &reason));
    }
    crate::frame::decode(path, bytes)
}

#[cfg(not(feature = "parquet"))]
fn read_shards(dir: &Path) -> Result<Vec<Record>, StoreError> {
    match files::list(&dir.join(SHARDS), "parquet")?.into_iter().next() {
        Some(path) => Err(StoreError::NoParquet { path }),
        None => Ok(Vec::new()),
    }
}
