//! The child's side: it reads its request, reserves stdout for its answers, and does not outlive its parent.

use std::fs::File;
use std::io::{self, BufRead, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use planlab_dsa::CancelToken;
use rustix::process::{Resource, Rlimit, Signal, getppid, set_parent_process_death_signal, setrlimit};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::shell::exit::Failure;

/// Reads a request from stdin, and takes stdout for the answers.
///
/// # Errors
///
/// If stdin contains no request, or the parent has ended; `parent` returns its process id.
pub(crate) fn receive_request<Request: DeserializeOwned>(
    parent: fn(&Request) -> u32,
) -> Result<(Request, File), Failure> {
    let channel = private_stdout()?;
    let mut line = String::new();
    io::stdin().lock().read_line(&mut line)?;
    let request: Request = serde_json::from_str(&line)?;
    die_with_parent(parent(&request))?;
    leave_no_core()?;
    Ok((request, channel))
}

/// Reserves stdout for the protocol: from now on, what planners and solvers print goes to stderr.
fn private_stdout() -> io::Result<File> {
    let private: OwnedFd = io::stdout().as_fd().try_clone_to_owned()?;
    rustix::stdio::dup2_stdout(io::stderr())?;
    Ok(File::from(private))
}

/// Binds this process to its parent: a child of a killed parent would disturb the next measurement.
///
/// # Errors
///
/// If the parent has ended already.
pub(crate) fn die_with_parent(parent: u32) -> Result<(), Failure> {
    set_parent_process_death_signal(Some(Signal::KILL))?;
    // The parent may have died before the line above.
    let now = getppid().map_or(0, |pid| pid.as_raw_nonzero().get());
    if u32::try_from(now) == Ok(parent) {
        Ok(())
    } else {
        Err(anyhow::anyhow!("the parent process is gone").into())
    }
}

/// Limits the address space of this process, if asked to.
pub(crate) fn limit_address_space(bytes: Option<u64>) -> io::Result<()> {
    bytes.map_or(Ok(()), |bytes| {
        Ok(setrlimit(Resource::As, Rlimit { current: Some(bytes), maximum: Some(bytes) })?)
    })
}

/// Disables core dumps: a crash becomes a row instead.
fn leave_no_core() -> io::Result<()> {
    Ok(setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) })?)
}

/// A token that is cancelled when the parent asks the child to stop.
pub(crate) fn cancel_on_term() -> io::Result<CancelToken> {
    let flag = Arc::new(AtomicBool::new(false));
    signal_hook::flag::register(signal_hook::consts::SIGTERM, Arc::clone(&flag))?;
    Ok(CancelToken::from(flag))
}

/// Writes an answer as one line.
pub(crate) fn send_reply(channel: &mut File, reply: &impl Serialize) -> io::Result<()> {
    let mut line = serde_json::to_vec(reply)?;
    line.push(b'\n');
    channel.write_all(&line)
}
