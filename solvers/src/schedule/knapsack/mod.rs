//! PyTorch's planners of recomputation: which activations are saved between the passes, chosen by their bytes and the
//! time to compute them again.
//!
//! None of them knows the order in which activations are freed and computed again, so what they limit is not the peak.
//! [`plan_for_capacity`] returns by how much the peak differs.
//!
//! | file | what |
//! |---|---|
//! | `activations` | the activations of a net that may be saved, and the fates of its maps if some are |
//! | `greedy`, `dp`, `ilp` | the knapsacks of `torch.compile`: activations whose bytes stay within a budget |
//! | `solver` | the choice between them |
//! | `budget` | the schedulers `pytorch/greedy`, `pytorch/dp` and `pytorch/ilp` |
//! | `sac` | the scheduler `pytorch/sac-ilp`: modules that are checkpointed, and what each discards |

mod activations;
mod budget;
mod dp;
mod greedy;
#[cfg(feature = "mip")]
mod ilp;
#[cfg(feature = "mip")]
mod sac;
mod solver;
#[cfg(test)]
mod testing;

use planlab_graph::Scheduler;

pub use activations::Activation;
pub use budget::{ActivationBudget, CapacityPlan, plan_for_capacity};
#[cfg(feature = "mip")]
pub use sac::{
    CurveLine, ModulePlan, ModuleStats, SacIlp, SacOperation, SaveRule, choose_operations, plan_modules,
};
pub use solver::BudgetSolver;

/// The schedulers of this folder, in the order in which they are listed.
pub(super) fn knapsack_schedulers() -> Vec<Box<dyn Scheduler>> {
    let budgets = BudgetSolver::ALL
        .iter()
        .map(|&solver| -> Box<dyn Scheduler> { Box::new(ActivationBudget::new(solver)) });
    #[cfg(feature = "mip")]
    let budgets = budgets.chain([Box::new(SacIlp) as Box<dyn Scheduler>]);
    budgets.collect()
}
