//! The program over a tree of modules.
//!
//! Module i has IA bytes of saved activations, ACM >= IA bytes of all its activations, and T seconds to compute them
//! again. At the peak of its backward pass, the net has TA bytes of activations and AG bytes of gradients. The columns
//! are a binary y (it is checkpointed), r (the share of ACM that it discards), p (the share of T that it spends) and t
//! (these seconds).
//!
//! ```text
//! minimise sum of t_i
//! y_i + y_j <= 1                                  module j lies in module i
//! r_i <= y_i                                      only a checkpointed module discards
//! d_i = ACM_i r_i - (ACM_i - IA_i) y_i >= 0       the saved bytes that it discards
//! TA_i + AG_i - sum of d_j <= budget              module j ends before module i
//! p_i >= slope r_i + intercept                    for each line of the curve
//! t_i >= T_i p_i - M (1 - y_i)                    M: the most seconds of a module
//! ```
//!
//! # References
//!
//! 1. PyTorch, `torch/distributed/_tools/sac_ilp.py`: the program of a model on one device.
//!
//! # Complexity
//!
//! Exponential. n^2 / 2 coefficients for n modules.
//!
//! # Deviations from the paper
//!
//! - Rows that an optimum meets anyway (upper bounds of t) are left out.
//! - Parameters and sharding are not a part of the program: the caller subtracts their bytes from the budget.

use std::time::Duration;

use planlab_graph::{ScheduleError, ScheduleHalt};

use super::curve::CurveLine;
use crate::milp::{Column, LinearProgram, LinearSolution};
use crate::schedule::knapsack::ilp::limit_solver;
use crate::schedule::milp_solver::solve_program;
use crate::schedule::solver_time::error_of_halt;

/// A module of a tree in pre-order. Sizes are in bytes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ModuleStats {
    /// The modules inside are those from the next one to this index, exclusive.
    pub subtree_end: usize,
    /// Activations that it saves without a checkpoint, its output excluded.
    pub saved: f64,
    /// All its activations, its output excluded; with 0 it cannot be checkpointed.
    pub all: f64,
    /// Saved activations in the net at the peak of its backward pass.
    pub total: f64,
    /// Gradients at that peak.
    pub gradients: f64,
    /// Seconds to compute all its activations again.
    pub seconds: f64,
    /// The share of these seconds by the share of its activations that is discarded.
    pub lines: Vec<CurveLine>,
}

/// The modules to checkpoint.
#[derive(Clone, Debug, PartialEq)]
pub struct ModulePlan {
    /// For each module: the share of all its activations that it discards; `None` without a checkpoint.
    pub discarded: Vec<Option<f64>>,
    /// Seconds of recomputation.
    pub seconds: f64,
    /// The modelled peak, in bytes.
    pub peak: f64,
}

/// The plan with the least seconds of recomputation whose modelled peak is within a budget in bytes, up to a relative
/// gap; `None` if there is no plan.
///
/// # Errors
///
/// [`ScheduleError::Failed`] if the solver fails.
pub fn plan_modules(
    modules: &[ModuleStats],
    budget: f64,
    gap: f64,
) -> Result<Option<ModulePlan>, ScheduleError> {
    plan_modules_within(modules, budget, gap, None).map_err(error_of_halt)
}

/// As [`plan_modules`], or the best plan that the solver finds in this time; [`planlab_dsa::Stop::Deadline`] if it finds
/// no plan.
pub(super) fn plan_modules_within(
    modules: &[ModuleStats],
    budget: f64,
    gap: f64,
    time: Option<Duration>,
) -> Result<Option<ModulePlan>, ScheduleHalt> {
    if modules.is_empty() {
        return Ok(Some(ModulePlan { discarded: Vec::new(), seconds: 0.0, peak: 0.0 }));
    }
    let largest = |number: fn(&ModuleStats) -> f64| modules.iter().map(number).fold(0.0, f64::max);
    // Bytes and seconds are in these units, so that the solver's tolerances are shares.
    let unit = largest(|module| module.total + module.gradients).max(1.0);
    let longest = largest(|module| module.seconds).max(f64::MIN_POSITIVE);
    let mut program = LinearProgram::new();
    let columns: Vec<Columns> = modules.iter().map(|module| Columns::new(&mut program, module)).collect();
    for (index, module) in modules.iter().enumerate() {
        columns[index].add_rows(&mut program, module, unit, longest);
        for inner in &columns[index + 1..module.subtree_end] {
            program.limit_sum(&[(columns[index].is_checkpointed, 1.0), (inner.is_checkpointed, 1.0)], 1.0);
        }
        let earlier = list_earlier(modules, index);
        let kept: Vec<_> =
            earlier.flat_map(|earlier| columns[earlier].kept_bytes(&modules[earlier], unit)).collect();
        program.limit_sum(&kept, (budget - module.total - module.gradients) / unit);
    }
    let (_, solution) = solve_program(program, limit_solver(gap, time))?;
    Ok(solution.map(|solution| read_plan(modules, &columns, &solution)))
}

/// The modules that end before a module does: those inside it, and those before it that do not contain it.
fn list_earlier(modules: &[ModuleStats], index: usize) -> impl Iterator<Item = usize> {
    let before = (0..index).filter(move |&other| modules[other].subtree_end <= index);
    before.chain(index + 1..modules[index].subtree_end)
}

/// The columns of a module.
struct Columns {
    /// y.
    is_checkpointed: Column,
    /// r.
    discarded: Column,
    /// p.
    recomputed: Column,
    /// t, in units of the longest module.
    seconds: Column,
}

