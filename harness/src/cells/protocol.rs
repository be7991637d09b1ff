//! The messages between parent and child.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// A child's task: to read one source and to answer questions about it, one after the other.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Request<S, A> {
    pub(super) source: S,
    /// The id of the asking process, which the child does not outlive.
    pub(super) parent: u32,
    /// Folder of the mailboxes.
    pub(super) room: PathBuf,
    /// Address-space limit in bytes, if no cgroup enforces the memory limit.
    pub(super) address_space: Option<u64>,
    /// The core to pin the child to.
    pub(super) core: Option<usize>,
    pub(super) cells: A,
}

/// A line from the child.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Reply<F> {
    /// The source cannot be read; the child ends.
    Unreadable { reason: String },
    /// A run of cell `cell` begins.
    Started { cell: usize },
    /// Cell `cell` is done. What it kept is in the mailbox.
    Finished { cell: usize, found: Box<F> },
}

/// Where a child keeps its best for a cell.
pub(super) fn mailbox(room: &Path, cell: usize) -> PathBuf {
    room.join(cell.to_string())
}
