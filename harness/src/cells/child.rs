//! The child's side, a hidden verb for each kind, and its messages with the parent.

use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::kind::{CellContext, Kind};
use crate::process::{cancel_on_term, limit_address_space, receive_request, send_reply};
use crate::shell::exit::{Exit, Verdict};

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

/// Reads a request from stdin and serves it.
pub(crate) fn serve<K: Kind>() -> Verdict {
    let (request, mut channel) =
        receive_request(|request: &Request<K::Source, Vec<K::Asked>>| request.parent)?;
    limit_address_space(request.address_space)?;
    pin(request.core)?;
    let cancel = cancel_on_term()?;
    let problem = match K::open(&request.source) {
        Ok(problem) => problem,
        Err(failure) => {
            send_reply(&mut channel, &Reply::<K::Found>::Unreadable { reason: failure.full_message() })?;
            return Ok(failure.exit);
        }
    };
    for (cell, asked) in request.cells.iter().enumerate() {
        let mailbox = mailbox(&request.room, cell);
        let mut begin = || send_reply(&mut channel, &Reply::<K::Found>::Started { cell });
        let context = CellContext { mailbox: &mailbox, cancel: &cancel, begin: &mut begin };
        let found = K::perform(&problem, asked, context)?;
        send_reply(&mut channel, &Reply::Finished { cell, found: Box::new(found) })?;
    }
    Ok(Exit::Complete)
}

fn pin(core: Option<usize>) -> io::Result<()> {
    if let Some(core) = core {
        let mut cores = rustix::thread::CpuSet::new();
        cores.set(core);
        rustix::thread::sched_setaffinity(None, &cores)?;
    }
    Ok(())
}
