//! Selective activation checkpointing by a mixed-integer program over modules: which modules are checkpointed, and which
//! share of its activations each discards.
//!
//! The modules form a tree: blocks of the net between articulation points, and joins of consecutive blocks. A program
//! decides for each module whether it is checkpointed, and the share of its activations that it discards. The modelled
//! memory at each module's backward pass is within the budget, and the modelled seconds of recomputation are least. Then
//! a knapsack in each checkpointed module chooses the activations to save.
//!
//! The model knows neither the memory of a recomputation nor that of the forward pass, so its plan may not fit. It gets
//! all of the capacity first, then less and less, down to a half, until the peak of a plan fits.
//!
//! | file | what |
//! |---|---|
//! | `modules` | the modules of a net, and their figures |
//! | `curve` | a module's seconds of recomputation by the share that it discards |
//! | `program` | the program over modules |
//! | `operations` | the knapsack in a module |
//!
//! # References
//!
//! 1. PyTorch, `torch/distributed/_tools/sac_ilp.py`, `sac_estimator.py` and `ilp_utils.py`, version 2.6 and later.
//! 2. B. Lefaudeux et al.: xFormers, `xformers/checkpoint.py`: the knapsack in a module.
//!
//! # Complexity
//!
//! A program with 2 columns of decisions for each of at most 63 modules, for each of at most 8 budgets: exponential. It
//! ends at a gap of 5 %, as published, after a fixed number of nodes, or when the time of the run is up.
//!
//! # Deviations from the paper
//!
//! - Modules are those of the user's program there. Here they are blocks that end at articulation points which a backward
//!   pass reads, and a balanced binary tree over them.
//! - The curve of a module is exact; there, two lines are fitted to it.
//! - A module's activations are those at its peak, and gradients count in full. There, activations are those after its
//!   forward pass, output included, and gradients that exist before its backward pass do not count.
//! - The output of a module is never discarded, and computing it again is never needed.
//! - One solution at the whole budget is all that PyTorch asks for; trying less is an addition.
//! - Parameters are on one device, and are a part of the base. There are no views, no operations in place and no random
//!   numbers in a net here; the knapsack has the rules for them.

mod curve;
mod modules;
mod operations;
mod program;

use planlab_graph::{MapId, ScheduleHalt, ScheduleRun, Scheduler, SchedulerDescriptor};

pub use curve::CurveLine;
pub use operations::{SacOperation, SaveRule, choose_operations};
pub use program::{ModulePlan, ModuleStats, plan_modules};

use super::activations::{Activation, drop_unsaved};
use crate::schedule::fates::offer_fates;
use crate::schedule::solver_time::time_for_solver;
use modules::{NetModule, list_modules};
use operations::choose_operations_within;
use program::plan_modules_within;

/// The scheduler's key.
const KEY: &str = "pytorch/sac-ilp";
/// The relative gap at which the program over modules ends.
const GAP: f64 = 0.05;
/// The part of a module's bytes by which the solver's share may be too large.
const TOLERANCE: f64 = 1e-6;
/// The parts of the capacity that the model may use, in turn.
const SHARES: [f64; 8] = [1.0, 0.95, 0.9, 0.85, 0.8, 0.7, 0.6, 0.5];

/// Checkpoints modules by a program; key `pytorch/sac-ilp`.
#[derive(Clone, Copy, Debug, Default)]
pub struct SacIlp;

impl Scheduler for SacIlp {
    fn descriptor(&self) -> SchedulerDescriptor {
        SchedulerDescriptor {
            key: KEY.into(),
            summary: "checkpoints modules, and discards a share of each, by a mixed-integer program".into(),
            randomized: false,
            reference: "PyTorch's sac_ilp",
            complexity: "exponential, for each of 8 budgets",
        }
    }

