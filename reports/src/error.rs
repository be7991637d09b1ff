//! What can go wrong with a report.

use planlab_files::FolderError;
use planlab_results::StoreError;

/// Why a report could not be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReportError {
    /// The records could not be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The pages cannot be written to that folder.
    #[error(transparent)]
    Folder(#[from] FolderError),
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
    /// Whether the disk (or the quota) is full.
    #[must_use]
    pub fn is_disk_full(&self) -> bool {
        match self {
            Self::Store(error) => error.is_disk_full(),
            Self::Folder(error) => error.is_disk_full(),
            _ => false,
        }
    }
}
