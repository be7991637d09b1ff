//! A replay on the host as a kind of cell: one contender on one trace, or on several in turn.

use std::num::NonZeroU32;
use std::process::Command;
use std::time::Duration;

use planlab_dsa::{Bytes, Plan, VerifiedPlan};
use planlab_replay::host::{self, Contender, Effort, Order, Report, replay_contender};
use planlab_replay::{Sequence, Work};
use planlab_solvers::online;
use planlab_workloads::Trace;
use serde::{Deserialize, Serialize};

use crate::cells::{CellContext, Kind, sabotage};
use crate::inputs::{self, Source};
use crate::kinds::pool::contender::{EMPTY_LOOP, PLAN, build_allocator, find_malloc};
use crate::kinds::pool::environment::clear_allocators;
use crate::kinds::pool::saboteurs;
use crate::kinds::pool::subject::trace_propagations;
use crate::shell::exit::Failure;

/// Contenders on the host.
pub(crate) struct HostReplay;

/// A question about one contender.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct HostRequest {
    /// `plan`, or the key of an allocator.
    pub(super) contender: String,
    /// The plan that `plan` plays.
    pub(super) plan: Option<Plan>,
    pub(super) settings: Settings,
}

/// How a contender is played.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Settings {
    pub(super) work: Work,
    pub(super) threads: u32,
    /// The limit in bytes, for each thread.
    pub(super) capacity: Option<u64>,
    pub(super) budget: Duration,
    pub(super) iterations: Option<u32>,
    /// Propagations before the timed ones, if not the default number.
    pub(super) warm_up: Option<u32>,
    /// The time limit of the process.
    pub(super) limit: Duration,
}

impl Kind for HostReplay {
    const VERB: &'static str = "run-replay";

    type Source = Vec<Source>;
    type Problem = Vec<Trace>;
    type Asked = HostRequest;
    /// The figures, or why the contender cannot play.
    type Found = Result<Report, String>;
    type Kept = ();

    fn open(sources: &Vec<Source>) -> Result<Vec<Trace>, Failure> {
        sources.iter().map(inputs::open_trace).collect()
    }

    fn perform(
        traces: &Vec<Trace>,
        asked: &HostRequest,
        _: CellContext<'_>,
    ) -> Result<Result<Report, String>, Failure> {
        Ok(perform(traces, asked).map_err(|failure| failure.full_message()))
    }

    fn limit_to_begin(asked: &HostRequest) -> Duration {
        asked.settings.limit
    }

    fn prepare(asked: &HostRequest, command: &mut Command) {
        clear_allocators(command, None);
        if let Some(malloc) = find_malloc(&asked.contender) {
            command.envs(malloc.start_environment().iter().copied());
        }
    }
}

fn perform(traces: &[Trace], asked: &HostRequest) -> Result<Report, Failure> {
    let first = traces.first().ok_or_else(|| Failure::from_usage("nothing to play"))?;
    let sequences: Vec<Sequence> = trace_propagations(traces, None).iter().map(Sequence::new).collect();
    let plan = asked.plan.clone().map(|plan| first.instance.verify(plan)).transpose()?;
    let build = |backing| build_allocator(&asked.contender, backing);
    let settings = &asked.settings;
    let threads = NonZeroU32::new(settings.threads).ok_or_else(|| Failure::from_usage("no threads"))?;
    let order = Order {
        contender: contender(&asked.contender, plan.as_ref(), &build)?,
        sequences: &sequences,
        work: settings.work,
        threads,
        capacity: settings.capacity.map(Bytes::new),
        effort: Effort {
            budget: settings.budget,
            iterations: settings.iterations,
            warm_up: settings.warm_up,
        },
    };
    Ok(replay_contender(&order))
}

fn contender<'a>(
    key: &str,
    plan: Option<&'a VerifiedPlan<'a>>,
    build: host::BuildAllocator<'a>,
) -> Result<Contender<'a>, Failure> {
    if let Some(malloc) = find_malloc(key) {
        return Ok(Contender::Malloc(malloc));
    }
    match (key, plan) {
        (PLAN, Some(plan)) => Ok(Contender::Plan(plan)),
        (EMPTY_LOOP, _) => Ok(Contender::EmptyLoop),
        _ if online::find_allocator(key).is_some() || sabotage::find(&saboteurs::KEYS, key).is_some() => {
            Ok(Contender::Online(build))
        }
        _ => Err(Failure::from_usage(format!("there is no contender `{key}`"))),
    }
}
