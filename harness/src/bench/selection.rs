//! Chooses the cells of a bench from its arguments and suite.

use std::collections::BTreeMap;
use std::num::{NonZeroU32, NonZeroUsize};

use planlab_solvers::online::{self, Entry};
use planlab_workloads::process::selects;
use planlab_workloads::suites::Pick;
use planlab_workloads::{Catalog, Suite, did_you_mean, glob, nearest};

use crate::bench::run::Task;
use crate::cli::{BenchArgs, LimitArgs};
use crate::external;
use crate::inputs::Source;
use crate::planning::Cell;
use crate::planning::planners;
use crate::scheduling::known;
use crate::shell::exit::Failure;
use crate::shell::output::note;

/// The most buffers for MIP planners that are not named explicitly.
const MIP_BUFFERS: usize = 300;

/// The requested suite; `None` if workloads are named without a suite.
pub(crate) fn suite(args: &BenchArgs) -> Result<Option<Suite>, Failure> {
    let name = match &args.suite {
        Some(name) => name.as_str(),
        None if args.workloads.is_empty() => "smoke",
        None => return Ok(None),
    };
    Ok(Some(Suite::find(name)?))
}

/// The cells to run, by workload.
pub(crate) fn tasks(
    args: &BenchArgs,
    suite: Option<&Suite>,
    catalog: &Catalog,
) -> Result<Vec<Task>, Failure> {
    let mut cells = Cells { args, by_workload: BTreeMap::new() };
    match suite {
        Some(suite) => of_suite(args, suite, catalog, &mut cells)?,
        None if !args.schedulers.is_empty() => {
            return Err(Failure::usage(
                "--scheduler is for suites with schedules: add --suite offload/pooch",
            ));
        }
        None => of_workloads(args, catalog, &mut cells)?,
    }
    external::ask_versions(|key| cells.by_workload.values().flatten().any(|cell| cell.planner == key));
    Ok(cells.into_tasks())
}

/// The online allocators to play, by workload: those of the suite, unless planners are named.
pub(crate) fn baselines(
    args: &BenchArgs,
    suite: Option<&Suite>,
    catalog: &Catalog,
) -> Result<Vec<(Source, Vec<Entry>)>, Failure> {
    let is_asked = args.planners.is_empty() && args.schedulers.is_empty();
    let Some(suite) = suite.filter(|_| is_asked) else { return Ok(Vec::new()) };
    let mut by_workload: BTreeMap<String, Vec<Entry>> = BTreeMap::new();
    for baseline in suite.baselines(catalog, &online::keys())? {
        let is_wanted = args.workloads.is_empty()
            || args.workloads.iter().any(|pattern| glob(pattern, &baseline.workload));
        if let Some(entry) = online::allocator(&baseline.allocator).filter(|_| is_wanted) {
            by_workload.entry(baseline.workload).or_default().push(entry);
        }
    }
    let corpus = args.corpus.corpus.as_deref();
    Ok(by_workload.into_iter().map(|(key, entries)| (Source::workload(&key, corpus), entries)).collect())
}

/// The limits of a cell.
struct Limits {
    args: LimitArgs,
    capacity: Option<u64>,
    repetitions: u32,
}

/// The limits of a pick's cells. The command line decides, else the suite, else the default.
fn limits(args: &BenchArgs, pick: Option<&Pick>) -> Vec<Limits> {
    let said = LimitArgs {
        time_limit: args.limits.time_limit.or(pick.and_then(|pick| pick.time_limit)),
        threads: args.limits.threads.or(pick.and_then(|pick| pick.threads)).or(Some(NonZeroUsize::MIN)),
        ..args.limits.clone()
    };
    let repetitions = args.reps.or(pick.and_then(|pick| pick.repetitions.map(NonZeroU32::get))).unwrap_or(1);
    let capacities = match args.capacities.as_slice() {
        [] => vec![pick.and_then(|pick| pick.capacity)],
        named => named.iter().copied().map(Some).collect(),
    };
    let one = |capacity| Limits { args: said.clone(), capacity, repetitions };
    capacities.into_iter().map(one).collect()
}

