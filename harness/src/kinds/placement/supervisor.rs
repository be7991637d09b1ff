//! The parent's side of planning: starts a child, enforces its limits, and has a result for every cell.

use std::io;
use std::path::Path;
use std::process::Child;
use std::sync::mpsc::RecvTimeoutError;
use std::time::{Duration, Instant};

use planlab_dsa::{Bound, CancelToken, Instance, Plan};
use rustix::process::Signal;

use super::mailbox;
use super::protocol::{Answer, ComplaintKind, Reply, Request};
use crate::cli::PLANNERS;
use crate::kinds::external;
use crate::process::limits::{Cgroup, Mechanism};
use crate::process::{self, Death, GRACE, Lines, cause, confine, end_of, listen, reap, send, signal};

/// How long a child may take to read its trace.
const LOADING: Duration = Duration::from_secs(300);
/// The time per buffer that a child gets past its wall limit to verify its last plan.
const VERIFY_PER_BUFFER: Duration = Duration::from_micros(4);

/// The limits of a child, and its cancel token.
#[derive(Clone, Debug)]
pub(crate) struct Watch {
    pub(crate) memory: Option<u64>,
    pub(crate) mechanism: Mechanism,
    pub(crate) cancel: CancelToken,
}

/// The end of one cell.
#[derive(Clone, Debug)]
pub(crate) struct CellEnd {
    pub(crate) end: Result<Answer, Death>,
    /// The best plan in the child's mailbox.
    pub(crate) plan: Option<Plan>,
    /// The best bound in the child's mailbox.
    pub(crate) bound: Option<Bound>,
    pub(crate) stderr_tail: String,
    /// Whether the whole run was interrupted.
    pub(crate) interrupted: bool,
}

/// Runs a request in a child. If the child dies, the cells without an answer run again one by one.
///
/// # Errors
///
/// If no child can be started or no mailbox created. A failure of the child itself is not an error.
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

fn attempt(
    request: &Request,
    instance: &Instance,
    watch: &Watch,
) -> io::Result<(Vec<Result<Answer, Death>>, String)> {
    clear(&request.mailboxes, request.cells.len())?;
    let group = Cgroup::create(watch.mechanism, watch.memory)?;
    let mut child = spawn()?;
    confine(&mut child, group.as_ref())?;
    let address_space = if group.is_none() { watch.memory } else { None };
    send(&mut child, &Request { address_space, ..request.clone() });
    let tail = end_of(&mut child);
    let lines = listen(&mut child);
    let mut session = Session::new(request, instance, watch);
    let verdict = session.follow(&child, &lines)?;
    let status = reap(&mut child)?;
    // Those of a child that its program has killed; otherwise the child ends them.
    if request.cells.iter().any(|cell| cell.planner.starts_with(external::PREFIX)) {
        process::end_orphans();
    }
    let stderr = tail.finish();
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
    process::spawn(process::command("run-cells")?.env(PLANNERS, external::file()))
}

/// A watched child.
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

    /// Follows the child until it is done or killed. With `None` the exit status gives the reason. Does not collect it.
    fn follow(&mut self, child: &Child, lines: &Lines) -> io::Result<Option<Death>> {
        loop {
            if self.watch.cancel.is_cancelled() {
                self.part(child, lines);
                return Ok(Some(Death::Interrupted));
            }
            let now = Instant::now();
            if now >= self.deadline {
                self.part(child, lines);
                return Ok(Some(Death::Timeout));
            }
            let patience = (self.deadline - now).min(Duration::from_millis(100));
            match lines.recv_timeout(patience) {
                Ok(line) => {
                    if let Err(death) = self.hear(&line) {
                        terminate(child, lines);
                        return Ok(Some(death));
                    }
                }
                Err(RecvTimeoutError::Disconnected) => return Ok(None),
                // Another process may hold the stdout of a child that has ended.
                Err(RecvTimeoutError::Timeout) if process::has_ended(child.id())? => {
                    return Ok(lines.try_iter().find_map(|line| self.hear(&line).err()));
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }

    /// Asks the child to stop, takes its last answer, and kills it.
    fn part(&mut self, child: &Child, lines: &Lines) {
        for line in terminate(child, lines) {
            // A line that cannot be parsed now counts as none.
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

    /// The end of every cell: the answers, and for the one at which the child died, the reason. The cells after it have
    /// the same end until they run again.
    fn ends(self, death: Death) -> Vec<Result<Answer, Death>> {
        let cells = self.request.cells.len();
        let mut ends: Vec<_> = self.answers.into_iter().map(Ok).collect();
        ends.resize(cells, Err(death));
        ends
    }
}

/// Sends TERM, then KILL unless the child ends by itself. Returns the last lines that it wrote.
fn terminate(child: &Child, lines: &Lines) -> Vec<Vec<u8>> {
    signal(child.id(), Signal::TERM);
    let patience = Instant::now() + GRACE;
    let more = || lines.recv_timeout(patience.saturating_duration_since(Instant::now())).ok();
    let last = std::iter::from_fn(more).collect();
    signal(child.id(), Signal::KILL);
    last
}

/// In a group that ran out of memory, a killed external program counts as out of memory.
fn blame_memory(end: &mut Result<Answer, Death>) {
    if let Ok(Answer { error: Some(complaint), .. }) = end
        && complaint.kind == ComplaintKind::Killed
    {
        complaint.kind = ComplaintKind::OutOfMemory;
    }
}
