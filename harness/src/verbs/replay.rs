//! `replay`: plays plans, pools and process allocators on real memory.

use std::path::Path;

use planlab_dsa::CancelToken;
use planlab_workloads::Trace;

use crate::cli::{Device, LimitArgs, ReplayArgs};
use crate::inputs::{self, Source};
use crate::kinds::placement::{self, Cell, Runner, Samples, planners};
use crate::kinds::pool::{Contender, Keeper, contender, device, host};
use crate::shell::exit::{Exit, Failure, Verdict};
use crate::shell::output::{Output, print_note};
use crate::shell::signals::cancel_token;
use crate::shell::target::scratch_folder;

/// The memory limit of a planner's process, in bytes.
const PLANNER_MEMORY: u64 = 4 << 30;

pub(crate) fn run(args: &ReplayArgs, output: Output) -> Verdict {
    let cancel = cancel_token();
    args.planners.iter().try_for_each(|planner| planners::find(planner).map(drop))?;
    if args.trace == "-" && args.plans.iter().any(|plan| plan == "-") {
        return Err(Failure::from_usage("the trace and a plan cannot both come from stdin"));
    }
    let is_host = args.device == Device::Host;
    let allocators = if is_host { contender::matching_allocators(&args.allocators)? } else { Vec::new() };
    if is_host {
        host::check_args(args)?;
    } else {
        device::check_device(args)?;
    }
    let scratch = scratch_folder()?;
    let (source, trace) = open_argument(&args.trace, args, scratch.path())?;
    trace.notices.iter().for_each(|notice| print_note(notice));
    let keeper = Keeper::open_store(args.out.as_deref())?;
    let mut contenders = plan_contenders(args, &source, &trace, &cancel)?;
    contenders.extend(allocators);
    let (mut sources, mut traces) = (vec![source], vec![trace]);
    for more in &args.more {
        let (source, trace) = open_argument(more, args, scratch.path())?;
        traces.push(trace);
        sources.push(source);
    }
    match args.device {
        Device::Host => host::run(args, (&sources, &traces), &contenders, keeper, &cancel, output),
        Device::Cuda(_) | Device::Simulated(_) => {
            device::run(args, (&sources, &traces), &contenders, keeper, &cancel, output)
        }
    }
}

/// A trace; where rows are kept, under the key that `bench` gives it.
fn open_argument(argument: &str, args: &ReplayArgs, scratch: &Path) -> Result<(Source, Trace), Failure> {
    let source = Source::resolve_argument(argument, &args.reading, scratch)?;
    let trace = inputs::open_trace(&source)?;
    inputs::refuse_several_arenas(&source.name, &trace, "a replay")?;
    let source = if args.out.is_some() { source.under_its_key(&trace) } else { source };
    Ok((source, trace))
}

/// The plans to play: given ones, and those of planners.
fn plan_contenders(
    args: &ReplayArgs,
    source: &Source,
    trace: &Trace,
    cancel: &CancelToken,
) -> Result<Vec<Contender>, Failure> {
    let mut plans = Vec::new();
    for (file, name) in args.plans.iter().zip(contender::file_names(&args.plans)) {
        let plan = inputs::read_plan(file, trace)?;
        let verified = trace.instance.verify(plan).map_err(|violation| {
            Failure::new(Exit::Invalid, format!("{file}: not a valid plan: {violation}"))
        })?;
        let contender = Contender::plan_file(name, verified.into_plan());
        if plans.iter().any(|known: &Contender| known.plan == contender.plan) {
            return Err(Failure::from_usage(format!("{file}: this plan is given twice")));
        }
        plans.push(contender);
    }
    for planner in &args.planners {
        plans.push(planned_contender(planner, args.seed, source, trace, cancel)?);
    }
    Ok(plans)
}

/// The plan that a planner makes, in a process of its own.
fn planned_contender(
    planner: &str,
    seed: u64,
    source: &Source,
    trace: &Trace,
    cancel: &CancelToken,
) -> Result<Contender, Failure> {
    let limits =
        LimitArgs { time_limit: None, memory_limit: PLANNER_MEMORY, work_limit: None, seed, threads: None };
    let cell = Cell::of(source, planner, &limits);
    let instance = &trace.instance;
    let subject = placement::Subject { source, instance, digest: instance.digest(), hints: None };
    let runner = Runner::new(cancel.clone(), Samples::ONCE)?;
    let judgement = runner.run_one(&subject, &cell)?;
    let reason = judgement.ending.reason;
    let plan = judgement
        .plan
        .ok_or_else(|| Failure::new(Exit::Incomplete, format!("`{planner}` made no plan: {reason}")))?;
    Ok(Contender::from_plan(planner, plan.into_plan()))
}
