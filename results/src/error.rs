//! Errors of stores.

use std::io;
use std::path::{Path, PathBuf};

use planlab_files::FolderError;

/// Why a store could not be read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// A file system error.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// The attempted action: `create`, `read`, ...
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The error of the file system.
        source: io::Error,
    },
    /// The folder cannot hold results.
    #[error(transparent)]
    Folder(#[from] FolderError),
    /// The folder contains other files.
    #[error(
        "{} holds {} and no results: name another folder, or an empty one", path.display(), file.display()
    )]
    NotAStore {
        /// The folder.
        path: PathBuf,
        /// The first file in it.
        file: PathBuf,
    },
    /// Another process is writing to the store.
    #[error("{} is in use by another writer ({holder}); wait for it, or write to another folder", path.display())]
    Locked {
        /// The lock file.
        path: PathBuf,
        /// The holder, according to the lock file.
        holder: String,
    },
    /// A file that is damaged or not of the expected kind.
    #[error("{}: {reason}", path.display())]
    BadFile {
        /// The file.
        path: PathBuf,
        /// The problem.
        reason: String,
    },
    /// A file of a version unknown to this program.
    #[error("{}: it has schema {found}, but this program reads schema {known} and older", path.display())]
    Schema {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: u32,
        /// The newest known version.
        known: u32,
    },
    /// A damaged line, not one that a crash cut short, or one with a row that this program does not know.
    #[error("{}:{line}: {reason}", path.display())]
    BadLine {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: u64,
        /// The problem.
        reason: String,
    },
    /// A folder that was never a store, or an empty folder.
    #[error("{}: it holds no results: no journal.jsonl, no shards, no replays.jsonl, no frameworks.jsonl, no manifest.json", path.display())]
    NoResults {
        /// The folder.
        path: PathBuf,
    },
    /// The number of labels is not the number of buffers.
    #[error("there are labels for {labels} buffers, but the instance has {buffers}")]
    Labels {
        /// The number of labels.
        labels: usize,
        /// The number of buffers.
        buffers: usize,
    },
    /// A row of another schema.
    #[error("row {cell} (repetition {repetition}) cannot be written: {reason}")]
    Row {
        /// Its cell.
        cell: String,
        /// Its repetition.
        repetition: u32,
        /// The reason.
        reason: String,
    },
    /// An invalid query: bad SQL, an unknown table or column.
    #[error("{reason}")]
    Query {
        /// The problem.
        reason: String,
    },
}

impl StoreError {
    /// The file or folder of the error.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        match self {
            Self::Folder(error) => Some(error.path()),
            Self::Io { path, .. }
            | Self::NotAStore { path, .. }
            | Self::Locked { path, .. }
            | Self::BadFile { path, .. }
            | Self::Schema { path, .. }
            | Self::BadLine { path, .. }
            | Self::NoResults { path } => Some(path),
            Self::Labels { .. } | Self::Row { .. } | Self::Query { .. } => None,
        }
    }

    /// The line of the file, from 1, if the error concerns one.
    #[must_use]
    pub const fn line(&self) -> Option<u64> {
        match self {
            Self::BadLine { line, .. } => Some(*line),
            _ => None,
        }
    }

    /// Whether the disk (or the quota) is full: the same command may succeed once there is room.
    #[must_use]
    pub fn is_disk_full(&self) -> bool {
        match self {
            Self::Io { source, .. } => planlab_files::is_disk_full(source),
            Self::Folder(error) => error.is_disk_full(),
            _ => false,
        }
    }

    pub(crate) fn from_io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_path_buf();
        move |source| Self::Io { action, path, source }
    }

    pub(crate) fn bad_file(path: &Path, reason: &impl ToString) -> Self {
        Self::BadFile { path: path.to_path_buf(), reason: reason.to_string() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_is_told_from_a_folder_that_cannot_be_written() {
        for (code, is_full) in [(28, true), (13, false)] {
            let error = StoreError::from_io("write", Path::new("x"))(io::Error::from_raw_os_error(code));
            assert_eq!(error.is_disk_full(), is_full, "{error}");
        }
        assert!(!StoreError::Labels { labels: 1, buffers: 2 }.is_disk_full());
    }
}
