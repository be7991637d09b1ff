//! Runs the model in HiGHS.

use std::num::NonZeroU32;
use std::time::Duration;

use highs::{HighsModelStatus, HighsSolutionStatus, HighsStatus, Model};
use planlab_dsa::PlanError;

use super::formulation::Formulation;
use super::search::{End, MilpAnswer};

pub(super) fn solve_with_highs(
    mut formulation: Formulation,
    limit: Option<Duration>,
) -> Result<MilpAnswer, PlanError> {
    let problem = formulation.give_to(good_lp::solvers::highs::highs);
    let refused = |why: &dyn std::fmt::Debug| PlanError::Failed(format!("HiGHS refuses the model: {why:?}"));
    let mut model = problem.try_into_inner().map_err(|why| refused(&why))?;
    set_options(&mut model, limit);
    if let Some(start) = &formulation.start {
        model.try_set_solution(Some(start), None, None, None).map_err(|why| refused(&why))?;
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

fn set_options(model: &mut Model, limit: Option<Duration>) {
    model.make_quiet();
    model.set_threads(NonZeroU32::MIN);
    model.set_option("parallel", "off");
    model.set_option("mip_rel_gap", 0.0);
    model.set_option("mip_abs_gap", 0.0);
    if let Some(limit) = limit {
        model.set_option("time_limit", limit.as_secs_f64());
    }
}
