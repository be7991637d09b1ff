//! The partitioner of `torch.compile` under a memory budget: a 0-1 knapsack over the bytes of saved activations.
//!
//! A budget b from 0 to 1 scales between saving only the inputs of the net (0) and all that the backward passes read
//! (1). A solver saves the activations that spare the most seconds within the share b of these bytes; the rest is
//! recomputed. The seconds of an activation are those of its own function: whether its inputs are there does not count.
//!
//! The budget limits what is saved, not the peak: what is recomputed for a backward pass takes memory, too, and so do
//! gradients. So the budgets 1, 0.95, ..., 0, and the one that fills the capacity, are tried from the largest down, and
//! the first whose peak fits is the result. If no budget fits, the reason says what the budget that fills the capacity
//! saves, and its peak.
//!
//! # References
//!
//! 1. PyTorch, `torch/_functorch/partitioners.py` and `torch/_functorch/_activation_checkpointing/knapsack.py`: the option
//!    `activation_memory_budget`, version 2.4 and later.
//! 2. PyTorch, issue 197838: budgets of 0.05, 0.1, 0.15, 0.2 and 0.3 have peaks of 1145, 508, 275, 325 and 411 MB.
//!
//! # Complexity
//!
//! A knapsack and a simulation, O(n), for each of 22 budgets.
//!
//! # Deviations from the paper
//!
//! - PyTorch solves a minimum cut first, which bans the recomputation of some operations, and again after the knapsack,
//!   to find the cheapest place to save. Here the candidates are all maps that a backward pass reads, and exactly the
//!   chosen ones are saved.
//! - PyTorch fuses operations and may place a recomputation later. Here a recomputation runs right before the backward
//!   pass that needs it.
//! - The user of PyTorch sets the budget; trying several is an addition.

use std::fmt;
use std::time::Duration;

use planlab_dsa::Bytes;
use planlab_graph::{
    ScheduleError, ScheduleHalt, ScheduleRun, Scheduler, SchedulerDescriptor, SchedulingProblem,
};

use super::BudgetSolver;
use super::activations::{Candidates, saved_bytes, total_bytes};
use crate::schedule::fates::{build_program, offer_fates};
use crate::schedule::program::least_room;
use crate::schedule::solver_time::{error_of_halt, time_for_solver};

/// The steps between the budgets 0 and 1.
const STEPS: u32 = 20;

/// Saves what a knapsack chooses, at the largest budget that fits; keys `pytorch/greedy`, `pytorch/dp` and `pytorch/ilp`.
#[derive(Clone, Copy, Debug)]
pub struct ActivationBudget {
    solver: BudgetSolver,
}

impl ActivationBudget {
    /// Chooses by this solver.
    #[must_use]
    pub const fn new(solver: BudgetSolver) -> Self {
        Self { solver }
    }

    const fn key(self) -> &'static str {
        match self.solver {
            BudgetSolver::Greedy => "pytorch/greedy",
            BudgetSolver::Dp => "pytorch/dp",
            #[cfg(feature = "mip")]
            BudgetSolver::Ilp => "pytorch/ilp",
        }
    }

    /// The choice within a budget, in the time of the run.
    fn choose_saved(
        self,
        run: &mut ScheduleRun<'_>,
        knapsack: &NetKnapsack<'_>,
        budget: f64,
    ) -> Result<Vec<bool>, ScheduleHalt> {
        let time = if self.solver.is_exact() { time_for_solver(run)? } else { None };
        knapsack.choose_saved(self.solver, budget, time)
    }

    const fn describe_solver(self) -> (&'static str, &'static str) {
        match self.solver {
            BudgetSolver::Greedy => ("in the order of seconds per byte", "n log n for each of 22 budgets"),
            BudgetSolver::Dp => ("by a table of 10,000 slots", "10,000 n for each of 22 budgets"),
            #[cfg(feature = "mip")]
            BudgetSolver::Ilp => ("by a 0-1 program", "exponential, for each of 22 budgets"),
        }
    }
}

impl Scheduler for ActivationBudget {
    fn descriptor(&self) -> SchedulerDescriptor {
        let (how, complexity) = self.describe_solver();
        SchedulerDescriptor {
            key: self.key().into(),
            summary: format!("saves activations within a budget of bytes, {how}, and recomputes the rest")
                .into(),
            randomized: false,
            reference: "PyTorch's activation_memory_budget",
            complexity,
        }
    }