impl Columns {
    fn new(program: &mut LinearProgram, module: &ModuleStats) -> Self {
        let most = if module.all > 0.0 { 1.0 } else { 0.0 };
        Self {
            is_checkpointed: program.add_column((0.0, most), true, 0.0),
            discarded: program.add_column((0.0, most), false, 0.0),
            recomputed: program.add_column((0.0, 1.0), false, 0.0),
            seconds: program.add_column((0.0, 1.0), false, 1.0),
        }
    }

    /// The terms of the saved bytes that the module discards, negative.
    fn kept_bytes(&self, module: &ModuleStats, unit: f64) -> [(Column, f64); 2] {
        let unsaved = module.all - module.saved;
        [(self.discarded, -module.all / unit), (self.is_checkpointed, unsaved / unit)]
    }

    fn add_rows(&self, program: &mut LinearProgram, module: &ModuleStats, unit: f64, longest: f64) {
        if module.all <= 0.0 {
            return;
        }
        program.limit_sum(&[(self.discarded, 1.0), (self.is_checkpointed, -1.0)], 0.0);
        program.limit_sum(&self.kept_bytes(module, unit), 0.0);
        for line in &module.lines {
            program.limit_sum(&[(self.discarded, line.slope), (self.recomputed, -1.0)], -line.intercept);
        }
        // t >= T p - M (1 - y), in units of M.
        let spent =
            [(self.recomputed, module.seconds / longest), (self.seconds, -1.0), (self.is_checkpointed, 1.0)];
        program.limit_sum(&spent, 1.0);
    }
}

/// The plan of a solution.
fn read_plan(modules: &[ModuleStats], columns: &[Columns], solution: &LinearSolution) -> ModulePlan {
    let decision = |columns: &Columns| {
        (solution.value(columns.is_checkpointed) > 0.5).then_some(solution.value(columns.discarded))
    };
    let discarded: Vec<Option<f64>> = columns.iter().map(decision).collect();
    let bytes = |index: usize| {
        let module = &modules[index];
        discarded[index].map_or(0.0, |share| module.all * share - (module.all - module.saved))
    };
    let memory = |index: usize| {
        let module = &modules[index];
        module.total + module.gradients - list_earlier(modules, index).map(bytes).sum::<f64>()
    };
    let seconds = |(module, share): (&ModuleStats, &Option<f64>)| {
        let Some(share) = share else { return 0.0 };
        let height = module.lines.iter().map(|line| line.slope * share + line.intercept);
        module.seconds * height.fold(0.0, f64::max)
    };
    let peak = (0..modules.len()).map(memory).fold(0.0, f64::max);
    let seconds: f64 = modules.iter().zip(&discarded).map(seconds).sum();
    ModulePlan { seconds, peak, discarded }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A root with four equal layers, each of 10 saved bytes of 12. The first half of a layer's bytes take a quarter of
    /// its second. Gradients take 5 bytes.
    fn four_layers() -> Vec<ModuleStats> {
        let lines = vec![CurveLine { slope: 0.5, intercept: 0.0 }, CurveLine { slope: 1.5, intercept: -0.5 }];
        let module = |subtree_end, layers: f64, total: f64| ModuleStats {
            subtree_end,
            saved: 10.0 * layers,
            all: 12.0 * layers,
            total,
            gradients: 5.0,
            seconds: layers,
            lines: lines.clone(),
        };
        let mut modules = vec![module(5, 4.0, 40.0)];
        modules.extend((1..=4_u8).map(|layer| module(usize::from(layer) + 1, 1.0, 10.0 * f64::from(layer))));
        modules
    }

    fn plan_exactly(modules: &[ModuleStats], budget: f64) -> Option<ModulePlan> {
        plan_modules(modules, budget, 0.0).expect("the solver runs")
    }

    #[test]
    fn loose_budget_checkpoints_nothing() {
        let plan = plan_exactly(&four_layers(), 45.0).expect("a plan");
        assert_eq!(plan, ModulePlan { discarded: vec![None; 5], seconds: 0.0, peak: 45.0 });
    }

    #[test]
    fn tight_budget_spreads_what_is_discarded_over_layers() {
        // The last layer needs 15 bytes less from the three before it: 12 r - 2 each, so r is 1.75 in sum. All of it lies
        // on the second line: 1.5 * 1.75 - 3 * 0.5 seconds. Two layers would take 1.5 * 19 / 12 - 2 * 0.5 = 1.375.
        let plan = plan_exactly(&four_layers(), 30.0).expect("a plan");
        assert!((plan.seconds - 1.125).abs() < 1e-4, "{plan:?}");
        assert!((plan.peak - 30.0).abs() < 1e-3, "{plan:?}");
        assert_eq!(plan.discarded[0], None);
        let shares: f64 = plan.discarded[1..4].iter().flatten().sum();
        assert!((shares - 1.75).abs() < 1e-4, "{plan:?}");
    }

    #[test]
    fn first_layer_has_nothing_to_discard_before_it() {
        let mut modules = four_layers();
        assert_eq!(plan_exactly(&modules, 14.9), None);
        // At 15 bytes, each layer but the last discards all of its ten.
        let plan = plan_exactly(&modules, 15.0).expect("a plan");
        assert!((plan.seconds - 3.0).abs() < 1e-4, "{plan:?}");
        // A module without activations cannot be checkpointed.
        modules[2] = ModuleStats { all: 0.0, saved: 0.0, ..modules[2].clone() };
        assert_eq!(plan_exactly(&modules, 15.0), None);
    }

    #[test]
    fn modules_inside_end_before_the_module() {
        let modules = four_layers();
        assert_eq!(list_earlier(&modules, 0).collect::<Vec<_>>(), [1, 2, 3, 4]);
        assert_eq!(list_earlier(&modules, 3).collect::<Vec<_>>(), [1, 2]);
    }
}
