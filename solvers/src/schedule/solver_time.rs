//! The time that a run leaves to a solver with a clock of its own.

use std::time::Duration;

use planlab_dsa::Stop;
use planlab_graph::{ScheduleError, ScheduleHalt, ScheduleRun};

/// Time kept in reserve for the work after the solver: a part of the time left, and a fixed time.
const MARGIN: (u32, Duration) = (33, Duration::from_millis(20));

/// The solver's share of the time left; `None` if the run has no limit of time. Errors are as of [`ScheduleRun::tick`], and
/// [`Stop::Deadline`] if there is no time for a solver.
pub(super) fn time_for_solver(run: &mut ScheduleRun<'_>) -> Result<Option<Duration>, ScheduleHalt> {
    run.tick(0)?;
    let Some(left) = run.remaining_time() else { return Ok(None) };
    let (part, least) = MARGIN;
    match left.checked_sub(left / part).and_then(|left| left.checked_sub(least)) {
        Some(left) if !left.is_zero() => Ok(Some(left)),
        _ => Err(ScheduleHalt::Stop(Stop::Deadline)),
    }
}

/// The error of a solver without a limit of time.
pub(super) fn error_of_halt(halt: ScheduleHalt) -> ScheduleError {
    match halt {
        ScheduleHalt::Error(error) => error,
        ScheduleHalt::Stop(stop) => ScheduleError::Failed(format!("the solver stopped: {stop:?}")),
    }
}
