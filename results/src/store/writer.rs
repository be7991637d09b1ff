//! The one writer of a store.

use std::fs::File;
use std::path::{Path, PathBuf};

use super::folder::{lock, refuse_foreign};
use super::notice::{Notice, torn};
#[cfg(feature = "parquet")]
use super::replays;
use crate::StoreError;
#[cfg(feature = "parquet")]
use crate::files::journal;
use crate::files::shards::Rows;
use crate::files::{disk, missing_shards};
#[cfg(feature = "parquet")]
use crate::rows::ReplayRun;
use crate::rows::{PlannerRun, Record, RowKind as _, ScheduleRow, SchedulerRun, ShardedKind as _};

/// A store that is open for writing. It has one writer at a time.
#[derive(Debug)]
pub struct Store {
    dir: PathBuf,
    rows: Rows<PlannerRun>,
    /// Opened on first use: most stores have none.
    schedules: Option<Rows<SchedulerRun>>,
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
        for folder in [dir, &dir.join(PlannerRun::SHARDS), &dir.join("instances"), &dir.join("plans")] {
            disk::create_folder(folder)?;
        }
        let lock = lock(&dir.join("lock"))?;
        let (rows, cut) = Rows::open(dir)?;
        disk::sync_folder(dir)?;
        let mut notices = torn(&dir.join(PlannerRun::JOURNAL), cut);
        notices.extend(missing_shards(dir)?.into_iter().map(Notice::MissingShard));
        let mut store = Self { dir: dir.to_path_buf(), rows, schedules: None, notices, _lock: lock };
        if dir.join(SchedulerRun::JOURNAL).exists() || dir.join(SchedulerRun::SHARDS).exists() {
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

    fn schedules_mut(&mut self) -> Result<&mut Rows<SchedulerRun>, StoreError> {
        if self.schedules.is_none() {
            let (rows, cut) = Rows::open(&self.dir)?;
            self.notices.extend(torn(&self.dir.join(SchedulerRun::JOURNAL), cut));
            disk::sync_folder(&self.dir)?;
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
    /// Like [`append`](Self::append), and like [`read_schedules`](super::read_schedules) at the first row.
    pub fn append_schedule(&mut self, row: &ScheduleRow) -> Result<(), StoreError> {
        self.schedules_mut()?.append(std::slice::from_ref(row))
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
    /// Like [`compact`](Self::compact), and like [`read_rows`](super::read_rows) if a row is damaged.
    pub fn compact_replays(&mut self) -> Result<Option<PathBuf>, StoreError> {
        let path = self.dir.join(ReplayRun::JOURNAL);
        if !path.exists() {
            return Ok(None);
        }
        let turn = replays::take_turn(&path)?;
        let is_torn = journal::read_journal::<ReplayRun>(&path)?.torn.is_some();
        let shard = if is_torn { None } else { Rows::<ReplayRun>::open(&self.dir)?.0.compact(&self.dir)? };
        turn.unlock().map_err(StoreError::from_io("unlock", &path))?;
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
}
