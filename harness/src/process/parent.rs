//! The parent's side: starts children of hidden verbs, listens and talks to them, and ends them with all that they started.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};

use planlab_dsa::CancelToken;
use rustix::process::Signal;
use serde::Serialize;

use super::limits::Cgroup;
use super::orphans::{collect_child, has_ended, signal_group, spawn_child};
use super::{Tail, read_tail};
use crate::cli::INPUT_LIMIT;
use crate::inputs;

/// How long a child has to end by itself once it is heard.
const GRACE: Duration = Duration::from_secs(1);
/// The part of a child's stderr that is kept, in bytes.
const TAIL: usize = 4096;
/// How often the parent checks whether it was interrupted.
const PATIENCE: Duration = Duration::from_millis(100);
/// The longest that a killed child takes to close its stdout.
const CLOSING: Duration = Duration::from_secs(10);

/// Why a child gave no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Death {
    /// Ran past its time limit and was killed.
    Timeout,
    OutOfMemory,
    Signal(i32),
    Exit(i32),
    /// Broke the protocol, or did not answer the request.
    BadOutput(String),
    /// The child could not read its input.
    Unreadable(String),
    /// The run was interrupted.
    Interrupted,
}

/// A child of a hidden verb, in a process group of its own, with pipes, ready to be started.
///
/// # Errors
///
/// If the path of this program is not known.
pub(crate) fn hidden_command(verb: &str) -> io::Result<Command> {
    let mut command = Command::new(std::env::current_exe()?);
    command
        .arg(verb)
        .env(INPUT_LIMIT, inputs::input_limits().unpacked_bytes().to_string())
        .process_group(0)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    Ok(command)
}

/// Writes a request to the child's stdin, and closes it.
pub(crate) fn send_request(child: &mut Child, request: &impl Serialize) {
    if let Some(mut stdin) = child.stdin.take() {
        let mut line = serde_json::to_vec(request).expect("a request is plain data");
        line.push(b'\n');
        // If the child died before reading, its exit status shows that.
        let _ = stdin.write_all(&line);
    }
}

/// The lines that a child writes, as they come; disconnected once its stdout is closed. An incomplete last line is dropped.
pub(crate) type Lines = Receiver<Vec<u8>>;

/// Listens to the child's stdout.
pub(crate) fn listen_to(child: &mut Child) -> Lines {
    let (sender, lines) = mpsc::channel();
    if let Some(stdout) = child.stdout.take() {
        let mut stdout = BufReader::new(stdout);
        let mut next = move || {
            let mut line = Vec::new();
            stdout.read_until(b'\n', &mut line).ok()?;
            (line.pop() == Some(b'\n')).then_some(line)
        };
        thread::spawn(move || while next().is_some_and(|line| sender.send(line).is_ok()) {});
    }
    lines
}

/// The end of the child's stderr.
pub(crate) fn end_of(child: &mut Child) -> Tail {
    read_tail(child.stderr.take(), TAIL)
}

/// Waits for the child, then kills what is left of its process group.
///
/// # Errors
///
/// If waiting for the child fails.
pub(crate) fn reap_child(child: &mut Child) -> io::Result<ExitStatus> {
    let patience = Instant::now() + GRACE;
    while Instant::now() < patience {
        if has_ended(child.id())? {
            return collect_child(child);
        }
        thread::sleep(Duration::from_millis(1));
    }
    signal_group(child.id(), Signal::KILL);
    collect_child(child)
}

/// Limits the memory of a child by a group.
///
/// # Errors
///
/// If that fails. The child is killed then.
pub(crate) fn confine_child(child: &mut Child, group: Option<&Cgroup>) -> io::Result<()> {
    let added = group.map_or(Ok(()), |group| group.add_process(child.id()));
    if added.is_err() {
        signal_group(child.id(), Signal::KILL);
        let _ = reap_child(child);
    }
    added
}

/// Why a child ended without an answer.
pub(crate) fn death_cause(status: ExitStatus, ran_out_of_memory: bool, stderr: &str) -> Death {
    // Without a cgroup: Rust's and C++'s messages for a failed allocation.
    let failed = ["memory allocation of ", "std::bad_alloc"].iter().any(|words| stderr.contains(words));
    if ran_out_of_memory || failed {
        return Death::OutOfMemory;
    }
    match (status.signal(), status.code()) {
        (Some(signal), _) => Death::Signal(signal),
        (None, Some(0)) => Death::BadOutput("the child ended without an answer".to_owned()),
        (None, code) => Death::Exit(code.unwrap_or(-1)),
    }
}

/// A child's answer, and how it ended.
pub(crate) struct Talk<A = Vec<u8>> {
    /// What it wrote to stdout.
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

/// Starts a child, sends it a request and waits for its end; kills it after `limit`.
///
/// # Errors
///
/// If the child cannot be started. A failure of the child itself is not an error.
pub(crate) fn talk_to_child(
    command: Command,
    request: &impl Serialize,
    limit: Duration,
    cancel: &CancelToken,
) -> io::Result<Talk> {
    let read = |mut stdout: ChildStdout| {
        let mut answer = Vec::new();
        // Unreadable output counts as not written.
        let _ = stdout.read_to_end(&mut answer);
        answer
    };
    talk_through(command, request, limit, cancel, None, read)
}

/// As [`talk_to_child`], with the memory of the child limited by a group. `read` receives its stdout, in a thread, and makes the
/// answer of it.
pub(crate) fn talk_through<A: Default + Send + 'static>(
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
