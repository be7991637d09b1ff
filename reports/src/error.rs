//! What can go wrong with a report.

use std::io;
use std::path::{Path, PathBuf};

use planlab_results::StoreError;

/// Why a report could not be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReportError {
    /// The records could not be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The file system refused.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// On what.
        path: PathBuf,
        /// What the file system said.
        source: io::Error,
    },
    /// A folder that holds something else than a report.
    #[error("{} is not empty and holds no report; name another folder, or empty it", path.display())]
    NotAReport {
        /// The folder.
        path: PathBuf,
    },
    /// A picture that could not be drawn.
    #[error("cannot draw {what}: {reason}")]
    Draw {
        /// Which.
        what: String,
        /// Why not.
        reason: String,
    },
}

impl ReportError {
    pub(crate) fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_path_buf();
        move |source| Self::Io { action, path, source }
    }

    /// Whether the disk (or the quota) is full.
    #[must_use]
    pub fn is_disk_full(&self) -> bool {
        match self {
            Self::Store(error) => error.is_disk_full(),
            Self::Io { source, .. } => {
                matches!(source.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
            }
            _ => false,
        }
    }
}
