//! Runs the model in HiGHS.

use std::num::NonZeroU32;
use std::time::Duration;

use good_lp::solvers::highs::HighsProblem;
use highs::{HighsModelStatus, HighsSolutionStatus, HighsStatus, Model};
use planlab_dsa::PlanError;

use super::formulation::Formulation;
use super::search::{End, MilpAnswer};

pub(super) fn solve_with_highs(
    mut formulation: Formulation,
    limit: Option<Duration>,
) -> Result<MilpAnswer, PlanError> {
    let limits = SolverLimits { time: limit, ..SolverLimits::default() };
    let problem = formulation.give_to(good_lp::solvers::highs::highs);
    run_highs(problem, formulation.start.as_deref(), limits).map_err(PlanError::Failed)
}

/// When HiGHS ends before it has proved an optimum. Default: never.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SolverLimits {
    /// The wall time.
    pub(crate) time: Option<Duration>,
    /// The nodes of the search: with this limit alone a run repeats.
    pub(crate) nodes: Option<i32>,
    /// The relative gap between the solution and the bound.
    pub(crate) gap: f64,
}

/// Solves a model from a start, if there is one. An error says what HiGHS refuses.
pub(super) fn run_highs(
    problem: HighsProblem,
    start: Option<&[f64]>,
    limits: SolverLimits,
) -> Result<MilpAnswer, String> {
    let refused = |why: &dyn std::fmt::Debug| format!("HiGHS refuses the model: {why:?}");
    let mut model = problem.try_into_inner().map_err(|why| refused(&why))?;
    set_options(&mut model, limits);
    if start.is_some() {
        model.try_set_solution(start, None, None, None).map_err(|why| refused(&why))?;
    }
    let solved = model.try_solve().map_err(|why: HighsStatus| refused(&why))?;
    let end = match solved.status() {
        HighsModelStatus::Optimal => End::Optimal,
        HighsModelStatus::ReachedTimeLimit => End::OutOfTime,
        HighsModelStatus::Infeasible | HighsModelStatus::UnboundedOrInfeasible => End::Infeasible,
        _ => End::Stopped,
    };
    let has_solution = solved.primal_solution_status() == HighsSolutionStatus::Feasible;
    let columns = has_solution.then(|| solved.get_solution().columns().to_vec());
    let dual = solved.double_info_value(c"mip_dual_bound").unwrap_or(f64::NAN);
    Ok(MilpAnswer { columns, dual, end })
}

fn set_options(model: &mut Model, limits: SolverLimits) {
    model.make_quiet();
    model.set_threads(NonZeroU32::MIN);
    model.set_option("parallel", "off");
    model.set_option("mip_rel_gap", limits.gap);
    model.set_option("mip_abs_gap", 0.0);
    if let Some(limit) = limits.time {
        model.set_option("time_limit", limit.as_secs_f64());
    }
    if let Some(nodes) = limits.nodes {
        model.set_option("mip_max_nodes", nodes);
    }
}
