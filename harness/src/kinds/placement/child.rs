//! The child's side of planning: the hidden verb `run-cells`.

use std::io;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use planlab_dsa::{Budget, Bytes, CancelToken, Instance, Outcome, Planner, execute_observed};
use rustix::process::{Resource, Rlimit, setrlimit};

use super::mailbox::Mailbox;
use super::protocol::{Answer, CellRequest, Reply, Request};
use super::{planners, saboteurs};
use crate::inputs::{self, Hints};
use crate::kinds::external::{self, External};
use crate::process::{cancel_on_term, cpu_time, peak_rss, receive, reset_peak_rss, tell};
use crate::shell::exit::{Exit, Failure, Verdict};
use crate::shell::quantity::nanoseconds;

/// Reads a request from stdin and serves it.
pub(crate) fn serve() -> Verdict {
    let (request, mut channel) = receive(|request: &Request| request.parent)?;
    restrict(&request)?;
    let cancel = cancel_on_term()?;
    let trace = match inputs::open(&request.source) {
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

fn restrict(request: &Request) -> io::Result<()> {
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

/// Runs one cell: once for the answer and, if that was quick, again for the times.
pub(crate) fn perform(
    instance: &Instance,
    asked: &CellRequest,
    hints: Option<&Hints>,
    mailbox: &Path,
    cancel: &CancelToken,
    begin: &mut dyn FnMut() -> io::Result<()>,
) -> Result<Answer, Failure> {
    let external = external::find(&asked.planner, mailbox.parent());
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
    saboteurs::tamper(&asked.planner, &mut answer);
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
