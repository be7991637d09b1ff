//! One run of a foreign program: followed, measured, and ended with the run's limits.

use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::process::{Child, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use planlab_dsa::{Halt, Run, Stop};
use rustix::process::Signal;

use super::launch;
use crate::process::{peak_rss_of, signal, tail};
use crate::shell::clock::monotonic;

/// How often limits are looked at, and memory and new plans: after this time first, then less and less often.
const FIRST_LOOK: Duration = Duration::from_millis(1);
/// The longest time between two looks.
const LOOK: Duration = Duration::from_millis(20);
/// What is kept of the end of each stream, in bytes.
const TAIL: usize = 64 << 10;
/// How long a program has between the polite and the hard signal when a run is cancelled.
const GRACE: Duration = Duration::from_millis(300);
/// Work that makes a run look at its clock.
const WORK_OF_A_LOOK: u64 = 256;

/// What became of the program.
pub(crate) struct Ended {
    /// How it ended; `None` where it was killed for the run's limits.
    pub(crate) status: Option<ExitStatus>,
    /// Why it was killed.
    pub(crate) halt: Option<Halt>,
    /// From the moment at which the process becomes the program to its end.
    pub(crate) wall: Duration,
    pub(crate) peak_rss_bytes: Option<u64>,
    /// What it wrote, the ends of long texts.
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// Runs the program until it ends or a limit of the run is reached. A program is given 4 % and 20 ms past the
/// wall limit, as it keeps a clock of its own. `look` is called now and then.
///
/// # Errors
///
/// Where the program cannot be started.
pub(crate) fn follow(
    words: &[OsString],
    stamp: &Path,
    run: &mut Run<'_>,
    look: &mut dyn FnMut(&mut Run<'_>) -> Result<(), Halt>,
) -> io::Result<Ended> {
    let before = Instant::now();
    let past = run.remaining().map(|left| before + left + left / 25 + LOOK);
    let mut command = launch::command(words, stamp)?;
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    let (stdout, stderr) = (tail(child.stdout.take(), TAIL), tail(child.stderr.take(), TAIL));
    let pid = child.id();
    let ends = wait(child);
    let mut peak = None;
    let mut halt = None;
    let mut patience = FIRST_LOOK;
    let ended = loop {
        match ends.recv_timeout(patience) {
            Ok(ended) => break Some(ended),
            Err(RecvTimeoutError::Disconnected) => break None,
            Err(RecvTimeoutError::Timeout) => {}
        }
        patience = (patience * 2).min(LOOK);
        peak = peak.max(peak_rss_of(pid));
        let told = run.tick(WORK_OF_A_LOOK).and_then(|()| look(run));
        let patient =
            told == Err(Halt::Stop(Stop::Deadline)) && past.is_some_and(|past| Instant::now() < past);
        if let Err(reason) = told
            && !patient
        {
            kill(pid, &reason, &ends);
            halt = Some(reason);
            break None;
        }
    };
    // Whatever the program itself started ends with it.
    signal(pid, Signal::KILL);
    let (status, end) = ended.unwrap_or_else(|| (None, monotonic()));
    let wall = launch::began(stamp).map_or_else(|| before.elapsed(), |began| end.saturating_sub(began));
    Ok(Ended {
        status,
        halt,
        wall,
        peak_rss_bytes: peak,
        stdout: stdout.join().unwrap_or_default(),
        stderr: stderr.join().unwrap_or_default(),
    })
}

/// What a program prints on stdout and then on stderr, the ends of long texts; empty where it cannot be started. `None`
/// where it has not ended in time: then it is killed, with all that it started.
pub(crate) fn output_within(words: &[OsString], patience: Duration) -> Option<String> {
    let until = Instant::now() + patience;
    let Ok(mut command) = launch::command(words, Path::new("/dev/null")) else { return Some(String::new()) };
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let Ok(mut child) = command.spawn() else { return Some(String::new()) };
    let streams = [tail(child.stdout.take(), TAIL), tail(child.stderr.take(), TAIL)];
    let pid = child.id();
    let ended = wait(child).recv_timeout(patience);
    signal(pid, Signal::KILL);
    ended.ok()?;
    // What has left the group may still hold the streams.
    while !streams.iter().all(JoinHandle::is_finished) {
        if Instant::now() >= until {
            return None;
        }
        thread::sleep(FIRST_LOOK);
    }
    let [stdout, stderr] = streams.map(|stream| stream.join().unwrap_or_default());
    Some(format!("{stdout}\n{stderr}").trim().to_owned())
}

/// How the program ended, and when.
type End = (Option<ExitStatus>, Duration);

fn wait(mut child: Child) -> Receiver<End> {
    let (sender, ends) = mpsc::channel();
    thread::spawn(move || {
        let status = child.wait().ok();
        // Nobody listens any more where the program was killed.
        let _ = sender.send((status, monotonic()));
    });
    ends
}

/// A run that is cancelled leaves the program a moment to write what it has.
fn kill(pid: u32, reason: &Halt, ends: &Receiver<End>) {
    if *reason == Halt::Stop(Stop::Cancelled) {
        signal(pid, Signal::TERM);
        let _ = ends.recv_timeout(GRACE);
    }
    signal(pid, Signal::KILL);
}
