//! A round on a device as a kind of cell: all contenders take turns in one process.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use planlab_dsa::{Backing, Bytes, CancelToken, OnlineAllocator, Requests, VerifiedPlan};
use planlab_replay::cuda::{
    self, Ballast, Builder, Contender, DriverError, Idle, News, Score, Strategy, compete_on_device,
};
use planlab_workloads::Trace;

use super::contenders::{GRAPH_PLAN, is_planned};
use super::durations;
use super::mailbox::{self, Mailbox};
use super::messages::{DeviceRequest, Player, TurnLog};
use crate::cells::{CellContext, Kind, sabotage};
use crate::cli::Device;
use crate::inputs::{self, Source};
use crate::kinds::pool::contender::{EMPTY_LOOP, build_allocator};
use crate::kinds::pool::environment::{PRELOAD, clear_allocators};
use crate::kinds::pool::saboteurs;
use crate::kinds::pool::subject::trace_propagations;
use crate::shell::exit::Failure;

/// Contenders that take turns on a device.
pub(crate) struct DeviceReplay;

impl Kind for DeviceReplay {
    const VERB: &'static str = "run-device-replay";

    type Source = Vec<Source>;
    type Problem = Vec<Trace>;
    type Asked = DeviceRequest;
    /// The turns, or why nothing can be played.
    type Found = Result<TurnLog, String>;
    /// The turns until the child died.
    type Kept = TurnLog;

    fn open(sources: &Vec<Source>) -> Result<Vec<Trace>, Failure> {
        sources.iter().map(inputs::open_trace).collect()
    }

    fn perform(
        traces: &Vec<Trace>,
        asked: &DeviceRequest,
        context: CellContext<'_>,
    ) -> Result<Result<TurnLog, String>, Failure> {
        let mailbox = Mailbox::create(context.mailbox, asked.contenders.len())?;
        Ok(play_turns(traces, asked, mailbox, context.cancel).map_err(|failure| failure.full_message()))
    }

    fn limit_to_begin(asked: &DeviceRequest) -> Duration {
        asked.limit
    }

    fn kept(_: &Vec<Source>, mailbox: &Path) -> TurnLog {
        mailbox::read(mailbox)
    }

    fn prepare(_: &DeviceRequest, command: &mut Command) {
        clear_allocators(command, Some(PRELOAD));
    }
}

/// Plays all contenders in this process, and keeps the log before and after each turn. A cancelled round ends between
/// two turns.
fn play_turns(
    traces: &[Trace],
    asked: &DeviceRequest,
    mut mailbox: Mailbox,
    cancel: &CancelToken,
) -> Result<TurnLog, Failure> {
    let requests = trace_propagations(traces, None);
    let scored = traces.iter().zip(&requests);
    let scores = scored.map(|(trace, requests)| trace_score(trace, requests, asked.operation_ns));
    let scores: Vec<Score> = scores.collect();
    let plans = verify_plans(&asked.contenders, traces)?;
    let device = open_device(asked.device)?;
    let builders = asked.contenders.iter().map(|player| allocator_builder(player, &device));
    let builders: Vec<Box<Builder>> = builders.collect();
    let players = asked.contenders.iter().zip(&plans).zip(&builders);
    let contenders = players.map(|((player, plan), builder)| Contender {
        key: player.key.clone(),
        strategy: contender_strategy(&player.key, plan.as_ref(), builder),
    });
    let contenders: Vec<Contender<'_>> = contenders.collect();
    device.rehearse_turns(wake_time(asked.device))?;
    let ballast = asked.capacity.map(|bytes| device.leave_free(Bytes::new(bytes))).transpose()?;
    let device_info = Some(device.info().clone());
    let mut log =
        TurnLog { device: device_info, figures: vec![None; contenders.len()], ..TurnLog::default() };
    let (mut figures, mut is_broken) = (log.figures.clone(), false);
    compete_on_device(&device, &scores, &contenders, &asked.protocol, cancel, &mut |news| {
        match news {
            News::Begins(place) => log.current = Some(place),
            News::Ended(place, performance) => {
                log.current = None;
                mailbox.put_figures(place, &performance);
                figures[place] = Some(*performance);
            }
            News::Broken => is_broken = true,
        }
        mailbox.put_log(&log);
    });
    log.figures = figures;
    drop(contenders);
    drop(builders);
    if is_broken {
        // Nothing can be given back now; the driver frees it when the process ends.
        return Ok(log);
    }
    let given_back = ballast.map_or(Ok(()), Ballast::give_back);
    log.lost = given_back.and(device.close()).err().map(|error| error.to_string());
    Ok(log)
}

