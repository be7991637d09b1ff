//! Appends rows of replays to the folder's file `replays.jsonl`, a separate journal. Several processes may write to it
//! at the same time: each locks the file while it appends, and none needs to open the store.
//! [`Store::compact_replays`](crate::Store) moves the rows into shards, `replays/<n>-<digest>.parquet`.

use std::fs::{self, File, OpenOptions};
use std::path::{Path, PathBuf};

use super::folder::refuse_foreign;
use super::notice::{Notice, torn};
use crate::StoreError;
use crate::files::{Journal, disk};
use crate::rows::{ReplayRow, ReplayRun, RowKind as _};

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
    journal: Journal<ReplayRun>,
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
        disk::create_folder(dir)?;
        let path = dir.join(ReplayRun::JOURNAL);
        let turn = take_turn(&path)?;
        let (journal, content) = Journal::open(&path)?;
        turn.unlock().map_err(StoreError::from_io("unlock", &path))?;
        disk::sync_folder(dir)?;
        let notices = torn(&path, content.torn);
        Ok((Self { path, turn, journal }, notices))
    }

    /// Appends rows; on return, they are on disk. A row replaces an earlier one of the same cell and repetition.
    ///
    /// # Errors
    ///
    /// Like [`append_rows`].
    pub fn append(&mut self, rows: &[ReplayRow]) -> Result<Vec<Notice>, StoreError> {
        self.turn.lock().map_err(StoreError::from_io("lock", &self.path))?;
        if !disk::is_open_as(&self.turn, &self.path) {
            // A repair has replaced the file.
            self.turn = take_turn(&self.path)?;
            self.journal = Journal::open(&self.path)?.0;
        }
        let appended = self.append_alone(rows);
        self.turn.unlock().map_err(StoreError::from_io("unlock", &self.path))?;
        appended
    }

    fn append_alone(&mut self, rows: &[ReplayRow]) -> Result<Vec<Notice>, StoreError> {
        let there = fs::metadata(&self.path).map_err(StoreError::from_io("read", &self.path))?.len();
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
        let turn = file.map_err(StoreError::from_io("open for writing", path))?;
        turn.lock().map_err(StoreError::from_io("lock", path))?;
        // A repair may have replaced the file meanwhile.
        if disk::is_open_as(&turn, path) {
            return Ok(turn);
        }
    }
}
