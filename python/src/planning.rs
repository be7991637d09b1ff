//! Plans a problem.

use std::num::NonZeroUsize;
use std::thread;
use std::time::Duration;

use numpy::{PyArray1, PyReadonlyArray1};
use planlab_dsa::{Budget, Bytes, Columns, Instance, Outcome, PlanError, Planner, Stop, execute};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;

use crate::worker::run_interruptibly;

/// The default wall time.
const DEFAULT_WALL: Duration = Duration::from_secs(10);
/// More threads than this are a mistake; each has megabytes of stack.
const MOST_THREADS: u64 = 1024;

/// Offsets (or none), height, bound, load, whether the plan is proved optimal, why planning ended, seconds, hand-overs.
pub(crate) type Told<'py> =
    (Option<Bound<'py, PyArray1<u64>>>, u64, u64, u64, bool, &'static str, f64, Vec<(u32, u32)>);

/// How something is to be planned.
pub(crate) struct Asked {
    planner: Box<dyn Planner>,
    budget: Budget,
    seed: u64,
}

/// The arguments of Python that say how something is to be planned.
#[derive(FromPyObject)]
pub(crate) struct Limits {
    capacity: Option<u64>,
    time_limit: Option<f64>,
    planner: String,
    threads: Option<u64>,
    seed: u64,
    work_limit: Option<u64>,
}

impl Limits {
    pub(crate) fn asked(self) -> PyResult<Asked> {
        let wall = wall_limit(self.time_limit)?;
        let threads = usable_threads(self.threads)?;
        let key = &self.planner;
        let planner =
            planlab_solvers::find_planner(key).ok_or_else(|| bad(format!("there is no planner `{key}`")))?;
        let target = self.capacity.map(Bytes::new);
        let budget = Budget { wall, work: self.work_limit, target, threads, ..Budget::default() };
        Ok(Asked { planner, budget, seed: self.seed })
    }
}

/// The wall time of a limit in seconds; `None` if there is no limit.
pub(crate) fn wall_limit(time_limit: Option<f64>) -> PyResult<Option<Duration>> {
    match time_limit {
        None => Ok(Some(DEFAULT_WALL)),
        Some(seconds) if seconds.is_nan() || seconds < 0.0 => {
            Err(bad(format!("`time_limit` is {seconds}; it has to be 0 or more seconds")))
        }
        // No duration is as long as some numbers are.
        Some(seconds) => Ok(Duration::try_from_secs_f64(seconds).ok()),
    }
}

/// The given number of threads; by default one for each core.
pub(crate) fn usable_threads(given: Option<u64>) -> PyResult<Option<NonZeroUsize>> {
    match given {
        None => Ok(thread::available_parallelism().ok()),
        Some(count @ 1..=MOST_THREADS) => Ok(usize::try_from(count).ok().and_then(NonZeroUsize::new)),
        Some(count) => Err(bad(format!("`threads` is {count}; it has to be 1 to {MOST_THREADS}"))),
    }
}

/// The keys of all planners.
#[pyfunction]
pub(crate) fn planners() -> Vec<String> {
    planlab_solvers::keys()
}

/// Plans a problem that is given as arrays, which are contiguous.
#[pyfunction]
pub(crate) fn plan_columns<'py>(
    py: Python<'py>,
    lower: PyReadonlyArray1<'py, i64>,
    upper: PyReadonlyArray1<'py, i64>,
    size: PyReadonlyArray1<'py, u64>,
    alignment: Option<PyReadonlyArray1<'py, u64>>,
    pins: Option<PyReadonlyArray1<'py, i64>>,
    limits: Limits,
) -> PyResult<Told<'py>> {
    let asked = limits.asked()?;
    let columns = Columns {
        lower: lower.as_slice()?,
        upper: upper.as_slice()?,
        size: size.as_slice()?,
        align: alignment.as_ref().map(|column| column.as_slice()).transpose()?,
        pin: pins.as_ref().map(|column| column.as_slice()).transpose()?,
    };
    let instance = columns.build_instance().map_err(|error| bad(error.to_string()))?;
    plan(py, &instance, asked)
}

/// Plans an instance.
pub(crate) fn plan<'py>(py: Python<'py>, instance: &Instance, asked: Asked) -> PyResult<Told<'py>> {
    let capacity = asked.budget.target;
    let outcome = supervised(py, instance, asked)?;
    let proved = outcome.is_optimal();
    let stop = match (&outcome.end, &outcome.best) {
        (Ok(stop), _) => *stop,
        // A planner without threads leaves what it had.
        (Err(PlanError::Failed(_)), Some(_)) => Stop::Finished,
        (Err(error @ PlanError::Unsupported(_)), _) => return Err(bad(error.to_string())),
        (Err(error), _) => return Err(PyRuntimeError::new_err(error.to_string())),
    };
    let fits = |height: Bytes| capacity.is_none_or(|capacity| height <= capacity);
    let best = outcome.best.as_ref().filter(|plan| fits(plan.height()));
    let offsets =
        best.map(|plan| PyArray1::from_vec(py, plan.offsets().iter().map(|offset| offset.get()).collect()));
    let hand_overs = best.map_or_else(Vec::new, |plan| {
        plan.in_place().iter().map(|pair| (pair.input.get(), pair.output.get())).collect()
    });
    let height = outcome.height().map_or(0, Bytes::get);
    let (bound, load) = (outcome.bound_claim().value.get(), instance.load().bytes.get());
    Ok((offsets, height, bound, load, proved, stop.name(), outcome.elapsed.as_secs_f64(), hand_overs))
}

/// Plans in a thread of its own.
fn supervised<'i>(py: Python<'_>, instance: &'i Instance, asked: Asked) -> PyResult<Outcome<'i>> {
    let Asked { planner, budget, seed } = asked;
    let cancel = budget.cancel.clone();
    run_interruptibly(py, "the planner", &cancel, move || execute(&*planner, instance, budget, seed))
}

/// What a caller did wrong.
pub(crate) fn bad(reason: String) -> PyErr {
    PyValueError::new_err(reason)
}
