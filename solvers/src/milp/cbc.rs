//! Runs the model in CBC.
//!
//! Time limits count wall time (CBC's default is the CPU time of the process). The results of CBC 2.10 after a time
//! limit need care:
//!
//! - Without a solution, the objective is about 1e50.
//! - A limit that runs out in the preprocessing may return "infeasible". The height of a known plan bounds the model,
//!   so that is never true; it is treated as "out of time".
//! - With a start, the same may return "the start is optimal", or crash. So a start is given only without a limit;
//!   otherwise W alone stands for the plan known before.
//! - The bound may be the height of the best solution: one that is no lower is not taken.
//!
//! Distributions build CBC's linear solver with its assertions. Now and then one of them fails and ends the process:
//! run it in a process of its own.
//!
//! That solver factorises dense matrices by the LAPACK of the system. OpenBLAS's takes more than half a MiB of stack at
//! each level of its recursion, and two MiB, a thread's default, are not enough. So CBC runs on a thread with a larger
//! stack.

use std::time::Duration;

use coin_cbc::raw::{Model, SecondaryStatus, Status};
use planlab_dsa::PlanError;

use super::formulation::Formulation;
use super::search::{End, MilpAnswer};
use crate::team::call_with_stack;

/// Bytes of stack.
const STACK: usize = 64 << 20;

pub(super) fn solve_with_cbc(
    formulation: Formulation,
    limit: Option<Duration>,
) -> Result<MilpAnswer, PlanError> {
    call_with_stack(STACK, || solve_here(formulation, limit))
}

fn solve_here(mut formulation: Formulation, limit: Option<Duration>) -> MilpAnswer {
    let mut problem = formulation.give_to(good_lp::solvers::coin_cbc::coin_cbc);
    let model = problem.as_inner_mut();
    for (key, value) in
        [("ratioGap", "0"), ("allowableGap", "0"), ("timeMode", "elapsed"), ("slogLevel", "0")]
    {
        model.set_parameter(key, value);
    }
    if let Some(limit) = limit {
        model.set_parameter("sec", &limit.as_secs_f64().to_string());
    }
    if let (Some(start), None) = (&formulation.start, limit) {
        let columns: Vec<_> = model.cols().collect();
        columns
            .into_iter()
            .zip(start)
            .for_each(|(column, &value)| model.set_col_initial_solution(column, value));
    }
    let solution = model.solve();
    read_answer(solution.raw(), limit.is_some())
}

fn read_answer(model: &Model, is_limited: bool) -> MilpAnswer {
    let height = model.obj_value();
    let has_solution = height.is_finite() && height < 1e40;
    let columns = has_solution.then(|| model.col_solution().to_vec());
    let best = model.best_possible_value();
    let (end, dual) = match (model.status(), model.secondary_status()) {
        (Status::Finished, SecondaryStatus::HasSolution) if has_solution => (End::Optimal, best.min(height)),
        // Nothing below the start is feasible; `best` stays at the first relaxation.
        (Status::Finished, _) if has_solution && !is_limited => (End::Optimal, height),
        (Status::Finished, _) if !is_limited => (End::Infeasible, f64::NAN),
        (Status::Abandoned | Status::UserEvent, _) => (End::Stopped, f64::NAN),
        _ if best < height - 0.5 => (End::OutOfTime, best),
        _ => (End::OutOfTime, f64::NAN),
    };
    MilpAnswer { columns, dual, end }
}
