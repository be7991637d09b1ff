//! A call without its pointers: what is asked, and the answer.

use std::num::NonZeroUsize;
use std::time::Duration;

use planlab_dsa::{
    Budget, BufferId, Bytes, ColumnError, Columns, Instance, InstanceError, Offset, Outcome, PlanError,
    Planner, Stop, execute,
};

use crate::types::{planlab_options, planlab_status};

/// Wall time of a call that does not say how long it may take.
const DEFAULT_WALL: Duration = Duration::from_secs(10);
/// The planner of a call that names none.
const DEFAULT_PLANNER: &str = "portfolio";
/// More threads than this are a mistake; each has megabytes of stack.
const MOST_THREADS: u32 = 1024;

/// What a call asks for.
pub(crate) struct Question<'c> {
    pub(crate) columns: Columns<'c>,
    /// Its pointers are not looked at.
    pub(crate) options: planlab_options,
    pub(crate) planner: Option<&'c [u8]>,
}

/// What a call comes to.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct PlanAnswer {
    pub(crate) status: planlab_status,
    /// The offsets of a verified plan; empty if no plan was found.
    pub(crate) offsets: Vec<Offset>,
    pub(crate) height: Bytes,
    pub(crate) bound: Bytes,
    pub(crate) load: Bytes,
    pub(crate) buffer: Option<BufferId>,
    pub(crate) message: String,
}

impl PlanAnswer {
    /// An answer without a plan.
    pub(crate) fn without_plan(status: planlab_status, message: impl Into<String>) -> Self {
        let zero = Bytes::ZERO;
        let (offsets, message) = (Vec::new(), message.into());
        Self { status, offsets, height: zero, bound: zero, load: zero, buffer: None, message }
    }
}

impl From<ColumnError> for PlanAnswer {
    fn from(error: ColumnError) -> Self {
        let status = match error {
            ColumnError::Instance(InstanceError::TooMany { .. }) | ColumnError::TooManySteps { .. } => {
                planlab_status::PLANLAB_ERROR_TOO_MANY
            }
            _ => planlab_status::PLANLAB_ERROR_BUFFER,
        };
        Self { buffer: error.faulty_buffer(), ..Self::without_plan(status, error.to_string()) }
    }
}

impl Question<'_> {
    /// Plans.
    pub(crate) fn find_answer(&self) -> Result<PlanAnswer, PlanAnswer> {
        let budget = call_budget(&self.options)?;
        let planner = find_planner(self.planner)?;
        let instance = self.columns.build_instance()?;
        let capacity = budget.target;
        let outcome = execute(&*planner, &instance, budget, self.options.seed);
        Ok(judge_outcome(&instance, &outcome, capacity))
    }
}

fn call_budget(options: &planlab_options) -> Result<Budget, PlanAnswer> {
    let refused =
        |message: String| Err(PlanAnswer::without_plan(planlab_status::PLANLAB_ERROR_OPTION, message));
    if options.flags != 0 {
        return refused(format!("flags is {:#x}; it has to be 0", options.flags));
    }
    if options.threads > MOST_THREADS {
        return refused(format!("threads is {}; there may be {MOST_THREADS} at most", options.threads));
    }
    let seconds = options.time_limit;
    if seconds.is_nan() || seconds < 0.0 {
        return refused(format!("time_limit is {seconds}; it has to be 0 or more seconds"));
    }
    // No duration is as long as some numbers are.
    let limit = Duration::try_from_secs_f64(seconds).ok();
    let threads = match options.threads {
        0 => std::thread::available_parallelism().ok(),
        some => usize::try_from(some).ok().and_then(NonZeroUsize::new),
    };
    Ok(Budget {
        wall: if seconds == 0.0 { Some(DEFAULT_WALL) } else { limit },
        work: (options.work_limit != 0).then_some(options.work_limit),
        target: (options.capacity != 0).then(|| Bytes::new(options.capacity)),
        threads,
        ..Budget::default()
    })
}

fn find_planner(key: Option<&[u8]>) -> Result<Box<dyn Planner>, PlanAnswer> {
    let key = key.map_or(Ok(DEFAULT_PLANNER), std::str::from_utf8);
    let refused = |message| PlanAnswer::without_plan(planlab_status::PLANLAB_ERROR_PLANNER, message);
    let key = key.map_err(|_| refused("the planner's key is not UTF-8".to_owned()))?;
    planlab_solvers::find_planner(key).ok_or_else(|| refused(format!("there is no planner `{key}`")))
}

fn judge_outcome(instance: &Instance, outcome: &Outcome<'_>, capacity: Option<Bytes>) -> PlanAnswer {
    let fits = |height: Bytes| capacity.is_none_or(|capacity| height <= capacity);
    let plan = outcome.best.as_ref().filter(|plan| fits(plan.height()));
    let ended = match (&outcome.end, plan) {
        (Ok(stop), _) => stop_reason(*stop).to_owned(),
        // A planner without threads leaves what it had; one that was caught with a false claim leaves nothing.
        (Err(error @ PlanError::Failed(_)), Some(_)) => error.to_string(),
        (Err(error), _) => return plan_failure(error),
    };
    let (status, message) = match plan {
        Some(_) if outcome.is_optimal() => (planlab_status::PLANLAB_OPTIMAL, ended),
        Some(_) => (planlab_status::PLANLAB_FEASIBLE, ended),
        None => without_plan(outcome, ended, capacity),
    };
    PlanAnswer {
        status,
        offsets: plan.map(|plan| plan.offsets().to_vec()).unwrap_or_default(),
        height: plan.map_or(Bytes::ZERO, |plan| plan.height()),
        bound: outcome.bound_claim().value,
        load: instance.load().bytes,
        buffer: None,
        message,
    }
}

fn plan_failure(error: &PlanError) -> PlanAnswer {
    let status = match error {
        PlanError::Unsupported(_) => planlab_status::PLANLAB_ERROR_UNSUPPORTED,
        _ => planlab_status::PLANLAB_ERROR_FAILED,
    };
    PlanAnswer::without_plan(status, error.to_string())
}

fn without_plan(outcome: &Outcome<'_>, ended: String, capacity: Option<Bytes>) -> (planlab_status, String) {
    let bound = outcome.bound_claim().value;
    if let Some(capacity) = capacity.filter(|&capacity| bound > capacity) {
        let message = format!("every plan needs {bound} bytes, but the capacity is {capacity}");
        return (planlab_status::PLANLAB_INFEASIBLE, message);
    }
    let message = match outcome.height() {
        Some(height) => format!("{ended}; the lowest plan found needs {height} bytes"),
        None => ended,
    };
    (planlab_status::PLANLAB_UNKNOWN, message)
}

/// Why planning ended.
const fn stop_reason(stop: Stop) -> &'static str {
    match stop {
        Stop::Finished => "the planner has done all it can",
        Stop::Proved => "the plan is proved optimal",
        Stop::TargetReached => "the plan fits the capacity",
        Stop::Infeasible => "no plan fits the capacity",
        Stop::Deadline => "the time is up",
        Stop::WorkLimit => "the work is used up",
        Stop::Cancelled => "planning was cancelled",
    }
}
