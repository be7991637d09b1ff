//! The child's side of a replay: the hidden verb `run-replay`.

use std::io::{self, BufRead};
use std::num::NonZeroU32;
use std::time::Duration;

use planlab_dsa::{Backing, Bytes, OnlineAllocator, VerifiedPlan};
use planlab_replay::Sequence;
use planlab_replay::host::{self, Contender, Effort, Order, Report, replay};
use planlab_solvers::online;
use planlab_workloads::Trace;

use super::contender::{EMPTY_LOOP, PLAN, malloc};
use super::protocol::{Reply, Request, Work};
use super::saboteur;
use crate::exit::{Exit, Failure, Verdict};
use crate::input;
use crate::isolation::child::{die_with_parent, leave_no_core, private_stdout, tell};
use crate::simulation::requests;

/// Reads a request from stdin and plays it.
pub(crate) fn serve() -> Verdict {
    let mut channel = private_stdout()?;
    let mut line = String::new();
    io::stdin().lock().read_line(&mut line)?;
    let request: Request = serde_json::from_str(&line)?;
    die_with_parent(request.parent)?;
    leave_no_core()?;
    let traces: Result<Vec<Trace>, Failure> = request.sources.iter().map(input::open).collect();
    match traces.and_then(|traces| perform(&request, &traces)) {
        Ok(report) => {
            tell(&mut channel, &Reply::Played(Box::new(report)))?;
            Ok(Exit::Complete)
        }
        Err(failure) => {
            tell(&mut channel, &Reply::Unreadable { reason: failure.message() })?;
            Ok(failure.exit)
        }
    }
}

/// Plays a request in this process.
fn perform(request: &Request, traces: &[Trace]) -> Result<Report, Failure> {
    let first = traces.first().ok_or_else(|| Failure::usage("nothing to play"))?;
    let sequences: Vec<Sequence> = traces.iter().map(|trace| Sequence::new(&requests(trace, None))).collect();
    let plan = match &request.plan {
        Some(plan) => Some(first.instance.verify(plan.clone())?),
        None => None,
    };
    let build = |backing| build(&request.contender, backing);
    let threads = NonZeroU32::new(request.threads).ok_or_else(|| Failure::usage("no threads"))?;
    let order = Order {
        contender: contender(&request.contender, plan.as_ref(), &build)?,
        sequences: &sequences,
        work: work(request.work),
        threads,
        capacity: request.capacity.map(Bytes::new),
        effort: Effort {
            budget: Duration::from_nanos(request.budget_ns),
            iterations: request.iterations,
            warm_up: request.warm_up,
        },
    };
    Ok(replay(&order))
}

fn contender<'a>(
    key: &str,
    plan: Option<&'a VerifiedPlan<'a>>,
    build: host::BuildAllocator<'a>,
) -> Result<Contender<'a>, Failure> {
    if let Some(malloc) = malloc(key) {
        return Ok(Contender::Malloc(malloc));
    }
    match (key, plan) {
        (PLAN, Some(plan)) => Ok(Contender::Plan(plan)),
        (EMPTY_LOOP, _) => Ok(Contender::EmptyLoop),
        _ if online::allocator(key).is_some() || saboteur::find(key).is_some() => {
            Ok(Contender::Online(build))
        }
        _ => Err(Failure::usage(format!("there is no contender `{key}`"))),
    }
}

/// Makes an online allocator; [`contender`] has looked whether there is one.
pub(super) fn build(key: &str, backing: Box<dyn Backing>) -> Box<dyn OnlineAllocator> {
    match saboteur::find(key) {
        Some(saboteur) => saboteur::build(saboteur, backing),
        None => online::allocator(key).expect("a key that was found").build(backing),
    }
}

const fn work(work: Work) -> host::Work {
    match work {
        Work::None => host::Work::None,
        Work::Pages => host::Work::Pages,
        Work::Pattern => host::Work::Pattern,
    }
}