    fn schedule(&self, run: &mut ScheduleRun<'_>) -> Result<(), ScheduleHalt> {
        let knapsack = NetKnapsack::new(run.problem());
        let mut last: Option<Vec<bool>> = None;
        for budget in knapsack.budgets_to_try() {
            let is_same = |saved: &Vec<bool>| self.solver.is_exact() && knapsack.is_within(saved, budget);
            if last.as_ref().is_some_and(is_same) {
                continue;
            }
            let saved = self.choose_saved(run, &knapsack, budget)?;
            if last.as_ref() == Some(&saved) {
                continue;
            }
            let fates = knapsack.candidates.fates_with(&knapsack.problem.net, &saved);
            offer_fates(run, self.key(), &fates)?;
            if run.best_schedule().is_some() {
                return Ok(());
            }
            last = Some(saved);
        }
        let saved = self.choose_saved(run, &knapsack, knapsack.filling_budget())?;
        run.fall_short(knapsack.capacity_plan(&saved).to_string());
        Ok(())
    }
}

/// The plan of the partitioner if saved activations are to fill a capacity: by how much its peak differs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CapacityPlan {
    /// The budget at which the base, the inputs of the net and the saved activations fill the capacity; at most 1.
    pub budget: f64,
    /// Bytes of the base, the inputs of the net and the saved activations.
    pub saved: Bytes,
    /// The capacity.
    pub capacity: Bytes,
    /// The most bytes in use at once, the base included.
    pub peak: Bytes,
}

impl CapacityPlan {
    /// The bytes of the peak above the capacity; 0 if it fits.
    #[must_use]
    pub fn excess(&self) -> Bytes {
        Bytes::new(self.peak.get().saturating_sub(self.capacity.get()))
    }
}

impl fmt::Display for CapacityPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { saved, capacity, peak, .. } = self;
        let excess = self.excess();
        write!(
            f,
            "out of memory: saved activations take {saved} of {capacity} bytes, the peak is {peak}, {excess} too many"
        )
    }
}

/// The plan whose budget fills the problem's capacity with saved activations.
///
/// # Errors
///
/// [`ScheduleError::Failed`] if the solver of a program fails.
pub fn plan_for_capacity(
    problem: &SchedulingProblem,
    solver: BudgetSolver,
) -> Result<CapacityPlan, ScheduleError> {
    let knapsack = NetKnapsack::new(problem);
    let saved = knapsack.choose_saved(solver, knapsack.filling_budget(), None).map_err(error_of_halt)?;
    Ok(knapsack.capacity_plan(&saved))
}

/// The knapsack of a net.
struct NetKnapsack<'p> {
    problem: &'p SchedulingProblem,
    candidates: Candidates,
    /// Bytes of the base and of the inputs of the net.
    always: u64,
}

impl<'p> NetKnapsack<'p> {
    fn new(problem: &'p SchedulingProblem) -> Self {
        let net = &problem.net;
        let inputs = net.map_ids().filter(|&map| !net.has_gradient(map));
        let always = problem.base().get().saturating_add(inputs.map(|map| net.map(map).bytes.get()).sum());
        Self { problem, candidates: Candidates::new(problem), always }
    }

    /// The budget at which the saved activations fill the capacity.
    fn filling_budget(&self) -> f64 {
        let room = self.problem.capacity.get().saturating_sub(self.always);
        let total = total_bytes(&self.candidates.activations);
        if room >= total { 1.0 } else { room as f64 / total as f64 }
    }

    /// The largest first.
    fn budgets_to_try(&self) -> Vec<f64> {
        let steps = (0..=STEPS).map(|step| f64::from(step) / f64::from(STEPS));
        let mut budgets: Vec<f64> = steps.chain([self.filling_budget()]).collect();
        budgets.sort_by(|a, b| b.total_cmp(a));
        budgets
    }

    fn is_within(&self, saved: &[bool], budget: f64) -> bool {
        let activations = &self.candidates.activations;
        saved_bytes(activations, saved) as f64 <= budget * total_bytes(activations) as f64
    }

    /// The plan that saves some activations, chosen within the filling budget.
    fn capacity_plan(&self, saved: &[bool]) -> CapacityPlan {
        let problem = self.problem;
        let (program, _) = build_program(problem, &self.candidates.fates_with(&problem.net, saved));
        let bytes = self.always + saved_bytes(&self.candidates.activations, saved);
        let peak = Bytes::new(least_room(&program));
        let budget = self.filling_budget();
        CapacityPlan { budget, saved: Bytes::new(bytes), capacity: problem.capacity, peak }
    }