struct Cells<'a> {
    args: &'a BenchArgs,
    by_workload: BTreeMap<String, Vec<Cell>>,
}

impl Cells<'_> {
    fn source(&self, workload: &str) -> Source {
        Source::workload(workload, self.args.corpus.corpus.as_deref())
    }

    fn add(&mut self, workload: &str, planner: &str, limits: &Limits) {
        let source = self.source(workload);
        let cells = self.by_workload.entry(workload.to_owned()).or_default();
        let cell = Cell { target: limits.capacity, ..Cell::of(&source, planner, &limits.args) };
        for repetition in 0..limits.repetitions {
            let cell = Cell { repetition, ..cell.clone() };
            if !cells.contains(&cell) {
                cells.push(cell);
            }
        }
    }

    fn into_tasks(self) -> Vec<Task> {
        let tasks = self.by_workload.iter();
        tasks.map(|(workload, cells)| Task { source: self.source(workload), cells: cells.clone() }).collect()
    }
}

fn of_suite(
    args: &BenchArgs,
    suite: &Suite,
    catalog: &Catalog,
    cells: &mut Cells<'_>,
) -> Result<(), Failure> {
    let planners =
        if args.planners.is_empty() { planners::keys() } else { planners::matching(&args.planners)? };
    let selection = suite.select(catalog, &planners::keys(), is_quick)?;
    suite.check(catalog, &planners::keys(), &planners::absent(), &selection.picks)?;
    selection.notices.iter().for_each(|notice| note(notice));
    let baselines = suite.baselines(catalog, &online::keys())?;
    let mut keys: Vec<&str> = selection.picks.iter().map(|pick| pick.workload.as_str()).collect();
    keys.extend(baselines.iter().map(|baseline| baseline.workload.as_str()));
    let scheduled: Vec<String> =
        suite.schedules(&known())?.iter().map(|pick| pick.spec.to_string()).collect();
    keys.extend(scheduled.iter().map(String::as_str));
    keys.dedup();
    for pattern in &args.workloads {
        if !keys.iter().any(|key| glob(pattern, key)) {
            let place = format!(" in suite `{}`", suite.name);
            return Err(Failure::usage(no_workload(pattern, &place, &keys, catalog)));
        }
    }
    for pick in selection.picks.iter().filter(|_| args.schedulers.is_empty()) {
        let wanted =
            args.workloads.is_empty() || args.workloads.iter().any(|pattern| glob(pattern, &pick.workload));
        if wanted && planners.contains(&pick.planner) {
            for limits in limits(args, Some(pick)) {
                cells.add(&pick.workload, &pick.planner, &limits);
            }
        }
    }
    refuse_nothing(args, suite, &selection.picks, cells)
}

/// Names the planners that the suite does not run; an error if that leaves nothing to run.
fn refuse_nothing(args: &BenchArgs, suite: &Suite, picks: &[Pick], cells: &Cells<'_>) -> Result<(), Failure> {
    let chosen: Vec<&Cell> = cells.by_workload.values().flatten().collect();
    let is_left_out = |name: &&String| !chosen.iter().any(|cell| glob(name, &cell.planner));
    let left_out: Vec<String> =
        args.planners.iter().filter(is_left_out).map(|name| format!("`{name}`")).collect();
    if left_out.is_empty() || picks.is_empty() {
        return Ok(());
    }
    let among = if args.workloads.is_empty() { "" } else { " on these workloads" };
    let reason = format!("suite `{}` does not run {}{among}", suite.name, left_out.join(", "));
    if chosen.is_empty() {
        return Err(Failure::usage(reason));
    }
    note(&reason);
    Ok(())
}

