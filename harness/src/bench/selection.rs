//! Chooses the cells of a bench from its arguments and suite.

use std::collections::BTreeMap;
use std::num::{NonZeroU32, NonZeroUsize};

use planlab_solvers::online::{self, Entry};
use planlab_workloads::process::selects;
use planlab_workloads::suites::Pick;
use planlab_workloads::{Catalog, Suite, did_you_mean, matches_glob, nearest};

use crate::bench::planners::Task;
use crate::cli::{BenchArgs, LimitArgs};
use crate::inputs::{self, NamedFiles, Source};
use crate::kinds::external;
use crate::kinds::placement::Cell;
use crate::kinds::placement::planners;
use crate::kinds::schedule::known_schedulers;
use crate::shell::exit::Failure;
use crate::shell::output::print_note;

/// The most buffers for MIP planners that are not named explicitly.
const MIP_BUFFERS: usize = 300;

/// What a bench chooses its cells from.
pub(crate) struct BenchSelection {
    /// `None` if workloads are named without a suite.
    pub(crate) suite: Option<Suite>,
    catalog: Catalog,
    /// Patterns over the keys of the workloads.
    workloads: Vec<String>,
    /// Keeps the copies of what can be read only once.
    _named: NamedFiles,
}

impl BenchSelection {
    /// Reads the suite and every file that it or the command line names.
    pub(crate) fn from_args(args: &BenchArgs) -> Result<Self, Failure> {
        let catalog = Catalog::new(args.reading.corpus.corpus.clone()).with_limits(inputs::input_limits());
        let mut suite = requested_suite(args)?;
        let mut named = NamedFiles::read_named(&args.traces, &args.reading)?;
        let mut files = std::mem::take(&mut named.files);
        let mut workloads = args.workloads.clone();
        workloads.extend(named.keys.iter().cloned());
        workloads.extend(files.iter().map(|file| file.key.clone()));
        if let Some(suite) = &mut suite {
            let (of_suite, notices) = suite.open_files(inputs::input_limits())?;
            notices.iter().for_each(|notice| print_note(notice));
            files.extend(of_suite);
        }
        Ok(Self { suite, catalog: catalog.with_files(files), workloads, _named: named })
    }

    fn source_of(&self, workload: &str) -> Source {
        Source::of_catalog(workload, &self.catalog)
    }

    fn is_wanted(&self, workload: &str) -> bool {
        self.workloads.is_empty() || self.workloads.iter().any(|pattern| matches_glob(pattern, workload))
    }
}

/// The requested suite; `None` if workloads are named without a suite.
fn requested_suite(args: &BenchArgs) -> Result<Option<Suite>, Failure> {
    let name = match &args.suite {
        Some(name) => name.as_str(),
        None if args.workloads.is_empty() && args.traces.is_empty() => "smoke",
        None => return Ok(None),
    };
    Ok(Some(Suite::find_suite(name)?))
}

/// The cells to run, by workload.
pub(crate) fn planning_tasks(args: &BenchArgs, asked: &BenchSelection) -> Result<Vec<Task>, Failure> {
    let mut cells = Cells { args, asked, by_workload: BTreeMap::new() };
    match &asked.suite {
        Some(suite) => of_suite(suite, &mut cells)?,
        None if !args.schedulers.is_empty() => {
            return Err(Failure::from_usage(
                "--scheduler is for suites with schedules: add --suite offload/pooch",
            ));
        }
        None => of_workloads(&mut cells)?,
    }
    external::ask_versions(|key| cells.by_workload.values().flatten().any(|cell| cell.planner == key));
    let task = |(workload, cells): (String, _)| Task { source: asked.source_of(&workload), cells };
    Ok(cells.by_workload.into_iter().map(task).collect())
}

/// The online allocators to play, by workload: those of the suite, unless planners are named.
pub(crate) fn baseline_tasks(
    args: &BenchArgs,
    asked: &BenchSelection,
) -> Result<Vec<(Source, Vec<Entry>)>, Failure> {
    let is_asked = args.planners.is_empty() && args.schedulers.is_empty();
    let Some(suite) = asked.suite.as_ref().filter(|_| is_asked) else { return Ok(Vec::new()) };
    let mut by_workload: BTreeMap<String, Vec<Entry>> = BTreeMap::new();
    for baseline in suite.baseline_cells(&asked.catalog, &online::keys())? {
        let is_wanted = asked.is_wanted(&baseline.workload);
        if let Some(entry) = online::find_allocator(&baseline.allocator).filter(|_| is_wanted) {
            by_workload.entry(baseline.workload).or_default().push(entry);
        }
    }
    Ok(by_workload.into_iter().map(|(key, entries)| (asked.source_of(&key), entries)).collect())
}

struct Cells<'a> {
    args: &'a BenchArgs,
    asked: &'a BenchSelection,
    by_workload: BTreeMap<String, Vec<Cell>>,
}

impl Cells<'_> {
    /// Adds a planner's cells on a workload. The command line decides on their limits, else the pick, else the default.
    fn add(&mut self, workload: &str, planner: &str, pick: Option<&Pick>) {
        let args = self.args;
        let limits = LimitArgs {
            time_limit: args.limits.time_limit.or(pick.and_then(|pick| pick.time_limit)),
            threads: args.limits.threads.or(pick.and_then(|pick| pick.threads)).or(Some(NonZeroUsize::MIN)),
            ..args.limits.clone()
        };
        let of_pick = pick.and_then(|pick| pick.repetitions.map(NonZeroU32::get));
        let capacities = match args.capacities.as_slice() {
            [] => vec![pick.and_then(|pick| pick.capacity)],
            named => named.iter().copied().map(Some).collect(),
        };
        let cell = Cell::of(&self.asked.source_of(workload), planner, &limits);
        let cells = self.by_workload.entry(workload.to_owned()).or_default();
        for target in capacities {
            for repetition in 0..args.reps.or(of_pick).unwrap_or(1) {
                let cell = Cell { target, repetition, ..cell.clone() };
                if !cells.contains(&cell) {
                    cells.push(cell);
                }
            }
        }
    }
}

