//! Errors of reports.

use planlab_files::FolderError;
use planlab_results::StoreError;

/// Why a report could not be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReportError {
    /// The records could not be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The folder cannot take the pages.
    #[error(transparent)]
    Folder(#[from] FolderError),
    /// Drawing a picture failed.
    #[error("cannot draw {what}: {reason}")]
    Draw {
        /// The picture.
        what: String,
        /// The reason.
        reason: String,
    },
}