    /// The choice of a solver in this time. At the ends of the scale there is nothing to choose.
    fn choose_saved(
        &self,
        solver: BudgetSolver,
        budget: f64,
        time: Option<Duration>,
    ) -> Result<Vec<bool>, ScheduleHalt> {
        let activations = &self.candidates.activations;
        if budget <= 0.0 || budget >= 1.0 {
            return Ok(vec![budget >= 1.0; activations.len()]);
        }
        solver.choose_saved_within(activations, budget, time)
    }
}

#[cfg(test)]
mod tests {
    use planlab_graph::{ScheduleBudget, ScheduleOutcome, execute_scheduler};

    use super::*;
    use crate::schedule::knapsack::testing::chain_problem;

    /// Five activations of 256 bytes; the later ones take longer.
    fn rising_chain(capacity: u64) -> SchedulingProblem {
        chain_problem(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]).with_capacity(Bytes::new(capacity))
    }

    fn run_within(solver: BudgetSolver, capacity: u64) -> ScheduleOutcome {
        let problem = rising_chain(capacity);
        execute_scheduler(&ActivationBudget::new(solver), &problem, ScheduleBudget::default(), 0)
    }

    #[test]
    fn less_budget_may_have_a_higher_peak() {
        let problem = rising_chain(10_000);
        let knapsack = NetKnapsack::new(&problem);
        for &solver in BudgetSolver::ALL {
            let peak = |budget: f64| {
                let saved = knapsack.choose_saved(solver, budget, None).expect("a choice");
                least_room(&build_program(&problem, &knapsack.candidates.fates_with(&problem.net, &saved)).0)
            };
            let peaks = [1.0, 0.8, 0.6, 0.4, 0.2, 0.0].map(peak);
            assert_eq!(peaks, [1600, 1344, 1088, 1344, 1600, 1600], "{solver:?}");
        }
    }

    #[test]
    fn largest_budget_whose_peak_fits_is_taken() {
        for &solver in BudgetSolver::ALL {
            // The first activation is recomputed in a second, the first two in three.
            for (capacity, seconds) in [(1600, 42.0), (1599, 43.0), (1344, 43.0), (1343, 45.0), (1088, 45.0)]
            {
                let outcome = run_within(solver, capacity);
                let best = outcome.best.expect("it fits");
                assert!(
                    (best.seconds() - seconds).abs() < 1e-9,
                    "{solver:?}, {capacity}: {}",
                    best.seconds()
                );
                assert!(best.live_peak().get() <= capacity, "{solver:?}, {capacity}");
            }
        }
    }

    #[test]
    fn budget_that_fills_the_capacity_misses_the_peak() {
        for &solver in BudgetSolver::ALL {
            let plan = plan_for_capacity(&rising_chain(1087), solver).expect("a plan");
            assert!((plan.budget - 1023.0 / 1280.0).abs() < 1e-12, "{plan:?}");
            // Three activations and the image.
            assert_eq!([plan.saved, plan.peak, plan.excess()].map(Bytes::get), [832, 1088, 1]);
            let outcome = run_within(solver, 1087);
            let reason =
                "out of memory: saved activations take 832 of 1087 bytes, the peak is 1088, 1 too many";
            assert_eq!((outcome.best, outcome.shortfall.as_deref()), (None, Some(reason)), "{solver:?}");
            let plan = plan_for_capacity(&rising_chain(1600), solver).expect("a plan");
            assert_eq!((plan.budget, plan.saved.get(), plan.excess().get()), (1.0, 1344, 0));
        }
    }

    #[test]
    fn budget_of_the_capacity_is_among_those_that_are_tried() {
        let knapsack_problem = rising_chain(1087);
        let budgets = NetKnapsack::new(&knapsack_problem).budgets_to_try();
        assert_eq!(budgets.len(), 22);
        assert_eq!(budgets[..5], [1.0, 0.95, 0.9, 0.85, 0.8]);
        assert!((budgets[5] - 1023.0 / 1280.0).abs() < 1e-12 && budgets[21] == 0.0, "{budgets:?}");
    }

    #[cfg(feature = "mip")]
    #[test]
    fn program_without_time_ends_at_the_deadline() {
        let scheduler = ActivationBudget::new(BudgetSolver::Ilp);
        let wall = Some(Duration::from_millis(1));
        let budget = ScheduleBudget { wall, ..ScheduleBudget::default() };
        let outcome = execute_scheduler(&scheduler, &rising_chain(1087), budget, 0);
        assert_eq!((outcome.end, outcome.best), (Ok(planlab_dsa::Stop::Deadline), None));
    }
}
