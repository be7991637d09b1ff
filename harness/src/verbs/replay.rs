//! `replay`: a plan beside pools and the allocators of processes, on real memory.

use planlab_dsa::CancelToken;
use planlab_results::replay::{ReplayRow, ReplayStatus};
use planlab_workloads::Trace;
use rand::SeedableRng;
use rand::seq::SliceRandom;

use super::plan::cell;
use crate::cli::{Device, LimitArgs, ReplayArgs, WorkArg};
use crate::exit::{Exit, Failure, Verdict};
use crate::input::{self, Source};
use crate::output::{Output, note, printable};
use crate::progress::Progress;
use crate::quantity::nanoseconds;
use crate::replaying::protocol::{Request, Work};
use crate::replaying::row::{Settings, row};
use crate::replaying::subject::Subject;
use crate::replaying::supervisor::{self, ReplayEnd};
use crate::replaying::{Contender, contender, device, table};
use crate::runner::{self, Runner, Samples, now_ns};
use crate::signals::cancel_token;
use crate::target::{Keeper, scratch};
use crate::{planners, provenance};

/// Memory of a planner's process, in bytes.
const PLANNER_MEMORY: u64 = 4 << 30;

pub(crate) fn run(args: &ReplayArgs, output: Output) -> Verdict {
    let cancel = cancel_token();
    args.planners.iter().try_for_each(|planner| planners::find(planner).map(drop))?;
    if args.trace == "-" && args.plans.iter().any(|plan| plan == "-") {
        return Err(Failure::usage("the trace and a plan cannot both come from stdin"));
    }
    let is_host = args.device == Device::Host;
    let allocators = if is_host { contender::allocators(&args.allocators)? } else { Vec::new() };
    if is_host {
        refuse_on_host(args)?;
    } else {
        device::check(args)?;
    }
    let scratch = scratch()?;
    let source = Source::resolve(&args.trace, &args.reading, scratch.path())?;
    let trace = input::open(&source)?;
    trace.notices.iter().for_each(|notice| note(notice));
    let keeper = Keeper::open(args.out.as_deref())?;
    let mut contenders = plans(args, &source, &trace, &cancel)?;
    contenders.extend(allocators);
    let (mut sources, mut traces) = (vec![source], vec![trace]);
    for more in &args.more {
        let source = Source::resolve(more, &args.reading, scratch.path())?;
        traces.push(input::open(&source)?);
        sources.push(source);
    }
    match args.device {
        Device::Host => on_host(args, (&sources, &traces), &contenders, keeper, &cancel, output),
        Device::Cuda(_) | Device::Simulated(_) => {
            device::run(args, (&sources, &traces), &contenders, keeper, &cancel, output)
        }
    }
}

/// Refuses what only a device does.
fn refuse_on_host(args: &ReplayArgs) -> Result<(), Failure> {
    let is_for_devices = matches!(args.work, WorkArg::Kernels | WorkArg::Operations)
        || args.rounds > 1
        || args.operation_time.is_some();
    if is_for_devices {
        let says = "--rounds, --operation-time and kernels are for devices";
        return Err(Failure::usage(says));
    }
    Ok(())
}

/// The plans that are to be played: those that were given, and those of planners.
fn plans(
    args: &ReplayArgs,
    source: &Source,
    trace: &Trace,
    cancel: &CancelToken,
) -> Result<Vec<Contender>, Failure> {
    let mut plans = Vec::new();
    for (file, name) in args.plans.iter().zip(contender::file_names(&args.plans)) {
        let plan = input::plan(file, trace)?;
        let verified = trace.instance.verify(plan).map_err(|violation| {
            Failure::new(Exit::Invalid, format!("{file}: not a valid plan: {violation}"))
        })?;
        let contender = Contender::plan_file(name, verified.into_plan());
        if plans.iter().any(|known: &Contender| known.plan == contender.plan) {
            return Err(Failure::usage(format!("{file}: this plan was given before")));
        }
        plans.push(contender);
    }
    for planner in &args.planners {
        plans.push(planned(planner, args.seed, source, trace, cancel)?);
    }
    Ok(plans)
}

/// The plan that a planner makes, in a process of its own.
fn planned(
    planner: &str,
    seed: u64,
    source: &Source,
    trace: &Trace,
    cancel: &CancelToken,
) -> Result<Contender, Failure> {
    let limits =
        LimitArgs { time_limit: None, memory_limit: PLANNER_MEMORY, work_limit: None, seed, threads: None };
    let cell = cell(source, planner, &limits);
    let instance = &trace.instance;
    let subject = runner::Subject { source, instance, digest: instance.digest(), hints: None };
    let runner = Runner::new(cancel.clone(), Samples::ONCE)?;
    let judgement = runner.run(&subject, std::slice::from_ref(&cell), None)?.pop();
    let plan = judgement.as_ref().and_then(|judgement| judgement.plan.as_ref());
    let plan = plan.ok_or_else(|| {
        let reason = judgement.as_ref().map(|judgement| judgement.reason.as_str()).unwrap_or_default();
        Failure::new(Exit::Incomplete, format!("`{planner}` made no plan: {reason}"))
    })?;
    Ok(Contender::plan(planner, plan.as_plan().clone()))
}

