//! The child's side of a device's replay: the hidden verb `run-device-replay`.

use std::fs::File;
use std::time::Duration;

use planlab_dsa::{Backing, Bytes, OnlineAllocator, Requests, VerifiedPlan};
use planlab_replay::cuda::{
    self, Ballast, Builder, Contender, DriverError, Idle, News, Score, Strategy, compete_on_device,
};
use planlab_workloads::Trace;

use super::contenders::{GRAPH_PLAN, is_planned};
use super::durations;
use super::protocol::{Player, Reply, Request};
use crate::cells::sabotage;
use crate::cli::Device;
use crate::inputs;
use crate::kinds::pool::contender::{EMPTY_LOOP, build_allocator};
use crate::kinds::pool::saboteurs;
use crate::kinds::pool::subject::trace_propagations;
use crate::process::{receive_request, send_reply};
use crate::shell::exit::{Exit, Failure, Verdict};

/// Reads a request from stdin and plays it.
pub(crate) fn serve() -> Verdict {
    let (request, mut channel) = receive_request(|request: &Request| request.parent)?;
    let traces: Result<Vec<Trace>, Failure> = request.sources.iter().map(inputs::open_trace).collect();
    let played = traces.and_then(|traces| perform(&request, &traces, &mut channel));
    let (reply, exit) = match played {
        Ok(reply) => (reply, Exit::Complete),
        Err(failure) => (Reply::Unreadable { reason: failure.full_message() }, failure.exit),
    };
    send_reply(&mut channel, &reply)?;
    Ok(exit)
}

/// Plays all contenders in this process, and reports their turns.
fn perform(request: &Request, traces: &[Trace], channel: &mut File) -> Result<Reply, Failure> {
    let requests = trace_propagations(traces, None);
    let scored = traces.iter().zip(&requests);
    let scores = scored.map(|(trace, requests)| trace_score(trace, requests, request.operation_ns));
    let scores: Vec<Score> = scores.collect();
    let plans = verify_plans(request, traces)?;
    let unavailable = |error: DriverError| Reply::Unavailable { reason: error.to_string() };
    let device = match super::open_device(request.device) {
        Ok(device) => device,
        Err(error) => return Ok(unavailable(error)),
    };
    let builders = request.contenders.iter().map(|player| allocator_builder(player, &device));
    let builders: Vec<Box<Builder>> = builders.collect();
    let players = request.contenders.iter().zip(&plans).zip(&builders);
    let contenders = players.map(|((player, plan), builder)| Contender {
        key: player.key.clone(),
        strategy: contender_strategy(&player.key, plan.as_ref(), builder),
    });
    let contenders: Vec<Contender<'_>> = contenders.collect();
    if let Err(error) = device.rehearse_turns(wake_time(request.device)) {
        return Ok(unavailable(error));
    }
    let ballast = request.capacity.map(|bytes| device.leave_free(Bytes::new(bytes))).transpose();
    let ballast = match ballast {
        Ok(ballast) => ballast,
        Err(error) => return Ok(unavailable(error)),
    };
    send_reply(channel, &Reply::Device(device.info().clone()))?;
    let (mut told, mut broken) = (Ok(()), None);
    compete_on_device(&device, &scores, &contenders, &request.protocol, &mut |news| {
        let reply = match news {
            News::Begins(contender) => Reply::Begins { contender },
            News::Ended(contender, performance) => Reply::Ended { contender, performance },
            News::Broken(error) => {
                broken = Some(error.to_string());
                return;
            }
        };
        if told.is_ok() {
            told = send_reply(channel, &reply);
        }
    });
    told?;
    drop(contenders);
    drop(builders);
    if let Some(reason) = broken {
        // Nothing can be given back now; the driver frees it when the process ends.
        return Ok(Reply::Broken { reason });
    }
    let given_back = ballast.map_or(Ok(()), Ballast::give_back);
    if let Err(error) = given_back.and(device.close()) {
        send_reply(channel, &Reply::Lost { reason: error.to_string() })?;
    }
    Ok(Reply::Done)
}

fn verify_plans<'t>(
    request: &Request,
    traces: &'t [Trace],
) -> Result<Vec<Option<VerifiedPlan<'t>>>, Failure> {
    let first = traces.first().ok_or_else(|| Failure::from_usage("nothing to play"))?;
    let verified = |player: &Player| player.plan.clone().map(|plan| first.instance.verify(plan)).transpose();
    Ok(request.contenders.iter().map(verified).collect::<Result<_, _>>()?)
}

/// How long a device works before the first turn, because an idle GPU has slow clocks.
const fn wake_time(device: Device) -> Duration {
    if matches!(device, Device::Cuda(_)) { Duration::from_millis(300) } else { Duration::ZERO }
}

fn allocator_builder(player: &Player, device: &cuda::Device) -> Box<Builder> {
    let key = player.key.clone();
    if sabotage::find(&saboteurs::KEYS, &key) == Some(saboteurs::BROKEN_DEVICE) {
        let device = device.clone();
        return Box::new(move |backing: Box<dyn Backing>| -> Box<dyn OnlineAllocator> {
            device.break_down();
            build_allocator(&key, backing)
        });
    }
    Box::new(move |backing: Box<dyn Backing>| -> Box<dyn OnlineAllocator> { build_allocator(&key, backing) })
}

fn contender_strategy<'a>(
    key: &str,
    plan: Option<&'a VerifiedPlan<'a>>,
    builder: &'a Builder,
) -> Strategy<'a> {
    match (key, plan) {
        (GRAPH_PLAN, Some(plan)) => Strategy::GraphPlan(plan),
        (key, Some(plan)) if is_planned(key) => Strategy::Plan(plan),
        ("cuda-malloc", _) => Strategy::Malloc,
        ("cuda-malloc-async/keep", _) => Strategy::MallocAsync(Idle::Keep),
        ("cuda-malloc-async/release", _) => Strategy::MallocAsync(Idle::Release),
        ("cuda-graph/async", _) => Strategy::GraphAsync,
        (EMPTY_LOOP, _) => Strategy::EmptyLoop,
        _ => Strategy::Pool(builder),
    }
}

/// The requests of a trace with the times of its operations, if known. A replay with operations has checked that they
/// are.
fn trace_score(trace: &Trace, requests: &Requests, operation_ns: Option<u64>) -> Score {
    let score = Score::new(requests);
    match durations::request_durations(trace, operation_ns) {
        Ok(times) => score.with_operations(times),
        Err(_) => score,
    }
}
