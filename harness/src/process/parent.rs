//! The parent's side: makes commands of hidden verbs, sends requests, listens to children, and ends them with all that
//! they started.

use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde::Serialize;

use super::limits::Cgroup;
use super::orphans::{collect_child, has_ended, signal_group};
use super::{Tail, read_tail};
use crate::cli::INPUT_LIMIT;
use crate::inputs;

/// How long a child has to end by itself once it is heard.
const GRACE: Duration = Duration::from_secs(1);
/// The part of a child's stderr that is kept, in bytes.
const TAIL: usize = 4096;

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
    let deadline = Instant::now() + GRACE;
    while Instant::now() < deadline {
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