fn is_quick(planner: &str, buffers: usize) -> bool {
    planners::descriptor(planner).is_some_and(|descriptor| planners::is_quick_for(&descriptor, buffers))
}

fn of_workloads(args: &BenchArgs, catalog: &Catalog, cells: &mut Cells<'_>) -> Result<(), Failure> {
    let named = if args.planners.is_empty() { None } else { Some(planners::matching(&args.planners)?) };
    for workload in chosen_workloads(&args.workloads, catalog)? {
        let chosen = match &named {
            Some(named) => named.clone(),
            None => practical(catalog.buffers(&workload)?),
        };
        for planner in &chosen {
            limits(args, None).iter().for_each(|limits| cells.add(&workload, planner, limits));
        }
    }
    Ok(())
}

/// The planners that are practical for the given number of buffers.
fn practical(buffers: usize) -> Vec<String> {
    let fits = |descriptor: &planlab_dsa::Descriptor| {
        let mip = descriptor.key.starts_with("mip/") && buffers > MIP_BUFFERS;
        descriptor.practical.is_none_or(|most| buffers <= most as usize) && !mip
    };
    planners::descriptors().into_iter().filter(fits).map(|descriptor| descriptor.key.into_owned()).collect()
}

/// Keys that the globs match. A glob without a star may also name a synthetic workload that is not listed.
fn chosen_workloads(patterns: &[String], catalog: &Catalog) -> Result<Vec<String>, Failure> {
    let keys = catalog.keys();
    let all: Vec<&str> = keys.iter().map(String::as_str).collect();
    let (mut chosen, mut wrong) = (Vec::new(), Vec::new());
    for pattern in patterns {
        if !pattern.contains(['*', '?']) {
            match catalog.load(pattern) {
                Ok(_) => chosen.push(pattern.clone()),
                Err(error) => wrong.push((pattern, format!("{:#}", anyhow::Error::from(error)))),
            }
            continue;
        }
        let before = chosen.len();
        chosen.extend(keys.iter().filter(|key| selects(pattern, key)).cloned());
        if chosen.len() == before {
            wrong.push((pattern, no_workload(pattern, "", &all, catalog)));
        }
    }
    if wrong.is_empty() { Ok(chosen) } else { Err(refusal(&wrong, patterns.len(), catalog)) }
}

/// The error for all names that match nothing. Names that only need a corpus are reported together.
fn refusal(wrong: &[(&String, String)], asked: usize, catalog: &Catalog) -> Failure {
    if let [(_, reason)] = wrong {
        return Failure::usage(reason);
    }
    let (lacking, unknown): (Vec<_>, Vec<_>) =
        wrong.iter().partition(|(pattern, _)| needs_corpus(pattern, catalog));
    let mut parts: Vec<String> = unknown.iter().map(|(_, reason)| reason.clone()).collect();
    if !lacking.is_empty() {
        let names: Vec<String> = lacking.iter().map(|(pattern, _)| format!("`{pattern}`")).collect();
        parts.push(format!("{} {NEEDS_CORPUS}", names.join(", ")));
    }
    let count = wrong.len();
    Failure::usage(format!("{count} of {asked} workloads are not there: {}", parts.join("; ")))
}

const NEEDS_CORPUS: &str = "need the folder of external instances: --corpus DIR, or PLANLAB_CORPUS";

/// Whether the name needs external instances, and no corpus is given.
fn needs_corpus(pattern: &str, catalog: &Catalog) -> bool {
    catalog.corpus().is_none() && ["minimalloc/", "idealloc/"].iter().any(|start| pattern.starts_with(start))
}

fn no_workload(pattern: &str, place: &str, keys: &[&str], catalog: &Catalog) -> String {
    if needs_corpus(pattern, catalog) {
        return format!("no workload{place} is `{pattern}`: such keys {NEEDS_CORPUS}");
    }
    let near = nearest(pattern, keys.iter().copied());
    format!("no workload{place} is `{pattern}`{}", did_you_mean(&near))
}
