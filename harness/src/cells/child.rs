//! The child's side: a hidden verb for each kind.

use std::io;

use super::kind::{Desk, Kind};
use super::protocol::{Reply, Request, mailbox};
use crate::process::{cancel_on_term, limit_address_space, receive_request, send_reply};
use crate::shell::exit::{Exit, Verdict};

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
        let desk = Desk { mailbox: &mailbox, cancel: &cancel, begin: &mut begin };
        let found = K::perform(&problem, asked, desk)?;
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
