//! The parent's side: starts children, enforces their limits, and has an end for every cell.

use std::fs;
use std::io;
use std::iter::{self, repeat_n};
use std::path::{Path, PathBuf};
use std::process::Child;
use std::slice;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::RecvTimeoutError;
use std::time::{Duration, Instant};

use planlab_dsa::CancelToken;
use planlab_files::TemporaryFolder;
use planlab_results::Provenance;
use rustix::process::Signal;

use super::child::{Reply, Request, mailbox};
use super::kind::Kind;
use crate::process::limits::{Cgroup, Mechanism};
use crate::process::{
    self, Death, Lines, confine_child, death_cause, end_of, has_ended, listen_to, reap_child, send_request,
    signal_group,
};
use crate::shell::provenance;
use crate::shell::target::scratch_in_memory;

/// How often the parent checks whether it was interrupted.
const POLL_INTERVAL: Duration = Duration::from_millis(100);
/// How long the parent waits for each of the last lines of a child that has ended.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(1);

/// Starts children and follows them to their ends.
pub(crate) struct Supervisor {
    rooms: TemporaryFolder,
    next: AtomicU64,
    mechanism: Mechanism,
    cancel: CancelToken,
}

/// The fields of a row that depend neither on its cell nor on its end.
pub(crate) struct RowContext<'a> {
    pub(crate) suite: &'a str,
    pub(crate) mechanism: Mechanism,
    pub(crate) started_ns: u64,
    pub(crate) provenance: Provenance,
}

/// Questions about one source, which share their limit of memory, for one child.
pub(crate) struct Order<'a, K: Kind> {
    pub(crate) source: &'a K::Source,
    pub(crate) cells: &'a [K::Asked],
    /// The limit in bytes.
    pub(crate) memory: Option<u64>,
    /// The core to pin the child to.
    pub(crate) core: Option<usize>,
}

/// The end of one cell.
pub(crate) struct CellEnd<K: Kind> {
    pub(crate) end: Result<K::Found, Death>,
    /// What was in the child's mailbox.
    pub(crate) kept: K::Kept,
    /// The end of the child's stderr, if there is no answer.
    pub(crate) stderr_tail: String,
    /// Whether a process of the child's group was killed for using too much memory.
    pub(crate) ran_out_of_memory: bool,
    /// Whether the whole run was interrupted.
    pub(crate) interrupted: bool,
}

impl Supervisor {
    /// Children end early once `cancel` is set.
    pub(crate) fn new(cancel: CancelToken) -> io::Result<Self> {
        Self::with_mechanism(Mechanism::detect_mechanism(), cancel)
    }

    /// The same for children without a limit of memory.
    pub(crate) fn without_memory_limit(cancel: CancelToken) -> io::Result<Self> {
        Self::with_mechanism(Mechanism::Rlimit, cancel)
    }

    fn with_mechanism(mechanism: Mechanism, cancel: CancelToken) -> io::Result<Self> {
        Ok(Self { rooms: scratch_in_memory()?, next: AtomicU64::new(0), mechanism, cancel })
    }

    pub(crate) fn cancel(&self) -> &CancelToken {
        &self.cancel
    }

    /// The context of a row of a suite, or of none (`""`), measured now beside `jobs` - 1 other cells.
    pub(crate) fn context<'a>(&self, suite: &'a str, jobs: u32, started_ns: u64) -> RowContext<'a> {
        RowContext {
            suite,
            mechanism: self.mechanism,
            started_ns,
            provenance: provenance::this_machine(jobs),
        }
    }

    /// A fresh folder, which goes at the latest with the supervisor.
    pub(crate) fn folder(&self) -> io::Result<PathBuf> {
        let folder = self.rooms.path().join(self.next.fetch_add(1, Ordering::Relaxed).to_string());
        fs::create_dir(&folder)?;
        Ok(folder)
    }

    /// Runs cells in a child. If the child dies, the cells without an answer run again one by one.
    ///
    /// # Errors
    ///
    /// If no child can be started or no folder created. A failure of the child itself is not an error.
    pub(crate) fn run<K: Kind>(&self, order: &Order<'_, K>) -> io::Result<Vec<CellEnd<K>>> {
        let mut ends = self.attempt(order)?;
        let is_batch = order.cells.len() > 1;
        if let Some(first) = ends.iter().position(|end| end.end.is_err()).filter(|_| is_batch) {
            ends.truncate(first);
            for cell in &order.cells[first..] {
                ends.extend(self.attempt(&Order { cells: slice::from_ref(cell), ..*order })?);
            }
        }
        Ok(ends)
    }

    fn attempt<K: Kind>(&self, order: &Order<'_, K>) -> io::Result<Vec<CellEnd<K>>> {
        let room = self.folder()?;
        let group = match order.memory {
            Some(_) => Cgroup::create(self.mechanism, order.memory)?,
            None => None,
        };
        let mut child = self.start(order, &room, group.as_ref())?;
        let tail = end_of(&mut child);
        let lines = listen_to(&mut child);
        let mut session = Session::<K>::new(order, &self.cancel);
        let verdict = session.follow(&child, &lines);
        let status = reap_child(&mut child)?;
        // Those of a child that its program has killed; otherwise the child ends them.
        if order.cells.iter().any(K::leaves_orphans) {
            process::end_orphans();
        }
        let stderr = tail.finish_tail();
        let ran_out_of_memory = group.as_ref().is_some_and(Cgroup::ran_out_of_memory);
        let death = verdict.unwrap_or_else(|| death_cause(status, ran_out_of_memory, &stderr));
        let end = |(cell, end): (usize, Result<K::Found, Death>)| CellEnd {
            kept: K::kept(order.source, &mailbox(&room, cell)),
            stderr_tail: if end.is_err() { stderr.clone() } else { String::new() },
            end,
            ran_out_of_memory,
            interrupted: self.cancel.is_cancelled(),
        };
        let ends = session.ends(death).enumerate().map(end).collect();
        // A program may have moved it, or filled it with what cannot be removed: the folder around it goes at the end.
        let _ = fs::remove_dir_all(&room);
        Ok(ends)
    }

    fn start<K: Kind>(&self, order: &Order<'_, K>, room: &Path, group: Option<&Cgroup>) -> io::Result<Child> {
        let mut command = process::hidden_command(K::VERB)?;
        order.cells.iter().for_each(|asked| K::prepare(asked, &mut command));
        let mut child = process::spawn_child(&mut command)?;
        confine_child(&mut child, group)?;
        let request = Request {
            source: order.source,
            parent: std::process::id(),
            room: room.to_owned(),
            address_space: order.memory.filter(|_| group.is_none()),
            core: order.core,
            cells: order.cells,
        };
        send_request(&mut child, &request);
        Ok(child)
    }
}

