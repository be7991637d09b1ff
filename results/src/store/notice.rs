//! What opening a store reports to its user.

use std::fmt;
use std::path::{Path, PathBuf};

use crate::files::MissingShard;

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

/// The notice of an incomplete last line, if there was one.
pub(crate) fn torn(path: &Path, torn: Option<(u64, u64)>) -> Vec<Notice> {
    torn.map(|(line, bytes)| Notice::TornLine { path: path.to_path_buf(), line, bytes }).into_iter().collect()
}
