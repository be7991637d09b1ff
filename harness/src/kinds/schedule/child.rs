//! The child's side of scheduling: the hidden verb `run-schedule`.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use planlab_dsa::CancelToken;
use planlab_graph::{ScheduleBudget, SchedulingProblem, Verified, execute_scheduler_observed};
use rustix::process::{Resource, Rlimit, setrlimit};

use super::protocol::{Answer, Reply, Request};
use super::{question, saboteurs};
use crate::process::{cancel_on_term, cpu_time, peak_rss, receive, reset_peak_rss, tell};
use crate::shell::exit::{Exit, Failure, Verdict};
use crate::shell::quantity::nanoseconds;

/// The shortest interval between two kept schedules; the last one is always kept.
const KEEPING: Duration = Duration::from_millis(20);

/// Reads a request from stdin and serves it.
pub(crate) fn serve() -> Verdict {
    let (request, mut channel) = receive(|request: &Request| request.parent)?;
    if let Some(bytes) = request.address_space {
        setrlimit(Resource::As, Rlimit { current: Some(bytes), maximum: Some(bytes) })?;
    }
    let cancel = cancel_on_term()?;
    match read(&request.problem) {
        Ok(problem) => {
            let answer = perform(&request, &problem, &cancel)?;
            tell(&mut channel, &Reply::Finished(Box::new(answer)))?;
            Ok(Exit::Complete)
        }
        Err(failure) => {
            tell(&mut channel, &Reply::Unreadable { reason: format!("{:#}", failure.error) })?;
            Ok(failure.exit)
        }
    }
}

fn read(path: &Path) -> Result<SchedulingProblem, Failure> {
    let name = path.display().to_string();
    Ok(SchedulingProblem::read_jsonl(&name, &fs::read_to_string(path)?, None)?)
}

fn perform(request: &Request, problem: &SchedulingProblem, cancel: &CancelToken) -> Result<Answer, Failure> {
    let scheduler = question::find(&request.scheduler)?;
    let budget = ScheduleBudget {
        wall: request.wall_ns.map(Duration::from_nanos),
        work: request.work,
        target: request.target,
        cancel: cancel.clone(),
        ..ScheduleBudget::default()
    };
    let mut keeper = Keeper { path: request.mailbox.clone(), last: None };
    let mut failure = None;
    reset_peak_rss();
    let before = cpu_time();
    let outcome = execute_scheduler_observed(&*scheduler, problem, budget, request.seed, |better| {
        // Without a mailbox the run continues, because its answer still counts.
        failure = keeper.keep_now_and_then(better).err();
    });
    let mut answer = Answer::new(&outcome, nanoseconds(cpu_time().saturating_sub(before)), peak_rss());
    if let Some(best) = &outcome.best {
        write(&request.mailbox, best)?;
    }
    saboteurs::tamper(&request.scheduler, &mut answer, &request.mailbox)?;
    Ok(answer)
}

/// Keeps better schedules as they come.
struct Keeper {
    path: PathBuf,
    last: Option<Instant>,
}

impl Keeper {
    fn keep_now_and_then(&mut self, better: &Verified) -> io::Result<()> {
        if self.last.is_some_and(|last| last.elapsed() < KEEPING) {
            return Ok(());
        }
        write(&self.path, better)?;
        self.last = Some(Instant::now());
        Ok(())
    }
}

/// The file appears whole or not at all.
fn write(path: &Path, schedule: &Verified) -> io::Result<()> {
    let fresh = path.with_extension("fresh");
    fs::write(&fresh, schedule.schedule().write_jsonl())?;
    fs::rename(&fresh, path)
}
