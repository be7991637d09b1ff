//! A talk with a child whose answer is one stream, which is read as it comes.

use std::io;
use std::process::{Child, ChildStdout, Command, ExitStatus};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use planlab_dsa::CancelToken;
use rustix::process::Signal;
use serde::Serialize;

use super::limits::Cgroup;
use super::orphans::{signal_group, spawn_child};
use super::parent::{Death, confine_child, death_cause, end_of, reap_child, send_request};

/// How often the parent checks whether it was interrupted.
const PATIENCE: Duration = Duration::from_millis(100);
/// The longest that a killed child takes to close its stdout.
const CLOSING: Duration = Duration::from_secs(10);

/// A child's answer, and how it ended.
pub(crate) struct Talk<A> {
    /// What was made of its stdout.
    pub(crate) answer: A,
    /// Why the parent killed it, if it did.
    pub(crate) killed: Option<Death>,
    pub(crate) status: ExitStatus,
    /// The end of what it wrote to stderr.
    pub(crate) stderr: String,
}

impl<A> Talk<A> {
    /// How a child ended whose answer is missing or incomplete.
    pub(crate) fn death_of_child(&self) -> Death {
        self.killed.clone().unwrap_or_else(|| death_cause(self.status, false, &self.stderr))
    }
}

/// Starts a child, in a group if its memory is limited, sends it a request and waits for its end; kills it after `limit`.
/// `read` receives its stdout, in a thread, and makes the answer of it.
///
/// # Errors
///
/// If the child cannot be started. A failure of the child itself is not an error.
pub(crate) fn talk_to_child<A: Default + Send + 'static>(
    mut command: Command,
    request: &impl Serialize,
    limit: Duration,
    cancel: &CancelToken,
    group: Option<&Cgroup>,
    read: impl FnOnce(ChildStdout) -> A + Send + 'static,
) -> io::Result<Talk<A>> {
    let mut child = spawn_child(&mut command)?;
    confine_child(&mut child, group)?;
    send_request(&mut child, request);
    let tail = end_of(&mut child);
    let (answer, killed) = follow_child(&mut child, limit, cancel, read);
    let status = reap_child(&mut child)?;
    Ok(Talk { answer, killed, status, stderr: tail.finish_tail() })
}

/// Returns the answer once the child has closed its stdout, and the reason if it had to be killed.
fn follow_child<A: Default + Send + 'static>(
    child: &mut Child,
    limit: Duration,
    cancel: &CancelToken,
    read: impl FnOnce(ChildStdout) -> A + Send + 'static,
) -> (A, Option<Death>) {
    let (sender, news) = mpsc::channel();
    let stdout = child.stdout.take();
    thread::spawn(move || {
        let _ = sender.send(stdout.map(read).unwrap_or_default());
    });
    let deadline = Instant::now() + limit;
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        if let Ok(answer) = news.recv_timeout(left.min(PATIENCE)) {
            return (answer, None);
        }
        if cancel.is_cancelled() || left.is_zero() {
            signal_group(child.id(), Signal::KILL);
            let death = if cancel.is_cancelled() { Death::Interrupted } else { Death::Timeout };
            return (news.recv_timeout(CLOSING).unwrap_or_default(), Some(death));
        }
    }
}
