//! The model given to HiGHS.

use std::num::NonZeroU32;
use std::time::Duration;

use highs::{HighsModelStatus, HighsSolutionStatus, HighsStatus, Model};
use planlab_dsa::{Descriptor, Guarantee, Halt, PlanError, Planner, Run};

use super::Strengthening;
use super::cbc::{HONOURS, PRACTICAL};
use super::formulation::Formulation;
use super::search::{Answer, End, plan_with};
use crate::arenas::{has_arenas, plan_each_arena};

/// The big-M model, solved by HiGHS; key `mip/highs`.
///
/// ```
/// use planlab_dsa::{execute, Budget, Buffer, Bytes, Instance, LiveRange};
/// use planlab_solvers::milp::{MipHighs, Strengthening};
///
/// let buffers = [(4, 0, 2), (8, 1, 3), (4, 2, 4)].map(|(size, start, end)| {
///     Buffer::new(Bytes::new(size), LiveRange::new(start, end).expect("not empty"))
/// });
/// let instance = Instance::from_buffers(buffers.to_vec())?;
/// let highs = MipHighs::default().with_strengthening(Strengthening::all(false));
/// let outcome = execute(&highs, &instance, Budget::default(), 0);
/// assert!(outcome.is_optimal());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct MipHighs {
    strengthening: Strengthening,
}

impl MipHighs {
    /// The same with other additions to the model. Default: all.
    #[must_use]
    pub const fn with_strengthening(mut self, strengthening: Strengthening) -> Self {
        self.strengthening = strengthening;
        self
    }
}

impl Planner for MipHighs {
    fn descriptor(&self) -> Descriptor {
        Descriptor {
            key: "mip/highs".into(),
            summary: "mixed-integer program (big-M), solved by HiGHS".into(),
            guarantee: Guarantee::Exact,
            honours: HONOURS,
            randomized: false,
            reference: "Sekiyama et al. 2018, arXiv:1804.10001; Huangfu and Hall 2018 (HiGHS)",
            complexity: "exponential",
            practical: Some(PRACTICAL),
        }
    }

    fn plan(&self, run: &mut Run<'_>) -> Result<(), Halt> {
        if has_arenas(run.instance()) {
            return plan_each_arena(self, run);
        }
        plan_with(run, self.strengthening, solve)
    }
}

fn solve(mut formulation: Formulation, limit: Option<Duration>) -> Result<Answer, PlanError> {
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
    Ok(Answer { columns, dual, end })
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
