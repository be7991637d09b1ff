//! What can go wrong.

use std::io;
use std::path::{Path, PathBuf};

/// A file that cannot be read: `file:line: what is wrong`, or `file: byte N: what is wrong` if it has no lines.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{file}{}: {reason}", place_text(*line, *byte))]
pub struct FormatError {
    file: String,
    line: u64,
    byte: Option<u64>,
    reason: String,
}

fn place_text(line: u64, byte: Option<u64>) -> String {
    byte.map_or_else(|| format!(":{line}"), |byte| format!(": byte {byte}"))
}

impl FormatError {
    /// An error at a line, from 1, of a file.
    #[must_use]
    pub fn new(file: impl Into<String>, line: u64, reason: impl Into<String>) -> Self {
        Self { file: file.into(), line, byte: None, reason: reason.into() }
    }

    /// An error at a byte, from 0, of a file that has no lines. Of a compressed file the bytes count unpacked.
    #[must_use]
    pub fn at_byte(file: impl Into<String>, byte: u64, reason: impl Into<String>) -> Self {
        Self { file: file.into(), line: 1, byte: Some(byte), reason: reason.into() }
    }

    /// The name that the reader was given.
    #[must_use]
    pub fn file(&self) -> &str {
        &self.file
    }

    /// The line, from 1; 1 in a file that has no lines.
    #[must_use]
    pub const fn line(&self) -> u64 {
        self.line
    }

    /// The byte, from 0, of a file that has no lines.
    #[must_use]
    pub const fn byte(&self) -> Option<u64> {
        self.byte
    }

    /// What is wrong, without the place.
    #[must_use]
    pub fn reason(&self) -> &str {
        &self.reason
    }
}

/// A file that could not be written; nothing of it is there. The system's reason is the error's source.
#[derive(Debug, thiserror::Error)]
#[error("{}: cannot be written{}", path.display(), place_without_folder(missing.as_deref()))]
pub struct SaveError {
    path: PathBuf,
    /// The outermost folder of the path that does not exist.
    missing: Option<PathBuf>,
    source: io::Error,
}

fn place_without_folder(folder: Option<&Path>) -> String {
    folder.map_or_else(String::new, |folder| format!(": there is no folder {}", folder.display()))
}

impl SaveError {
    /// The error of a file that the file system refused to write.
    #[must_use]
    pub fn new(path: &Path, source: io::Error) -> Self {
        let missing = if source.kind() == io::ErrorKind::NotFound { missing_folder(path) } else { None };
        Self { path: path.to_owned(), missing, source }
    }

    /// The file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What the file system said.
    #[must_use]
    pub fn into_source(self) -> io::Error {
        self.source
    }

    /// Whether the disk is full (rather than the folder missing or read-only).
    #[must_use]
    pub fn is_disk_full(&self) -> bool {
        is_disk_full(&self.source)
    }
}

fn missing_folder(path: &Path) -> Option<PathBuf> {
    let folders = path.ancestors().skip(1).filter(|folder| !folder.as_os_str().is_empty());
    folders.take_while(|folder| !folder.exists()).last().map(Path::to_owned)
}

/// A folder that is not written to.
#[expect(missing_docs, reason = "the fields are named in the messages")]
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FolderError {
    /// The file system refused.
    #[error("cannot {action} {}: {source}", path.display())]
    Io { action: &'static str, path: PathBuf, source: io::Error },
    /// There is something of this name, and it is no folder.
    #[error("{} is not a folder", path.display())]
    NotAFolder { path: PathBuf },
    /// The folder holds files that its manifest does not list; `file` is the first, from the folder.
    #[error(
        "{} holds {}, which is no file of `planlab {kind}`: move it elsewhere, or name another folder",
        path.display(), file.display()
    )]
    Foreign { path: PathBuf, file: PathBuf, kind: &'static str },
    /// The folder's manifest lists no files: an older version wrote it, or something else.
    #[error(
        "{} does not list the files of `planlab {kind}` (an earlier version wrote no list): move what you want to \
         keep elsewhere and remove {}, or name another folder",
        manifest.display(), path.display()
    )]
    NoList { path: PathBuf, manifest: PathBuf, kind: &'static str },
    /// What is read lies in the folder that is written, or the other way round.
    #[error(
        "{} is, contains or lies inside the results being read ({}); name a folder outside them", path.display(),
        read.display()
    )]
    Nested { path: PathBuf, read: PathBuf },
    /// The folder was replaced, and somebody put files into the earlier one meanwhile; `file` is the first, from the folder.
    #[error(
        "somebody put {} into {} while it was replaced: what was in it is kept in {}",
        file.display(), path.display(), kept.display()
    )]
    Kept { path: PathBuf, file: PathBuf, kept: PathBuf },
    /// The folder cannot be replaced as a whole, for what it is used for.
    #[error("{} cannot be replaced: {reason}; name another folder", path.display())]
    InUse { path: PathBuf, reason: &'static str },
}

impl FolderError {
    /// The folder, or what the file system refused.
    #[must_use]
    pub fn path(&self) -> &Path {
        match self {
            Self::Io { path, .. }
            | Self::NotAFolder { path }
            | Self::Foreign { path, .. }
            | Self::NoList { path, .. }
            | Self::Nested { path, .. }
            | Self::Kept { path, .. }
            | Self::InUse { path, .. } => path,
        }
    }

    /// Whether the disk (or the quota) is full.
    #[must_use]
    pub fn is_disk_full(&self) -> bool {
        matches!(self, Self::Io { source, .. } if is_disk_full(source))
    }

    pub(crate) fn from_io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_path_buf();
        move |source| Self::Io { action, path, source }
    }
}

/// Whether the system refused for want of room, on the disk or in the quota.
#[must_use]
pub fn is_disk_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}