    fn schedule(&self, run: &mut ScheduleRun<'_>) -> Result<(), ScheduleHalt> {
        let problem = run.problem();
        let modules = list_modules(problem);
        let stats: Vec<ModuleStats> = modules.iter().map(|module| module.stats.clone()).collect();
        let room = problem.capacity.get().saturating_sub(problem.base().get()) as f64;
        let mut last: Option<Vec<bool>> = None;
        for share in SHARES {
            let time = time_for_solver(run)?;
            let Some(plan) = plan_modules_within(&stats, share * room, GAP, time)? else { break };
            let saved = choose_maps(run, &modules, &plan)?;
            if last.as_ref() == Some(&saved) {
                continue;
            }
            offer_fates(run, KEY, &drop_unsaved(&problem.net, &saved))?;
            if run.best_schedule().is_some() {
                return Ok(());
            }
            last = Some(saved);
        }
        if last.is_none() {
            let capacity = problem.capacity;
            run.fall_short(format!(
                "out of memory: no choice of modules is modelled to fit {capacity} bytes"
            ));
        }
        Ok(())
    }
}

/// For each map, whether it is saved: outside of checkpointed modules all that backward passes read, inside what the
/// knapsack chooses.
fn choose_maps(
    run: &mut ScheduleRun<'_>,
    modules: &[NetModule],
    plan: &ModulePlan,
) -> Result<Vec<bool>, ScheduleHalt> {
    let problem = run.problem();
    let net = &problem.net;
    let mut is_saved: Vec<bool> = net.map_ids().map(|map| net.is_retained(map)).collect();
    for (module, discarded) in modules.iter().zip(&plan.discarded) {
        let Some(discarded) = discarded else { continue };
        let output = |&map: &MapId| Activation::from_map(problem, map);
        let operation = |output| SacOperation { output, rule: SaveRule::Free };
        let operations: Vec<SacOperation> = module.maps.iter().map(output).map(operation).collect();
        let budget = (1.0 - discarded + TOLERANCE).clamp(0.0, 1.0);
        let saved = choose_operations_within(&operations, budget, time_for_solver(run)?)?;
        module.maps.iter().zip(saved).for_each(|(map, saved)| is_saved[map.index()] = saved);
    }
    Ok(is_saved)
}

#[cfg(test)]
mod tests {
    use planlab_dsa::Bytes;
    use planlab_graph::{ScheduleBudget, ScheduleOutcome, SchedulingProblem, execute_scheduler};

    use super::*;
    use crate::schedule::knapsack::testing::chain_problem;

    fn run_within(problem: &SchedulingProblem, capacity: u64) -> ScheduleOutcome {
        let problem = problem.clone().with_capacity(Bytes::new(capacity));
        execute_scheduler(&SacIlp, &problem, ScheduleBudget::default(), 0)
    }

    /// Sixteen passes of a second each way. Everything takes 64 + 15 * 256 + 256 bytes.
    #[test]
    fn chain_is_recomputed_as_much_as_the_capacity_asks() {
        let chain = chain_problem(&[1.0; 16]);
        // Each 256 bytes less take a second more; a solver within its gap may round up in more than one module.
        for (capacity, least, most) in
            [(4160, 32.0, 32.0), (3328, 36.0, 39.0), (2496, 39.0, 42.0), (2080, 41.0, 44.0)]
        {
            let outcome = run_within(&chain, capacity);
            let best = outcome.best.expect("it fits");
            assert!(best.live_peak().get() <= capacity, "{capacity} bytes");
            let seconds = best.seconds();
            assert!((least..=most).contains(&seconds), "{capacity} bytes: {seconds} s");
        }
    }

    #[test]
    fn capacity_that_no_choice_of_modules_fits_is_a_reason() {
        // A backward pass and the gradients beside it take as much.
        let outcome = run_within(&chain_problem(&[1.0; 16]), 768);
        assert!(outcome.best.is_none());
        let reason = outcome.shortfall.expect("a reason");
        assert_eq!(reason, "out of memory: no choice of modules is modelled to fit 768 bytes");
    }

    #[test]
    fn modules_without_time_end_at_the_deadline() {
        let problem = chain_problem(&[1.0; 16]).with_capacity(Bytes::new(2496));
        let wall = Some(std::time::Duration::from_millis(1));
        let budget = ScheduleBudget { wall, ..ScheduleBudget::default() };
        let outcome = execute_scheduler(&SacIlp, &problem, budget, 0);
        assert_eq!((outcome.end, outcome.best), (Ok(planlab_dsa::Stop::Deadline), None));
    }
}