/// A watched child.
struct Session<'a, K: Kind> {
    order: &'a Order<'a, K>,
    cancel: &'a CancelToken,
    found: Vec<K::Found>,
    deadline: Instant,
}

impl<'a, K: Kind> Session<'a, K> {
    fn new(order: &'a Order<'a, K>, cancel: &'a CancelToken) -> Self {
        let mut session = Self { order, cancel, found: Vec::new(), deadline: Instant::now() };
        session.await_next();
        session
    }

    /// Waits for the next cell to begin.
    fn await_next(&mut self) {
        let next = self.order.cells.get(self.found.len());
        self.deadline = Instant::now() + next.map_or(Duration::ZERO, K::limit_to_begin);
    }

    /// Follows the child until it has given all answers, ended or was killed. With `None` the exit status gives the
    /// reason.
    fn follow(&mut self, child: &Child, lines: &Lines) -> Option<Death> {
        while self.found.len() < self.order.cells.len() {
            if self.cancel.is_cancelled() {
                self.stop_and_collect(child, lines);
                return Some(Death::Interrupted);
            }
            let left = self.deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                self.stop_and_collect(child, lines);
                return Some(Death::Timeout);
            }
            match lines.recv_timeout(left.min(POLL_INTERVAL)) {
                Ok(line) => {
                    if let Err(death) = self.handle_line(&line) {
                        terminate(child, K::GRACE, lines);
                        return Some(death);
                    }
                }
                Err(RecvTimeoutError::Disconnected) => return None,
                Err(RecvTimeoutError::Timeout) if has_ended(child.id()).unwrap_or(true) => {
                    return self.drain_lines(lines);
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
        None
    }

    /// Handles the last lines of a child that has ended. Another process may hold its stdout open.
    fn drain_lines(&mut self, lines: &Lines) -> Option<Death> {
        iter::from_fn(|| lines.recv_timeout(DRAIN_TIMEOUT).ok())
            .find_map(|line| self.handle_line(&line).err())
    }

    /// Asks the child to stop, takes its last answer, and kills it.
    fn stop_and_collect(&mut self, child: &Child, lines: &Lines) {
        for line in terminate(child, K::GRACE, lines) {
            // A line that cannot be parsed now counts as none.
            let _ = self.handle_line(&line);
        }
    }

    /// Takes an event of the child; an error if the line ends the session.
    fn handle_line(&mut self, line: &[u8]) -> Result<(), Death> {
        let reply: Reply<K::Found> = serde_json::from_slice(line).map_err(|error| {
            let start = String::from_utf8_lossy(&line[..line.len().min(80)]).into_owned();
            Death::BadOutput(format!("not a reply ({error}): {start}"))
        })?;
        let next = self.order.cells.get(self.found.len());
        match (reply, next) {
            (Reply::Unreadable { reason }, _) => return Err(Death::Unreadable(reason)),
            (Reply::Started { cell }, Some(asked)) if cell == self.found.len() => {
                self.deadline = Instant::now() + K::limit_from_begin(self.order.source, asked);
            }
            (Reply::Finished { cell, found }, Some(_)) if cell == self.found.len() => {
                self.found.push(*found);
                self.await_next();
            }
            _ => return Err(Death::BadOutput("the child answered out of turn".to_owned())),
        }
        Ok(())
    }

    /// The end of every cell: the answers, and for the one at which the child died, the reason. The cells after it have
    /// the same end until they run again.
    fn ends(self, death: Death) -> impl Iterator<Item = Result<K::Found, Death>> {
        let missing = self.order.cells.len() - self.found.len();
        self.found.into_iter().map(Ok).chain(repeat_n(death, missing).map(Err))
    }
}

/// Sends TERM, then KILL unless the child ends by itself. Returns the last lines that it wrote.
fn terminate(child: &Child, grace: Duration, lines: &Lines) -> Vec<Vec<u8>> {
    if !grace.is_zero() {
        signal_group(child.id(), Signal::TERM);
    }
    let deadline = Instant::now() + grace;
    let more = || lines.recv_timeout(deadline.saturating_duration_since(Instant::now())).ok();
    let last = std::iter::from_fn(more).collect();
    signal_group(child.id(), Signal::KILL);
    last
}