fn on_host(
    args: &ReplayArgs,
    (sources, traces): (&[Source], &[Trace]),
    contenders: &[Contender],
    mut keeper: Keeper,
    cancel: &CancelToken,
    output: Output,
) -> Verdict {
    let subject = Subject::of(sources, traces);
    let turns = turns(args, contenders);
    let bar = Progress::new(turns.len() as u64, "replays");
    let mut rows = Vec::new();
    for turn in &turns {
        if cancel.is_cancelled() {
            break;
        }
        bar.set_message(printable(&turn.contender.name()).into_owned());
        let started_ns = now_ns();
        let provenance = provenance::here(1);
        let end = supervisor::run(&turn.request(sources), args.time_limit, cancel)?;
        if matches!(end, ReplayEnd::Died(crate::isolation::Death::Interrupted, _)) {
            break;
        }
        bar.inc(1);
        let when = (turn.repetition, started_ns);
        let row = row(&subject, turn.contender, &turn.settings, when, &end, provenance);
        let is_kept = keeper.keep(std::slice::from_ref(&row));
        let told = told(&end, turn);
        if output.json {
            output.value(&table::object(&row, &told))?;
        }
        rows.push(row);
        if !is_kept {
            break;
        }
    }
    bar.finish_and_clear();
    rows.sort_by_key(|row| order_of(row, contenders));
    if !output.json {
        output.text(&(head(&subject, args) + &table::table(&rows)))?;
    }
    keeper.end()?;
    Ok(if cancel.is_cancelled() { Exit::Interrupted } else { exit_of(&rows) })
}

/// One process.
struct Turn<'a> {
    contender: &'a Contender,
    settings: Settings,
    repetition: u32,
}

impl Turn<'_> {
    fn request(&self, sources: &[Source]) -> Request {
        Request {
            sources: sources.to_vec(),
            parent: std::process::id(),
            contender: self.contender.key.clone(),
            plan: self.contender.plan.clone(),
            work: self.settings.work,
            threads: self.settings.threads,
            capacity: self.settings.capacity,
            budget_ns: nanoseconds(self.settings.budget),
            iterations: self.settings.iterations,
            warm_up: self.settings.warm_up,
        }
    }
}

/// All processes: rounds, in each of which every contender with every number of threads has a turn, shuffled.
fn turns<'a>(args: &ReplayArgs, contenders: &'a [Contender]) -> Vec<Turn<'a>> {
    let mut random = rand_chacha::ChaCha8Rng::seed_from_u64(args.seed);
    let mut all = Vec::new();
    for repetition in 0..args.reps {
        let mut round = Vec::new();
        for &threads in &args.threads {
            let turn = |contender| Turn { contender, settings: settings(args, threads), repetition };
            round.extend(contenders.iter().map(turn));
        }
        round.shuffle(&mut random);
        all.extend(round);
    }
    all
}

fn settings(args: &ReplayArgs, threads: u32) -> Settings {
    let work = match args.work {
        WorkArg::None | WorkArg::Kernels | WorkArg::Operations => Work::None,
        WorkArg::Pages => Work::Pages,
        WorkArg::Pattern => Work::Pattern,
    };
    Settings {
        device: "host".to_owned(),
        work,
        threads,
        capacity: args.capacity,
        budget: args.seconds,
        iterations: args.iterations,
        warm_up: args.warm_up,
        limit: args.time_limit,
    }
}

/// Says what is not in the row: the options of the contender, which are given back, and whether it was checked less.
fn told(end: &ReplayEnd, turn: &Turn<'_>) -> String {
    let ReplayEnd::Played(report) = end else { return String::new() };
    let name = turn.contender.name();
    if turn.repetition == 0 && !report.options.is_empty() {
        note(&format!("{name}: {}", report.options));
    }
    if report.used_peak.is_some() && !report.is_pattern_checked {
        note(&format!("{name}: too large to be written: the addresses alone were checked"));
    }
    report.options.clone()
}

/// Rows of one contender stand together, in the order in which they were named.
fn order_of(row: &ReplayRow, contenders: &[Contender]) -> (u32, Option<usize>, u32) {
    let is_of = |contender: &Contender| {
        let plan = contender.digest().map(|digest| digest.to_string());
        contender.row_key() == row.contender && contender.planner == row.planner && plan == row.plan
    };
    (row.threads, contenders.iter().position(is_of), row.repetition)
}

fn head(subject: &Subject, args: &ReplayArgs) -> String {
    let Subject { name, requests, peak, .. } = subject;
    let work = match args.work {
        WorkArg::None | WorkArg::Kernels | WorkArg::Operations => "blocks are not touched",
        WorkArg::Pages => "a byte of each page is written",
        WorkArg::Pattern => "every byte is written and checked",
    };
    format!("{name}: {requests} requests, at most {peak} bytes at once; {work}\n\n")
}

/// Corrupted memory is worse than a contender that has no figures.
pub(crate) fn exit_of(rows: &[ReplayRow]) -> Exit {
    if rows.iter().any(|row| row.status == ReplayStatus::Corrupt) {
        Exit::Invalid
    } else if rows.iter().any(|row| row.status != ReplayStatus::Complete) {
        Exit::Incomplete
    } else {
        Exit::Complete
    }
}