fn open_device(device: Device) -> Result<cuda::Device, DriverError> {
    match device {
        Device::Host => Err(DriverError::Unavailable { reason: "the host is not a device".to_owned() }),
        Device::Cuda(ordinal) => cuda::Device::open_cuda(ordinal),
        Device::Simulated(bytes) => Ok(cuda::Device::with_simulation(Bytes::new(bytes))),
    }
}

fn verify_plans<'t>(
    players: &[Player],
    traces: &'t [Trace],
) -> Result<Vec<Option<VerifiedPlan<'t>>>, Failure> {
    let first = traces.first().ok_or_else(|| Failure::from_usage("nothing to play"))?;
    let verified = |player: &Player| player.plan.clone().map(|plan| first.instance.verify(plan)).transpose();
    Ok(players.iter().map(verified).collect::<Result<_, _>>()?)
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

#[cfg(test)]
mod tests {
    use planlab_replay::Work;
    use planlab_replay::cuda::Protocol;
    use planlab_workloads::ReadOptions;
    use planlab_workloads::formats::read_trace;

    use super::*;

    /// The answer for two contenders with two turns each.
    fn play(
        device: Device,
        mailbox: &Path,
        cancel: &CancelToken,
    ) -> Result<Result<TurnLog, String>, Failure> {
        let text = "# alignment: 512\nid,lower,upper,size\na,0,3,4096\nb,1,2,512\n";
        let trace = read_trace("t", text.as_bytes(), &ReadOptions::default()).expect("a trace");
        let protocol = Protocol {
            work: Work::Kernels,
            warm_up: 1,
            warm_up_most: 1,
            steady: 1,
            timed: 3,
            budget: Duration::from_secs(60),
            rounds: 2,
            seed: 0,
        };
        let player = |key: &str| Player { key: key.to_owned(), plan: None };
        let contenders = vec![player("cuda-malloc"), player("tlsf")];
        let limit = Duration::from_secs(60);
        let asked = DeviceRequest { device, contenders, protocol, operation_ns: None, capacity: None, limit };
        DeviceReplay::perform(&vec![trace], &asked, CellContext { mailbox, cancel, begin: &mut || Ok(()) })
    }

    /// The answer, and what the mailbox keeps of it.
    fn play_and_keep(device: Device, cancel: &CancelToken) -> (Result<TurnLog, String>, TurnLog) {
        let folder = tempfile::tempdir().expect("a folder");
        let mailbox = folder.path().join("0");
        let found = play(device, &mailbox, cancel).expect("an answer");
        (found, DeviceReplay::kept(&Vec::new(), &mailbox))
    }

    #[test]
    fn mailbox_keeps_all_turns() {
        let (found, kept) = play_and_keep(Device::Simulated(256 << 20), &CancelToken::default());
        assert_eq!(found.as_ref(), Ok(&kept));
        assert!(kept.device.is_some_and(|device| device.is_simulated));
        assert_eq!((kept.current, kept.lost), (None, None));
        let samples = kept.figures.iter().map(|one| one.as_ref().map(|one| one.samples.len()));
        assert_eq!(samples.collect::<Vec<_>>(), [Some(6); 2], "three of each turn");
    }

    #[test]
    fn a_device_that_is_not_there_is_a_refusal() {
        let (found, kept) = play_and_keep(Device::Host, &CancelToken::default());
        assert_eq!(found, Err("no device: the host is not a device".to_owned()));
        assert_eq!(kept, TurnLog::default());
    }

    #[test]
    fn cancelled_round_is_an_answer_without_figures() {
        let cancel = CancelToken::default();
        cancel.cancel();
        let (found, _) = play_and_keep(Device::Simulated(256 << 20), &cancel);
        assert_eq!(found.map(|log| (log.figures, log.lost)), Ok((vec![None; 2], None)));
    }

    #[test]
    fn mailbox_that_cannot_be_made_is_no_refusal() {
        let folder = tempfile::tempdir().expect("a folder");
        let mailbox = folder.path().join("missing/0");
        let played = play(Device::Host, &mailbox, &CancelToken::default());
        let error = played.expect_err("no folder").error;
        assert!(error.downcast_ref::<std::io::Error>().is_some(), "{error}");
    }
}
