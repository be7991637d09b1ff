//! The child's side of a replay: the hidden verb `run-replay`.

use std::num::NonZeroU32;
use std::time::Duration;

use planlab_dsa::{Bytes, VerifiedPlan};
use planlab_replay::Sequence;
use planlab_replay::host::{self, Contender, Effort, Order, Report, replay};
use planlab_solvers::online;
use planlab_workloads::Trace;

use super::protocol::{Reply, Request};
use crate::inputs;
use crate::kinds::pool::contender::{EMPTY_LOOP, PLAN, build, malloc};
use crate::kinds::pool::saboteurs;
use crate::kinds::pool::subject::propagations;
use crate::process::{receive, tell};
use crate::shell::exit::{Exit, Failure, Verdict};

/// Reads a request from stdin and plays it.
pub(crate) fn serve() -> Verdict {
    let (request, mut channel) = receive(|request: &Request| request.parent)?;
    let traces: Result<Vec<Trace>, Failure> = request.sources.iter().map(inputs::open).collect();
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
    let sequences: Vec<Sequence> = propagations(traces, None).iter().map(Sequence::new).collect();
    let plan = match &request.plan {
        Some(plan) => Some(first.instance.verify(plan.clone())?),
        None => None,
    };
    let build = |backing| build(&request.contender, backing);
    let threads = NonZeroU32::new(request.threads).ok_or_else(|| Failure::usage("no threads"))?;
    let order = Order {
        contender: contender(&request.contender, plan.as_ref(), &build)?,
        sequences: &sequences,
        work: request.work,
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
        _ if online::allocator(key).is_some() || saboteurs::find(key).is_some() => {
            Ok(Contender::Online(build))
        }
        _ => Err(Failure::usage(format!("there is no contender `{key}`"))),
    }
}
