//! Runs HiGHS on the programs of schedulers.

use planlab_dsa::Stop;
use planlab_graph::{ScheduleError, ScheduleHalt};

use crate::milp::{End, LinearProgram, LinearSolution, SolverLimits};

/// How HiGHS ends within limits, and the best solution that it finds, if any.
///
/// # Errors
///
/// [`ScheduleError::Failed`] if it refuses the program, [`Stop::Deadline`] if it finds no solution in time.
pub(super) fn solve_program(
    program: LinearProgram,
    limits: SolverLimits,
) -> Result<(End, Option<LinearSolution>), ScheduleHalt> {
    match program.solve(limits).map_err(ScheduleError::Failed)? {
        (End::OutOfTime, None) => Err(ScheduleHalt::Stop(Stop::Deadline)),
        answer => Ok(answer),
    }
}
