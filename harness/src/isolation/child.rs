//! The child's side: the hidden verb `run-cells`.

use std::fs::{self, File};
use std::io::{self, BufRead, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use planlab_dsa::{Budget, Bytes, CancelToken, Instance, Outcome, Planner, execute_observed};
use rustix::process::{Resource, Rlimit, setrlimit};
use serde::Serialize;

use super::mailbox::Mailbox;
use super::protocol::{Answer, CellRequest, Reply, Request};
use super::saboteur;
use crate::exit::{Exit, Verdict};
use crate::external::{self, External};
use crate::hints::Hints;
use crate::planners;
use crate::quantity::nanoseconds;

/// Reads a request from stdin and serves it.
pub(crate) fn serve() -> Verdict {
    let mut channel = private_stdout()?;
    let mut line = String::new();
    io::stdin().lock().read_line(&mut line)?;
    let request: Request = serde_json::from_str(&line)?;
    die_with_parent(request.parent)?;
    restrict(&request)?;
    let cancel = cancel_on_term()?;
    let trace = match crate::input::open(&request.source) {
        Ok(trace) => trace,
        Err(failure) => {
            let reason = format!("{:#}", failure.error);
            tell(&mut channel, &Reply::Unreadable { reason })?;
            return Ok(failure.exit);
        }
    };
    tell(&mut channel, &Reply::Loaded { digest: trace.instance.digest().to_string() })?;
    let hints = request.hints.as_deref().map(Hints::from);
    for (cell, asked) in request.cells.iter().enumerate() {
        let mailbox = request.mailboxes.join(cell.to_string());
        let mut begin = || tell(&mut channel, &Reply::Started { cell });
        let answer = perform(&trace.instance, asked, hints.as_ref(), &mailbox, &cancel, &mut begin)?;
        tell(&mut channel, &Reply::Finished { cell, answer: Box::new(answer) })?;
    }
    Ok(Exit::Complete)
}

/// Keeps stdout for the protocol: what planners and solvers print goes to stderr from now on.
pub(crate) fn private_stdout() -> io::Result<File> {
    let private: OwnedFd = io::stdout().as_fd().try_clone_to_owned()?;
    rustix::stdio::dup2_stdout(io::stderr())?;
    Ok(File::from(private))
}

/// A child whose parent was killed would disturb whatever is measured next.
pub(crate) fn die_with_parent(parent: u32) -> Result<(), crate::exit::Failure> {
    rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))?;
    // The parent may have died before the line above.
    let now = rustix::process::getppid().map_or(0, |pid| pid.as_raw_nonzero().get());
    if u32::try_from(now) == Ok(parent) {
        Ok(())
    } else {
        Err(anyhow::anyhow!("the parent process is gone").into())
    }
}

pub(crate) fn tell(channel: &mut File, reply: &impl Serialize) -> io::Result<()> {
    let mut line = serde_json::to_vec(reply)?;
    line.push(b'\n');
    channel.write_all(&line)
}

/// A dead child is a row, not a file of its memory.
pub(crate) fn leave_no_core() -> io::Result<()> {
    Ok(setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) })?)
}

fn restrict(request: &Request) -> io::Result<()> {
    leave_no_core()?;
    if let Some(bytes) = request.address_space {
        setrlimit(Resource::As, Rlimit { current: Some(bytes), maximum: Some(bytes) })?;
    }
    if let Some(core) = request.core {
        let mut cores = rustix::thread::CpuSet::new();
        cores.set(core);
        rustix::thread::sched_setaffinity(None, &cores)?;
    }
    Ok(())
}

fn cancel_on_term() -> io::Result<CancelToken> {
    let flag = Arc::new(AtomicBool::new(false));
    signal_hook::flag::register(signal_hook::consts::SIGTERM, Arc::clone(&flag))?;
    Ok(CancelToken::from(flag))
}

