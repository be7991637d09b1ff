//! Schedules a net in training.

use std::fs::File;
use std::path::PathBuf;

use planlab_dsa::{Budget, Bytes, CancelToken, Stop};
use planlab_graph::{
    Machine, ScheduleBudget, ScheduleOutcome, Scheduler, SchedulingProblem, Verified, execute_scheduler,
};
use planlab_solvers::placement::plan_in_any_case;
use planlab_solvers::schedule::{Classes, SuggestedCapacity, find_scheduler, suggest_capacity};
use planlab_workloads::formats::{InputLimits, read_document};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

use crate::planning::{bad, usable_threads, wall_limit};
use crate::trace::of_the_system;
use crate::worker::run_interruptibly;

/// The machine of a net that names no other.
const DEFAULT_MACHINE: &str = "x86-pcie3";
/// Units of work of the planner that places a schedule whose own offsets do not fit, if work is limited.
const PLACING_WORK: u64 = 1_000_000;

/// The file, seconds, bound in seconds, height, live peak, classes of the maps that backward passes read, why it ended.
type FoundSchedule = (String, f64, f64, u64, u64, Vec<(usize, &'static str)>, &'static str);
/// The reason; if it is proved that no schedule fits, the bytes that every schedule needs, and a capacity with a scheduler
/// that finds a schedule in it.
type Shortfall = (String, Option<(u64, Option<(u64, String)>)>);

/// What a run of a scheduler has come to.
struct ScheduleResult {
    outcome: ScheduleOutcome,
    /// The schedule with offsets that fit.
    placed: Option<Verified>,
    suggested: Option<SuggestedCapacity>,
}

/// The arguments of Python that say how a net is to be scheduled.
#[derive(FromPyObject)]
pub(crate) struct ScheduleRequest {
    machine: Option<String>,
    machine_text: Option<String>,
    capacity: Option<u64>,
    scheduler: String,
    time_limit: Option<f64>,
    threads: Option<u64>,
    work_limit: Option<u64>,
    seed: u64,
}

/// Schedules a training net, which is a text or a file. Returns the schedule, or the reason without one.
#[pyfunction]
pub(crate) fn schedule_net(
    py: Python<'_>,
    name: &str,
    text: Option<String>,
    path: Option<PathBuf>,
    request: ScheduleRequest,
) -> PyResult<(Option<FoundSchedule>, Option<Shortfall>)> {
    let text = match (text, path) {
        (Some(text), _) => text,
        (None, Some(path)) => read_net(py, name, path)?,
        (None, None) => return Err(bad("there is no net".to_owned())),
    };
    let problem = request.problem(name, &text)?;
    let key = &request.scheduler;
    let scheduler = find_scheduler(key).ok_or_else(|| bad(format!("there is no scheduler `{key}`")))?;
    let cancel = CancelToken::default();
    let budget = ScheduleBudget {
        wall: wall_limit(request.time_limit)?,
        work: request.work_limit,
        threads: usable_threads(request.threads)?,
        cancel: cancel.clone(),
        ..ScheduleBudget::default()
    };
    let seed = request.seed;
    let work = || run_scheduler(&*scheduler, &problem, budget, seed);
    let result = run_interruptibly(py, "the scheduler", &cancel, work)?;
    answer(&problem, result)
}

fn read_net(py: Python<'_>, name: &str, path: PathBuf) -> PyResult<String> {
    let file = File::open(path).map_err(|error| of_the_system(name, &error))?;
    py.detach(|| read_document(name, file, InputLimits::default())).map_err(|error| bad(error.to_string()))
}

impl ScheduleRequest {
    /// The net on its machine, in the capacity.
    fn problem(&self, name: &str, text: &str) -> PyResult<SchedulingProblem> {
        let default = find_machine(DEFAULT_MACHINE)?;
        let problem = SchedulingProblem::read_jsonl_with_default(name, text, self.machine()?, default)
            .map_err(|error| bad(error.to_string()))?;
        Ok(match self.capacity {
            Some(bytes) => problem.with_capacity(Bytes::new(bytes)),
            None => problem,
        })
    }

    /// The machine that the caller names, if any.
    fn machine(&self) -> PyResult<Option<Machine>> {
        match (&self.machine, &self.machine_text) {
            (name, Some(text)) => {
                let file = name.as_deref().unwrap_or("machine");
                Machine::from_toml(file, text).map(Some).map_err(|error| bad(error.to_string()))
            }
            (Some(key), None) => find_machine(key).map(Some),
            (None, None) => Ok(None),
        }
    }
}

/// A machine of the program by its key.
fn find_machine(key: &str) -> PyResult<Machine> {
    Machine::built_in(key).ok_or_else(|| bad(format!("there is no machine `{key}`")))
}

/// Runs a scheduler. Its best schedule is placed again if its offsets need more than the capacity. If no schedule fits,
/// a capacity that suffices is searched for.
fn run_scheduler(
    scheduler: &dyn Scheduler,
    problem: &SchedulingProblem,
    budget: ScheduleBudget,
    seed: u64,
) -> ScheduleResult {
    let outcome = execute_scheduler(scheduler, problem, budget.clone(), seed);
    let placed = match &outcome.best {
        Some(best) if best.height() > problem.capacity => {
            place_again(best, problem, budget.placement_budget(outcome.elapsed, PLACING_WORK))
        }
        best => best.clone(),
    };
    let rest = ScheduleBudget {
        wall: budget.wall.map(|wall| wall.saturating_sub(outcome.elapsed)),
        work: budget.work.map(|work| work.saturating_sub(outcome.work)),
        ..budget
    };
    let suggested = match outcome.end {
        Ok(Stop::Infeasible) => suggest_capacity(problem, &rest),
        _ => None,
    };
    ScheduleResult { outcome, placed, suggested }
}

/// The schedule with the offsets of a planner; `None` if they do not fit either.
fn place_again(best: &Verified, problem: &SchedulingProblem, budget: Budget) -> Option<Verified> {
    let room = problem.capacity.get().saturating_sub(problem.base().get());
    let instance = best.placement_problem().ok()?;
    // The scheduler may have taken all the time.
    let outcome = plan_in_any_case(&instance, Budget { target: Some(Bytes::new(room)), ..budget });
    let offsets = outcome.best.as_ref()?.offsets().to_vec();
    best.with_offsets(problem, &offsets).ok().filter(|placed| placed.height() <= problem.capacity)
}

/// What Python receives.
fn answer(
    problem: &SchedulingProblem,
    result: ScheduleResult,
) -> PyResult<(Option<FoundSchedule>, Option<Shortfall>)> {
    let ScheduleResult { outcome, placed, suggested } = result;
    let stop = match outcome.end {
        Ok(stop) => stop.name(),
        // A scheduler that fails leaves what it had.
        Err(_) if placed.is_some() => "finished",
        Err(error) => return Err(PyRuntimeError::new_err(error.to_string())),
    };
    let Some(placed) = placed else {
        let why = if outcome.best.is_some() { "its offsets do not fit" } else { stop };
        let reason = outcome.shortfall.unwrap_or_else(|| why.to_owned());
        let least = outcome.least_memory.bytes;
        let suggested = suggested.map(|found| (found.capacity.get(), found.scheduler));
        let proved = (least > problem.capacity).then(|| (least.get(), suggested));
        return Ok((None, Some((reason, proved))));
    };
    let classes = Classes::from_schedule(&problem.net, placed.schedule());
    let retained = problem.net.retained_maps();
    let classes = retained.map(|map| (map.index(), classes.class_of(map).name())).collect();
    let found = (
        placed.schedule().write_jsonl(),
        placed.seconds(),
        outcome.bound.seconds,
        placed.height().get(),
        placed.live_peak().get(),
        classes,
        stop,
    );
    Ok((Some(found), None))
}
