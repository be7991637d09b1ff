//! Runs an external program once: follows and measures it, and ends it at the run's limits.

use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::process::{Child, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use planlab_dsa::{Halt, Run, Stop};
use rustix::process::Signal;

use super::launch;
use crate::process::{
    Tail, collect_child, end_orphans, has_children, peak_rss_of, read_tail, signal_group, spawn_child,
};
use crate::shell::clock::monotonic_time;

/// The first interval between checks of limits, memory and new plans; later ones are longer.
const FIRST_LOOK: Duration = Duration::from_millis(1);
/// The longest interval between two checks.
const LOOK: Duration = Duration::from_millis(20);
/// The bytes kept of the end of each stream.
const TAIL: usize = 64 << 10;
/// How long a program has between TERM and KILL when a run is cancelled.
const GRACE: Duration = Duration::from_millis(300);
/// How long a killed program has to disappear. One that waits for a disk or a dead server takes longer.
const DYING: Duration = Duration::from_secs(2);
/// The amount of work after which a run checks its clock.
const WORK_OF_A_LOOK: u64 = 256;

/// How the program ended, and what it left.
pub(crate) struct Ended {
    /// Its exit status; `None` if it was killed at the run's limits.
    pub(crate) status: Option<ExitStatus>,
    /// Why it could not be started, if so.
    pub(crate) refused: Option<String>,
    /// Why it was killed.
    pub(crate) halt: Option<Halt>,
    /// From the moment the process becomes the program to its end.
    pub(crate) wall: Duration,
    pub(crate) peak_rss_bytes: Option<u64>,
    /// The end of its output.
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// Runs the program until it ends or reaches a limit of the run. A program gets 4 % and 20 ms past the wall limit, as
/// it has a clock of its own. `look` is called at each check.
///
/// # Errors
///
/// If the program cannot be started.
pub(crate) fn follow(
    words: &[OsString],
    stamp: &Path,
    run: &mut Run<'_>,
    look: &mut dyn FnMut(&mut Run<'_>) -> Result<(), Halt>,
) -> io::Result<Ended> {
    let before = Instant::now();
    let past = run.remaining_time().map(|left| before + left + left / 25 + LOOK);
    let mut command = launch::launch_command(words, stamp)?;
    let mut child = spawn_child(command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()))?;
    let (stdout, stderr) = (read_tail(child.stdout.take(), TAIL), read_tail(child.stderr.take(), TAIL));
    let pid = child.id();
    let ends = wait(child);
    let mut peak = None;
    let mut halt = None;
    let mut interval = FIRST_LOOK;
    let ended = loop {
        match ends.recv_timeout(interval) {
            Ok(ended) => break Some(ended),
            Err(RecvTimeoutError::Disconnected) => break None,
            Err(RecvTimeoutError::Timeout) => {}
        }
        interval = (interval * 2).min(LOOK);
        peak = peak.max(peak_rss_of(pid));
        let told = run.tick(WORK_OF_A_LOOK).and_then(|()| look(run));
        let patient =
            told == Err(Halt::Stop(Stop::Deadline)) && past.is_some_and(|past| Instant::now() < past);
        if let Err(reason) = told
            && !patient
        {
            kill(pid, reason == Halt::Stop(Stop::Cancelled), &ends);
            halt = Some(reason);
            break None;
        }
    };
    let (status, end) = ended.unwrap_or_else(|| (None, monotonic_time()));
    let wall = launch::time_begun(stamp).map_or_else(|| before.elapsed(), |began| end.saturating_sub(began));
    end_orphans();
    Ok(Ended {
        status,
        refused: launch::refusal_reason(stamp),
        halt,
        wall,
        peak_rss_bytes: peak,
        stdout: stdout.finish_tail(),
        stderr: stderr.finish_tail(),
    })
}

/// The end of what a program prints to stdout, then to stderr; empty if it cannot be started. If it does not end in
/// time, it is killed with all that it started, and the result is `None`.
pub(crate) fn output_within(words: &[OsString], timeout: Duration) -> Option<String> {
    let Ok(mut command) = launch::launch_command(words, Path::new("/dev/null")) else {
        return Some(String::new());
    };
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let Ok(mut child) = spawn_child(&mut command) else { return Some(String::new()) };
    let streams = [read_tail(child.stdout.take(), TAIL), read_tail(child.stderr.take(), TAIL)];
    let pid = child.id();
    let ends = wait(child);
    let ended = ends.recv_timeout(timeout);
    if ended.is_err() {
        kill(pid, false, &ends);
    }
    // What one program leaves may serve another that still runs; the last one ends all.
    if !has_children() {
        end_orphans();
    }
    ended.ok()?;
    let [stdout, stderr] = streams.map(Tail::finish_tail);
    Some(format!("{stdout}\n{stderr}").trim().to_owned())
}

/// How the program ended, and when.
type End = (Option<ExitStatus>, Duration);

/// Waits for the program in a thread. What is left of its group ends with it.
fn wait(mut child: Child) -> Receiver<End> {
    let (sender, ends) = mpsc::channel();
    thread::spawn(move || {
        let status = collect_child(&mut child).ok();
        let end = monotonic_time();
        // If nobody waited for its end, the receiver is gone.
        let _ = sender.send((status, end));
    });
    ends
}

/// Kills the program and its group, and waits until it is gone. A `gentle` end leaves it a moment to write its result.
fn kill(pid: u32, gentle: bool, ends: &Receiver<End>) {
    if gentle {
        signal_group(pid, Signal::TERM);
        if ends.recv_timeout(GRACE).is_ok() {
            return;
        }
    }
    signal_group(pid, Signal::KILL);
    let _ = ends.recv_timeout(DYING);
}
