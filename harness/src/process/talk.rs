//! A talk with a child whose answer is one stream, which is read as it comes.

use std::io;
use std::process::{Child, ChildStdout, Command, ExitStatus};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use planlab_dsa::CancelToken;
use rustix::process::Signal;
use serde::Serialize;

use super::limits::Cgroup;
use super::orphans::{signal_group, spawn_child};
use super::parent::{confine_child, end_of, reap_child, send_request};

/// How often the parent checks whether it was interrupted.
const POLL_INTERVAL: Duration = Duration::from_millis(100);
/// The longest that a killed child takes to close its stdout.
const CLOSING: Duration = Duration::from_secs(10);

/// A child's answer, and how it ended.
pub(crate) struct Talk<A> {
    /// What was made of its stdout.
    pub(crate) answer: A,
    /// Whether the parent was interrupted and killed it.
    pub(crate) is_interrupted: bool,
    pub(crate) status: ExitStatus,
    /// The end of what it wrote to stderr.
    pub(crate) stderr: String,
}

/// Starts a child, in a group if its memory is limited, sends it a request and waits for its end. `read` receives its
/// stdout, in a thread, and makes the answer of it.
///
/// # Errors
///
/// If the child cannot be started. A failure of the child itself is not an error.
pub(crate) fn talk_to_child<A: Default + Send + 'static>(
    mut command: Command,
    request: &impl Serialize,
    cancel: &CancelToken,
    group: Option<&Cgroup>,
    read: impl FnOnce(ChildStdout) -> A + Send + 'static,
) -> io::Result<Talk<A>> {
    let mut child = spawn_child(&mut command)?;
    confine_child(&mut child, group)?;
    send_request(&mut child, request);
    let tail = end_of(&mut child);
    let (answer, is_interrupted) = follow_child(&mut child, cancel, read);
    let status = reap_child(&mut child)?;
    Ok(Talk { answer, is_interrupted, status, stderr: tail.finish_tail() })
}

/// Returns the answer once the child has closed its stdout, and whether it had to be killed.
fn follow_child<A: Default + Send + 'static>(
    child: &mut Child,
    cancel: &CancelToken,
    read: impl FnOnce(ChildStdout) -> A + Send + 'static,
) -> (A, bool) {
    let (sender, answers) = mpsc::channel();
    let stdout = child.stdout.take();
    thread::spawn(move || {
        let _ = sender.send(stdout.map(read).unwrap_or_default());
    });
    loop {
        if let Ok(answer) = answers.recv_timeout(POLL_INTERVAL) {
            return (answer, false);
        }
        if cancel.is_cancelled() {
            signal_group(child.id(), Signal::KILL);
            return (answers.recv_timeout(CLOSING).unwrap_or_default(), true);
        }
    }
}
