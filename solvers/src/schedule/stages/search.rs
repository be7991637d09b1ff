//! Solves or rounds the program of a net's passes, and offers the schedules of its plans.

use planlab_dsa::Stop;
use planlab_graph::{ScheduleError, ScheduleHalt, ScheduleRun};

use super::formulation::{Form, Formulation};
use super::plan::{StagePlan, StageValues};
use super::training::{PassGraph, count_nodes};
use crate::milp::{End, SolverLimits};
use crate::schedule::bound::claim_lp_bound;
use crate::schedule::fates::{Fates, offer_fates};
use crate::schedule::solver_time::time_for_solver;

/// A choice in a solution of the program: 0 or 1, up to the tolerance of the solver.
const HALF: f64 = 0.5;
/// The part of the memory in which the relaxation is solved.
const ROUNDED_PART: f64 = 0.9;

/// How a program becomes schedules.
#[derive(Clone, Copy, Debug)]
pub(in crate::schedule) struct StageSearch {
    /// The scheduler's key.
    pub(in crate::schedule) key: &'static str,
    pub(in crate::schedule) form: Form,
    /// The most passes and sums of gradients of a net that does not fit as it is.
    pub(in crate::schedule) most_nodes: usize,
    /// The most nodes of HiGHS's search, so that it ends under a limit of work, too.
    pub(in crate::schedule) solver_nodes: i32,
    /// The relative gap at which HiGHS ends.
    pub(in crate::schedule) gap: f64,
    /// Whether maps are copied over the machine's link, too.
    pub(in crate::schedule) has_copies: bool,
}

impl StageSearch {
    /// Offers the schedule that keeps all, or else those of the program's plans. Errors are as of [`ScheduleRun::tick`] and
    /// [`ScheduleRun::offer`], and [`ScheduleError::Failed`] if the solver fails.
    pub(in crate::schedule) fn offer_schedules(self, run: &mut ScheduleRun<'_>) -> Result<(), ScheduleHalt> {
        let problem = run.problem();
        claim_lp_bound(run)?;
        offer_fates(run, self.key, &Fates::keep_all(&problem.net))?;
        // Nothing is faster than to keep all.
        if run.best_schedule().is_some() {
            return Ok(());
        }
        let (nodes, most) = (count_nodes(&problem.net), self.most_nodes);
        if nodes > most {
            run.fall_short(format!("too large: {nodes} passes and sums; at most {most} are planned"));
            return Ok(());
        }
        let passes = PassGraph::new(problem);
        let passes = if self.has_copies { passes.with_link(&problem.machine) } else { passes };
        // Without a budget, the reason is known.
        if passes.budget() == 0 { Ok(()) } else { self.offer_plans(run, &passes) }
    }

    /// Solves the model in its part of the memory, and offers what comes of it.
    fn offer_plans(self, run: &mut ScheduleRun<'_>, passes: &PassGraph<'_>) -> Result<(), ScheduleHalt> {
        let part = if self.form == Form::Whole { 1.0 } else { ROUNDED_PART };
        let budget = part * passes.budget() as f64;
        let model = Formulation::new(passes.graph(), budget, self.form);
        let time = time_for_solver(run)?;
        let limits = SolverLimits { time, nodes: Some(self.solver_nodes), gap: self.gap };
        let (end, values) = match model.solve(limits)? {
            (End::Infeasible, _) => {
                let copies = if passes.graph().link().is_some() { "with" } else { "without" };
                run.fall_short(format!("out of memory: {copies} copies, no results fit {budget:.0} bytes beside the base and the inputs"));
                return Ok(());
            }
            (end, Some(values)) => (end, values),
            (End::Stopped, None) => {
                run.fall_short(format!("too large: HiGHS finds no plan in {} nodes", self.solver_nodes));
                return Ok(());
            }
            (end, None) => {
                return Err(ScheduleError::Failed(format!("HiGHS ends without a plan: {end:?}")).into());
            }
        };
        for plan in self.list_plans(passes, &values) {
            offer_fates(run, self.key, &passes.plan_fates(&plan))?;
        }
        if end == End::OutOfTime { Err(ScheduleHalt::Stop(Stop::Deadline)) } else { Ok(()) }
    }

    /// The plans of a solution.
    fn list_plans(self, passes: &PassGraph<'_>, values: &StageValues) -> Vec<StagePlan> {
        let plan = |threshold| StagePlan::from_solution(passes.graph(), values, threshold);
        let mut plans = match self.form {
            Form::Whole => vec![plan(HALF)],
            Form::Relaxed => (1..10_u32).map(|tenth| plan(f64::from(tenth) / 10.0)).collect(),
        };
        plans.dedup();
        plans
    }
}
