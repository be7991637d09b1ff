//! The parent's side of a replay: starts a child, holds it to its time, and has an end for it whatever it does.

use std::io::{self, Read};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use planlab_dsa::CancelToken;
use planlab_replay::host::Report;
use rustix::process::Signal;
use serde::Serialize;

use super::contender::malloc;
use super::protocol::{Reply, Request};
use crate::cli::INPUT_LIMIT;
use crate::input;
use crate::isolation::Death;
use crate::isolation::supervisor::{cause, read_tail, reap, send, signal};

/// Variables that change what allocators do, or put another in their place, begin so; children have none but what their contender stands for.
const ALLOCATOR_VARIABLES: [&str; 5] =
    ["_RJEM_MALLOC_", "MIMALLOC_", "MALLOC_", "GLIBC_TUNABLES", "LD_PRELOAD"];
/// Plays on a device, where checkers of its memory come by `LD_PRELOAD`.
pub(crate) const DEVICE_VERB: &str = "run-device-replay";
/// How often the parent looks whether it was interrupted.
const PATIENCE: Duration = Duration::from_millis(100);
/// The longest that a killed child takes to close its stdout.
const GRACE: Duration = Duration::from_secs(10);

/// What became of a child.
#[derive(Clone, Debug)]
pub(crate) enum ReplayEnd {
    Played(Box<Report>),
    /// It cannot read what it was given.
    Unreadable(String),
    /// Why there is no report, and the end of what it wrote to stderr.
    Died(Death, String),
}

/// Runs a request in a child.
///
/// # Errors
///
/// Where no child can be started; what a child does is never an error.
pub(crate) fn run(request: &Request, limit: Duration, cancel: &CancelToken) -> io::Result<ReplayEnd> {
    let environment = malloc(&request.contender).and_then(|malloc| malloc.environment());
    let talk = talk("run-replay", environment, request, limit, cancel)?;
    if talk.killed.is_some() {
        return Ok(ReplayEnd::Died(talk.death(), talk.stderr));
    }
    Ok(match serde_json::from_slice(&talk.answer) {
        Ok(Reply::Played(report)) => ReplayEnd::Played(report),
        Ok(Reply::Unreadable { reason }) => ReplayEnd::Unreadable(reason),
        Err(_) => ReplayEnd::Died(talk.death(), talk.stderr),
    })
}

/// What a child said, and how it ended.
pub(crate) struct Talk {
    /// What it wrote to stdout.
    pub(crate) answer: Vec<u8>,
    /// Why it was stopped, if it was.
    pub(crate) killed: Option<Death>,
    status: ExitStatus,
    /// The end of what it wrote to stderr.
    pub(crate) stderr: String,
}

impl Talk {
    /// How a child ended that gave no answer, or not all of it.
    pub(crate) fn death(&self) -> Death {
        self.killed.clone().unwrap_or_else(|| cause(self.status, false, &self.stderr))
    }
}

/// Asks a child of a hidden verb, with a variable in its environment, and waits for its end.
///
/// # Errors
///
/// As [`run`].
pub(crate) fn talk(
    verb: &str,
    variable: Option<(&str, &str)>,
    request: &impl Serialize,
    limit: Duration,
    cancel: &CancelToken,
) -> io::Result<Talk> {
    let mut child = spawn(verb, variable)?;
    send(&mut child, request);
    let tail = read_tail(&mut child);
    let (answer, killed) = follow(&mut child, limit, cancel);
    let status = reap(&mut child)?;
    Ok(Talk { answer, killed, status, stderr: tail.join().unwrap_or_default() })
}

fn spawn(verb: &str, variable: Option<(&str, &str)>) -> io::Result<Child> {
    let mut command = Command::new(std::env::current_exe()?);
    for (name, _) in std::env::vars_os() {
        let name_of = name.to_str().unwrap_or_default();
        let is_kept = verb == DEVICE_VERB && name_of == "LD_PRELOAD";
        if !is_kept && ALLOCATOR_VARIABLES.iter().any(|prefix| name_of.starts_with(prefix)) {
            command.env_remove(&name);
        }
    }
    command.envs(variable);
    command
        .env(INPUT_LIMIT, input::limits().unpacked().to_string())
        .arg(verb)
        .process_group(0)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
}

/// What the child wrote until it closed its stdout; one that takes too long is killed, and why is said.
fn follow(child: &mut Child, limit: Duration, cancel: &CancelToken) -> (Vec<u8>, Option<Death>) {
    let (sender, news) = mpsc::channel();
    let stdout = child.stdout.take();
    thread::spawn(move || {
        let mut answer = Vec::new();
        if let Some(mut stdout) = stdout {
            // What cannot be read is as if it had not been written.
            let _ = stdout.read_to_end(&mut answer);
        }
        let _ = sender.send(answer);
    });
    let deadline = Instant::now() + limit;
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        if let Ok(answer) = news.recv_timeout(left.min(PATIENCE)) {
            return (answer, None);
        }
        if cancel.is_cancelled() || left.is_zero() {
            signal(child, Signal::KILL);
            let death = if cancel.is_cancelled() { Death::Interrupted } else { Death::Timeout };
            return (news.recv_timeout(GRACE).unwrap_or_default(), Some(death));
        }
    }
}
