//! The parent's side: starts a child, holds it to its limits, and has an end for every cell.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant};

use planlab_dsa::{Bound, CancelToken, Instance, Plan};
use rustix::process::{Pid, Signal, kill_process_group};
use serde::Serialize;

use super::limits::{Cgroup, Mechanism};
use super::mailbox;
use super::protocol::{Answer, ComplaintKind, Reply, Request};
use crate::cli::INPUT_LIMIT;
use crate::{external, input};

/// How long a child may take to read its trace.
const LOADING: Duration = Duration::from_secs(300);
/// How long a child has between the polite and the hard signal.
const GRACE: Duration = Duration::from_secs(1);
/// What is kept of a child's stderr, in bytes.
const TAIL: usize = 4096;
/// Past its wall limit a child may still verify its last plan: so long per buffer.
const VERIFY_PER_BUFFER: Duration = Duration::from_micros(4);

/// What a child is watched for.
#[derive(Clone, Debug)]
pub(crate) struct Watch {
    pub(crate) memory: Option<u64>,
    pub(crate) mechanism: Mechanism,
    pub(crate) cancel: CancelToken,
}

/// Why a cell has no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Death {
    /// Still running past its wall limit; killed.
    Timeout,
    OutOfMemory,
    Signal(i32),
    Exit(i32),
    /// Wrote something else than the protocol says, or not what it was asked.
    BadOutput(String),
    /// The trace could not be read by the child.
    Unreadable(String),
    /// The bench was interrupted.
    Interrupted,
}

/// What became of one cell.
#[derive(Clone, Debug)]
pub(crate) struct CellEnd {
    pub(crate) end: Result<Answer, Death>,
    /// The best plan that the child had kept.
    pub(crate) plan: Option<Plan>,
    /// The best bound that the child had kept.
    pub(crate) bound: Option<Bound>,
    pub(crate) stderr_tail: String,
    /// Whether somebody asked for the end of all work.
    pub(crate) interrupted: bool,
}

/// Runs a request in a child. When a batch dies, the cells without an answer are run one by one.
///
/// # Errors
///
/// Where no child can be started or no mailbox made; what a child does is never an error.
pub(crate) fn run(request: &Request, instance: &Instance, watch: &Watch) -> io::Result<Vec<CellEnd>> {
    let (mut ends, stderr) = attempt(request, instance, watch)?;
    let is_batch = request.cells.len() > 1;
    let died = ends.iter().position(Result::is_err);
    let Some(first) = died.filter(|_| is_batch) else {
        return Ok(collect(ends, request, instance, watch, &stderr));
    };
    ends.truncate(first);
    let mut all = collect(ends, request, instance, watch, &stderr);
    for cell in &request.cells[first..] {
        let alone = Request { cells: vec![cell.clone()], ..request.clone() };
        let (ends, stderr) = attempt(&alone, instance, watch)?;
        all.extend(collect(ends, &alone, instance, watch, &stderr));
    }
    Ok(all)
}

fn collect(
    ends: Vec<Result<Answer, Death>>,
    request: &Request,
    instance: &Instance,
    watch: &Watch,
    stderr: &str,
) -> Vec<CellEnd> {
    let kept = |cell: usize| {
        let path = request.mailboxes.join(cell.to_string());
        mailbox::read(&path, instance.len(), instance.in_place().len())
    };
    let end = |(cell, end): (usize, Result<Answer, Death>)| {
        let (plan, bound) = kept(cell);
        let stderr_tail = if end.is_err() { stderr.to_owned() } else { String::new() };
        CellEnd { end, plan, bound, stderr_tail, interrupted: watch.cancel.is_cancelled() }
    };
    ends.into_iter().enumerate().map(end).collect()
}

/// What the reader threads tell.
enum News {
    Line(Vec<u8>),
    /// Stdout is closed.
    Closed,
}