fn of_suite(suite: &Suite, cells: &mut Cells<'_>) -> Result<(), Failure> {
    let Cells { args, asked, .. } = *cells;
    let catalog = &asked.catalog;
    let planners =
        if args.planners.is_empty() { planners::keys() } else { planners::matching(&args.planners)? };
    let selection = suite.select_cells(catalog, &planners::keys(), is_quick)?;
    suite.check_names(catalog, &planners::keys(), &planners::absent(), &selection.picks)?;
    selection.notices.iter().for_each(|notice| print_note(notice));
    let baselines = suite.baseline_cells(catalog, &online::keys())?;
    let mut keys: Vec<&str> = selection.picks.iter().map(|pick| pick.workload.as_str()).collect();
    keys.extend(baselines.iter().map(|baseline| baseline.workload.as_str()));
    let scheduled: Vec<String> =
        suite.schedule_cells(&known_schedulers())?.iter().map(|pick| pick.spec.to_string()).collect();
    keys.extend(scheduled.iter().map(String::as_str));
    keys.dedup();
    for pattern in &args.workloads {
        if !keys.iter().any(|key| matches_glob(pattern, key)) {
            let place = format!(" in suite `{}`", suite.name);
            return Err(Failure::from_usage(no_workload(pattern, &place, &keys, catalog)));
        }
    }
    for pick in selection.picks.iter().filter(|_| args.schedulers.is_empty()) {
        if asked.is_wanted(&pick.workload) && planners.contains(&pick.planner) {
            cells.add(&pick.workload, &pick.planner, Some(pick));
        }
    }
    refuse_nothing(args, suite, &selection.picks, cells)
}

/// Names the planners that the suite does not run; an error if that leaves nothing to run.
fn refuse_nothing(args: &BenchArgs, suite: &Suite, picks: &[Pick], cells: &Cells<'_>) -> Result<(), Failure> {
    let chosen: Vec<&Cell> = cells.by_workload.values().flatten().collect();
    let is_left_out = |name: &&String| !chosen.iter().any(|cell| matches_glob(name, &cell.planner));
    let left_out: Vec<String> =
        args.planners.iter().filter(is_left_out).map(|name| format!("`{name}`")).collect();
    if left_out.is_empty() || picks.is_empty() {
        return Ok(());
    }
    let among = if args.workloads.is_empty() { "" } else { " on these workloads" };
    let reason = format!("suite `{}` does not run {}{among}", suite.name, left_out.join(", "));
    if chosen.is_empty() {
        return Err(Failure::from_usage(reason));
    }
    print_note(&reason);
    Ok(())
}

fn is_quick(planner: &str, buffers: usize) -> bool {
    planners::descriptor(planner).is_some_and(|descriptor| planners::is_quick_for(&descriptor, buffers))
}

fn of_workloads(cells: &mut Cells<'_>) -> Result<(), Failure> {
    let Cells { args, asked, .. } = *cells;
    let named = if args.planners.is_empty() { None } else { Some(planners::matching(&args.planners)?) };
    for workload in chosen_workloads(&asked.workloads, &asked.catalog)? {
        let chosen = match &named {
            Some(named) => named.clone(),
            None => practical_planners(asked.catalog.buffer_count(&workload)?),
        };
        chosen.iter().for_each(|planner| cells.add(&workload, planner, None));
    }
    Ok(())
}

/// The planners that are practical for the given number of buffers.
fn practical_planners(buffers: usize) -> Vec<String> {
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
        if catalog.find_file(pattern).is_some() {
            chosen.push(pattern.clone());
            continue;
        }
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
    if wrong.is_empty() { Ok(chosen) } else { Err(refuse_names(&wrong, patterns.len(), catalog)) }
}

/// The error for all names that match nothing. Names that only need a corpus are reported together.
fn refuse_names(wrong: &[(&String, String)], asked: usize, catalog: &Catalog) -> Failure {
    if let [(_, reason)] = wrong {
        return Failure::from_usage(reason);
    }
    let (lacking, unknown): (Vec<_>, Vec<_>) =
        wrong.iter().partition(|(pattern, _)| needs_corpus(pattern, catalog));
    let mut parts: Vec<String> = unknown.iter().map(|(_, reason)| reason.clone()).collect();
    if !lacking.is_empty() {
        let names: Vec<String> = lacking.iter().map(|(pattern, _)| format!("`{pattern}`")).collect();
        parts.push(format!("{} {NEEDS_CORPUS}", names.join(", ")));
    }
    let count = wrong.len();
    Failure::from_usage(format!("{count} of {asked} workloads do not exist: {}", parts.join("; ")))
}

const NEEDS_CORPUS: &str = "need the folder of external instances: --corpus DIR, or PLANLAB_CORPUS";

/// Whether the name needs external instances, and no corpus is given.
fn needs_corpus(pattern: &str, catalog: &Catalog) -> bool {
    catalog.corpus().is_none() && ["minimalloc/", "idealloc/"].iter().any(|start| pattern.starts_with(start))
}

fn no_workload(pattern: &str, place: &str, keys: &[&str], catalog: &Catalog) -> String {
    if needs_corpus(pattern, catalog) {
        return format!("there is no workload `{pattern}`{place}: such keys {NEEDS_CORPUS}");
    }
    let near = nearest(pattern, keys.iter().copied());
    format!("there is no workload `{pattern}`{place}{}", did_you_mean(&near))
}