/// Runs one cell: once for the answer, then, where that was quick, again for the times.
pub(crate) fn perform(
    instance: &Instance,
    asked: &CellRequest,
    hints: Option<&Hints>,
    mailbox: &Path,
    cancel: &CancelToken,
    begin: &mut dyn FnMut() -> io::Result<()>,
) -> Result<Answer, crate::exit::Failure> {
    let external = external::find(&asked.planner);
    let ours = if external.is_none() { Some(planners::find(&asked.planner)?) } else { None };
    let planner: &dyn Planner = match (&external, &ours) {
        (Some(external), _) => external,
        (None, Some(ours)) => &**ours,
        (None, None) => return Err(anyhow::anyhow!("no planner `{}`", asked.planner).into()),
    };
    let budget = budget(asked, hints, cancel);
    let kept = Mailbox::create(mailbox, instance.len(), instance.in_place().len())?;
    let kept = Mutex::new(kept);
    reset_peak_rss();
    begin()?;
    let before = cpu_time();
    let outcome = once(planner, instance, asked, &budget, Some(&kept));
    let mut answer = Answer::new(&outcome, nanoseconds(cpu_time().saturating_sub(before)), peak_rss());
    drop(outcome);
    if let Some(report) = external.as_ref().and_then(External::take_report) {
        answer.take_report(&report);
    }
    let kept = kept.into_inner().unwrap_or_else(PoisonError::into_inner);
    if let Some(error) = kept.failure() {
        return Err(anyhow::anyhow!("{}: the plan could not be kept: {error}", mailbox.display()).into());
    }
    let quick = answer.samples_ns[0] < asked.repeat_below_ns;
    if quick && asked.repeats > 0 && answer.error.is_none() {
        answer.samples_ns.clear();
        for _ in 0..asked.repeats {
            begin()?;
            let outcome = once(planner, instance, asked, &budget, None);
            let report = external.as_ref().and_then(External::take_report);
            let time = report.map_or(outcome.planning, |report| report.wall);
            answer.samples_ns.push(nanoseconds(time));
        }
    }
    saboteur::tamper(&asked.planner, &mut answer);
    Ok(answer)
}

fn budget(asked: &CellRequest, hints: Option<&Hints>, cancel: &CancelToken) -> Budget {
    Budget {
        wall: asked.wall_ns.map(Duration::from_nanos),
        work: asked.work,
        target: asked.target.map(Bytes::new),
        cancel: cancel.clone(),
        threads: std::num::NonZeroUsize::new(asked.threads),
        hints: hints.filter(|_| asked.hinted).cloned(),
        ..Budget::default()
    }
}

fn once<'i>(
    planner: &dyn Planner,
    instance: &'i Instance,
    asked: &CellRequest,
    budget: &Budget,
    kept: Option<&'i Mutex<Mailbox>>,
) -> Outcome<'i> {
    execute_observed(planner, instance, budget.clone(), asked.seed, move |event, _| {
        if let Some(kept) = kept {
            kept.lock().unwrap_or_else(PoisonError::into_inner).take(&event);
        }
    })
}

/// CPU time of this process and of its children that have ended.
fn cpu_time() -> Duration {
    let spent = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::try_from(spent).unwrap_or_default() + children_cpu_time().unwrap_or_default()
}

/// In the kernel's ticks, of which there are usually a hundred in a second.
fn children_cpu_time() -> Option<Duration> {
    let stat = fs::read_to_string("/proc/self/stat").ok()?;
    // The fields after the name, which may hold anything, are plain numbers.
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_ascii_whitespace().collect();
    let ticks: u64 = fields.get(13)?.parse::<u64>().ok()? + fields.get(14)?.parse::<u64>().ok()?;
    let per_second = rustix::param::clock_ticks_per_second();
    Some(Duration::from_nanos(ticks.saturating_mul(1_000_000_000) / per_second.max(1)))
}

/// Lets the kernel forget the highest resident size so far: a batch counts each cell for itself.
fn reset_peak_rss() {
    // Not every kernel has it; the peak is then that of the process.
    let _ = fs::write("/proc/self/clear_refs", "5");
}

fn peak_rss() -> Option<u64> {
    peak_rss_of(std::process::id())
}

/// The most resident memory of a process so far, in bytes.
pub(crate) fn peak_rss_of(pid: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024)
}