fn attempt(
    request: &Request,
    instance: &Instance,
    watch: &Watch,
) -> io::Result<(Vec<Result<Answer, Death>>, String)> {
    clear(&request.mailboxes, request.cells.len())?;
    let group = Cgroup::create(watch.mechanism, watch.memory)?;
    let mut child = spawn()?;
    if let Some(group) = &group {
        group.add(child.id())?;
    }
    let address_space = if group.is_none() { watch.memory } else { None };
    send(&mut child, &Request { address_space, ..request.clone() });
    let (sender, news) = mpsc::channel();
    let tail = read_tail(&mut child);
    read_lines(&mut child, sender);
    let mut session = Session::new(request, instance, watch);
    let verdict = session.follow(&mut child, &news);
    let status = reap(&mut child)?;
    let stderr = tail.join().unwrap_or_default();
    let ran_out = group.as_ref().is_some_and(Cgroup::ran_out_of_memory);
    let death = verdict.unwrap_or_else(|| cause(status, ran_out, &stderr));
    let mut ends = session.ends(death);
    if ran_out {
        ends.iter_mut().for_each(blame_memory);
    }
    Ok((ends, stderr))
}

fn clear(mailboxes: &Path, cells: usize) -> io::Result<()> {
    for cell in 0..cells {
        match std::fs::remove_file(mailboxes.join(cell.to_string())) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

fn spawn() -> io::Result<Child> {
    Command::new(std::env::current_exe()?)
        .arg("run-cells")
        .env(external::VARIABLE, external::file())
        .env(INPUT_LIMIT, input::limits().unpacked().to_string())
        .process_group(0)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
}

pub(crate) fn send(child: &mut Child, request: &impl Serialize) {
    if let Some(mut stdin) = child.stdin.take() {
        let mut line = serde_json::to_vec(request).expect("a request is plain data");
        line.push(b'\n');
        // A child that died before reading is found out by its exit status.
        let _ = stdin.write_all(&line);
    }
}

fn read_lines(child: &mut Child, sender: Sender<News>) {
    let Some(stdout) = child.stdout.take() else { return };
    thread::spawn(move || {
        for line in BufReader::new(stdout).split(b'\n').map_while(Result::ok) {
            if sender.send(News::Line(line)).is_err() {
                return;
            }
        }
        let _ = sender.send(News::Closed);
    });
}

pub(crate) fn read_tail(child: &mut Child) -> thread::JoinHandle<String> {
    let stderr = child.stderr.take();
    thread::spawn(move || {
        let mut tail = Vec::new();
        let mut chunk = [0; 4096];
        let Some(mut stderr) = stderr else { return String::new() };
        while let Ok(count @ 1..) = stderr.read(&mut chunk) {
            tail.extend_from_slice(&chunk[..count]);
            let excess = tail.len().saturating_sub(TAIL);
            tail.drain(..excess);
        }
        String::from_utf8_lossy(&tail).trim().to_owned()
    })
}

/// One child being watched.
struct Session<'a> {
    request: &'a Request,
    watch: &'a Watch,
    digest: String,
    verify: Duration,
    answers: Vec<Answer>,
    current: Option<usize>,
    deadline: Instant,
}

impl<'a> Session<'a> {
    fn new(request: &'a Request, instance: &Instance, watch: &'a Watch) -> Self {
        let buffers = u32::try_from(instance.len()).unwrap_or(u32::MAX);
        Self {
            request,
            watch,
            digest: instance.digest().to_string(),
            verify: VERIFY_PER_BUFFER * buffers,
            answers: Vec::new(),
            current: None,
            deadline: Instant::now() + LOADING,
        }
    }

    /// Follows the child until it is done or killed. `None`: the exit status tells why it ended.
    fn follow(&mut self, child: &mut Child, news: &Receiver<News>) -> Option<Death> {
        loop {
            if self.watch.cancel.is_cancelled() {
                self.part(child, news);
                return Some(Death::Interrupted);
            }
            let now = Instant::now();
            if now >= self.deadline {
                self.part(child, news);
                return Some(Death::Timeout);
            }
            let patience = (self.deadline - now).min(Duration::from_millis(100));
            match news.recv_timeout(patience) {
                Ok(News::Line(line)) => {
                    if let Err(death) = self.hear(&line) {
                        terminate(child, news);
                        return Some(death);
                    }
                }
                Ok(News::Closed) | Err(RecvTimeoutError::Disconnected) => return None,
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }

    /// Asks the child to stop, takes an answer that it still gives, and kills it.
    fn part(&mut self, child: &mut Child, news: &Receiver<News>) {
        for line in terminate(child, news) {
            // What cannot be understood now is no worse than silence.
            let _ = self.hear(&line);
        }
    }

    fn hear(&mut self, line: &[u8]) -> Result<(), Death> {
        let reply: Reply = serde_json::from_slice(line).map_err(|error| {
            let start = String::from_utf8_lossy(&line[..line.len().min(80)]).into_owned();
            Death::BadOutput(format!("not a reply ({error}): {start}"))
        })?;
        match reply {
            Reply::Loaded { digest } if digest == self.digest => Ok(()),
            Reply::Loaded { .. } => Err(Death::BadOutput("the child read another trace".to_owned())),
            Reply::Unreadable { reason } => Err(Death::Unreadable(reason)),
            Reply::Started { cell } if cell == self.answers.len() => {
                self.current = Some(cell);
                self.deadline = self.deadline_of(cell);
                Ok(())
            }
            Reply::Finished { cell, answer } if self.current == Some(cell) => {
                self.current = None;
                self.answers.push(*answer);
                self.deadline = Instant::now() + LOADING;
                Ok(())
            }
            _ => Err(Death::BadOutput("the child answered out of turn".to_owned())),
        }
    }

    fn deadline_of(&self, cell: usize) -> Instant {
        let Some(wall) = self.request.cells[cell].wall_ns.map(Duration::from_nanos) else {
            return Instant::now() + Duration::from_secs(365 * 24 * 3600);
        };
        Instant::now() + wall + wall / 20 + Duration::from_millis(50) + self.verify
    }

    /// An end for every cell: the answers, and for the one at which the child died, why. The cells after
    /// it have the same end until they are run again.
    fn ends(self, death: Death) -> Vec<Result<Answer, Death>> {
        let cells = self.request.cells.len();
        let mut ends: Vec<_> = self.answers.into_iter().map(Ok).collect();
        ends.resize(cells, Err(death));
        ends
    }
}

/// TERM, then, unless the child ends by itself, KILL. Returns the lines that it still wrote.
fn terminate(child: &mut Child, news: &Receiver<News>) -> Vec<Vec<u8>> {
    signal(child, Signal::TERM);
    let patience = Instant::now() + GRACE;
    let mut lines = Vec::new();
    loop {
        let left = patience.saturating_duration_since(Instant::now());
        match news.recv_timeout(left) {
            Ok(News::Line(line)) => lines.push(line),
            _ => break,
        }
    }
    signal(child, Signal::KILL);
    lines
}

pub(crate) fn signal(child: &Child, signal: Signal) {
    if let Some(group) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
        // The group is gone where the child has ended.
        let _ = kill_process_group(group, signal);
    }
}

/// Waits for the child, then makes sure that nothing it started is left.
pub(crate) fn reap(child: &mut Child) -> io::Result<ExitStatus> {
    let patience = Instant::now() + GRACE;
    while Instant::now() < patience {
        if let Some(status) = child.try_wait()? {
            signal(child, Signal::KILL);
            return Ok(status);
        }
        thread::sleep(Duration::from_millis(1));
    }
    signal(child, Signal::KILL);
    child.wait()
}

/// What the kernel killed for its memory may have been an external planner's program.
fn blame_memory(end: &mut Result<Answer, Death>) {
    if let Ok(Answer { error: Some(complaint), .. }) = end
        && complaint.kind == ComplaintKind::Killed
    {
        complaint.kind = ComplaintKind::OutOfMemory;
    }
}

pub(crate) fn cause(status: ExitStatus, ran_out_of_memory: bool, stderr: &str) -> Death {
    // Where no cgroup tells: Rust's and C++'s words for an allocation that failed.
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
