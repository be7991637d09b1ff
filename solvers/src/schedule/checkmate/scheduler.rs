//! The schedulers: the program itself, and the rounding of its relaxation.

use planlab_dsa::Stop;
use planlab_graph::{ScheduleError, ScheduleHalt, ScheduleRun, Scheduler, SchedulerDescriptor};

use super::formulation::{Form, Formulation};
use super::plan::StagePlan;
use super::training::PassGraph;
use crate::milp::{End, SolverLimits};
use crate::schedule::bound::claim_lp_bound;
use crate::schedule::fates::{Fates, offer_fates};
use crate::schedule::solver_time::time_for_solver;

/// The most nodes of the program.
const EXACT_NODES: usize = 40;
/// The most nodes of the relaxation.
const ROUNDED_NODES: usize = 150;
/// The most nodes of HiGHS's search, so that it ends under a limit of work, too.
const NODES: i32 = 20_000;
/// A choice in a solution of the program: 0 or 1, up to the tolerance of the solver.
const HALF: f64 = 0.5;
/// The part of the memory in which the relaxation is solved.
const ROUNDED_PART: f64 = 0.9;

/// What to keep and what to recompute, by a mixed-integer program; keys `checkmate` and `checkmate/rounding`.
#[derive(Clone, Copy, Debug)]
pub struct Checkmate {
    form: Form,
    /// The most passes and sums of gradients of a net that does not fit as it is.
    most_nodes: usize,
}

impl Checkmate {
    /// Solves the program, key `checkmate`.
    #[must_use]
    pub const fn exact() -> Self {
        Self { form: Form::Whole, most_nodes: EXACT_NODES }
    }

    /// Rounds the relaxation, key `checkmate/rounding`.
    #[must_use]
    pub const fn rounding() -> Self {
        Self { form: Form::Relaxed, most_nodes: ROUNDED_NODES }
    }

    const fn key(self) -> &'static str {
        match self.form {
            Form::Whole => "checkmate",
            Form::Relaxed => "checkmate/rounding",
        }
    }

    /// The plans of a solution.
    fn list_plans(self, passes: &PassGraph<'_>, solution: &[Vec<f64>]) -> Vec<StagePlan> {
        let plan = |threshold| StagePlan::from_solution(passes.graph(), solution, threshold);
        let mut plans = match self.form {
            Form::Whole => vec![plan(HALF)],
            Form::Relaxed => (1..10_u32).map(|tenth| plan(f64::from(tenth) / 10.0)).collect(),
        };
        plans.dedup();
        plans
    }

    /// Solves the model in its part of the memory, and offers what comes of it.
    fn offer_plans(self, run: &mut ScheduleRun<'_>, passes: &PassGraph<'_>) -> Result<(), ScheduleHalt> {
        let part = if self.form == Form::Whole { 1.0 } else { ROUNDED_PART };
        let budget = part * passes.budget() as f64;
        let model = Formulation::new(passes.graph(), budget, self.form);
        let limits = SolverLimits { time: time_for_solver(run)?, nodes: Some(NODES), gap: 0.0 };
        let answer = model.solve(limits).map_err(ScheduleError::Failed)?;
        let solution = match (answer.end, answer.kept) {
            (End::Infeasible, _) => {
                run.fall_short(format!("out of memory: without copies, no results fit {budget:.0} bytes beside the base and the inputs"));
                return Ok(());
            }
            (End::Optimal | End::OutOfTime | End::Stopped, Some(solution)) => solution,
            (End::OutOfTime, None) => return Err(ScheduleHalt::Stop(Stop::Deadline)),
            (End::Stopped, None) => {
                run.fall_short(format!("too large: HiGHS finds no plan in {NODES} nodes"));
                return Ok(());
            }
            (end, _) => {
                return Err(ScheduleError::Failed(format!("HiGHS ends without a plan: {end:?}")).into());
            }
        };
        for plan in self.list_plans(passes, &solution) {
            offer_fates(run, self.key(), &passes.plan_fates(&plan))?;
        }
        if answer.end == End::OutOfTime { Err(ScheduleHalt::Stop(Stop::Deadline)) } else { Ok(()) }
    }
}

impl Scheduler for Checkmate {
    fn descriptor(&self) -> SchedulerDescriptor {
        let summary = match self.form {
            Form::Whole => "keeps and recomputes by a mixed-integer program over stages; small nets",
            Form::Relaxed => "keeps and recomputes by the rounded relaxation of Checkmate's program",
        };
        SchedulerDescriptor {
            key: self.key().into(),
            summary: summary.into(),
            randomized: false,
            reference: "Jain et al. 2020",
            complexity: "exponential; a program of n^2 columns",
        }
    }

    fn schedule(&self, run: &mut ScheduleRun<'_>) -> Result<(), ScheduleHalt> {
        let problem = run.problem();
        claim_lp_bound(run)?;
        offer_fates(run, self.key(), &Fates::keep_all(&problem.net))?;
        let passes = PassGraph::new(problem);
        // Nothing is faster than to keep all; and without a budget, the reason is known.
        if run.best_schedule().is_some() || passes.budget() == 0 {
            return Ok(());
        }
        let (nodes, most) = (passes.graph().count_stages(), self.most_nodes);
        if nodes > most {
            run.fall_short(format!("too large: {nodes} passes and sums; at most {most} are planned"));
            return Ok(());
        }
        self.offer_plans(run, &passes)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use planlab_dsa::Bytes;
    use planlab_graph::{
        Engine, MapId, ScheduleBudget, ScheduleOutcome, SchedulingProblem, execute_scheduler,
        validate_schedule,
    };

    use super::*;
    use crate::schedule::fates::{Fate, build_program};
    use crate::schedule::program::least_room;
    use crate::schedule::testing::{branching_problem, shortcut_problem};

    fn run(problem: &SchedulingProblem, scheduler: Checkmate) -> ScheduleOutcome {
        let outcome = execute_scheduler(&scheduler, problem, ScheduleBudget::default(), 0);
        assert!(outcome.end.is_ok(), "{:?}", outcome.end);
        if let Some(best) = &outcome.best {
            validate_schedule(problem, best.schedule(), Some(best.height())).expect("valid");
            assert!(best.live_peak() <= problem.capacity && best.schedule().events_of(Engine::In).is_empty());
        }
        outcome
    }

    fn fastest(problem: &SchedulingProblem, scheduler: Checkmate) -> Option<f64> {
        run(problem, scheduler).best.map(|best| best.seconds())
    }

    /// Adds the memory and the seconds of every choice of fates that keeps or drops. What the next forward pass uses is
    /// kept: nothing runs between.
    fn list_choices(
        problem: &SchedulingProblem,
        fates: &Fates,
        decided: &[(MapId, usize)],
        found: &mut Vec<(u64, f64)>,
    ) {
        let (program, gaps) = build_program(problem, fates);
        let functions = problem.net.functions().len();
        let is_open = |map: MapId, stage: usize, next: usize| {
            let is_soon = next == stage + 1 && next < functions;
            !is_soon && problem.net.producer_of(map).is_some() && !decided.contains(&(map, stage))
        };
        let Some(gap) = gaps.iter().find(|gap| is_open(gap.map, gap.stage, gap.next)) else {
            let seconds = program.compute_steps().iter().map(|event| event.seconds).sum();
            found.push((least_room(&program), seconds));
            return;
        };
        let decided = [decided, &[(gap.map, gap.stage)]].concat();
        for fate in [Fate::Keep, Fate::Drop] {
            let mut fates = fates.clone();
            fates.set_fate(gap.map, gap.stage, gap.next, fate);
            list_choices(problem, &fates, &decided, found);
        }
    }

    /// The least seconds of any choice that fits.
    fn least_of_choices(choices: &[(u64, f64)], capacity: u64) -> Option<f64> {
        let fitting = choices.iter().filter(|&&(room, _)| room <= capacity);
        fitting.map(|&(_, seconds)| seconds).min_by(f64::total_cmp)
    }

    #[test]
    fn exact_plan_is_the_fastest_choice_of_fates() {
        for problem in [shortcut_problem(), branching_problem()] {
            let mut choices = Vec::new();
            list_choices(&problem, &Fates::keep_all(&problem.net), &[], &mut choices);
            for capacity in [831, 832, 900, 1087, 1088, 1100, 1200, 1343, 1344, 2000] {
                let least = least_of_choices(&choices, capacity);
                let problem = problem.clone().with_capacity(Bytes::new(capacity));
                assert_eq!(fastest(&problem, Checkmate::exact()), least, "in {capacity}");
            }
        }
    }

    #[test]
    fn exact_plan_of_a_shortcut_computes_the_relu_twice() {
        // All kept takes 1088 bytes. The sum of the gradients of the relu takes 768, and the image 64.
        for (capacity, seconds) in [(831, None), (832, Some(25.0)), (1087, Some(25.0)), (1088, Some(21.0))] {
            let problem = shortcut_problem().with_capacity(Bytes::new(capacity));
            assert_eq!(fastest(&problem, Checkmate::exact()), seconds, "in {capacity}");
        }
    }

    #[test]
    fn rounding_is_no_faster_than_the_program() {
        let mut rounded = 0;
        for problem in [shortcut_problem(), branching_problem()] {
            for capacity in [831, 832, 900, 1000, 1087, 1088, 1200, 1343, 1400] {
                let problem = problem.clone().with_capacity(Bytes::new(capacity));
                let [exact, rounding] = [Checkmate::exact(), Checkmate::rounding()]
                    .map(|scheduler| fastest(&problem, scheduler).unwrap_or(f64::INFINITY));
                assert!(rounding >= exact - 1e-9, "{rounding} below {exact} in {capacity}");
                rounded += u32::from(rounding.is_finite());
            }
        }
        assert!(rounded > 3, "only {rounded}");
    }

    #[test]
    fn large_net_and_small_memory_have_a_reason() {
        let reason = |capacity, most| {
            let problem = shortcut_problem().with_capacity(Bytes::new(capacity));
            run(&problem, Checkmate { most_nodes: most, ..Checkmate::exact() }).shortfall
        };
        let large = reason(1087, 9).expect("a reason");
        assert_eq!(large, "too large: 10 passes and sums; at most 9 are planned");
        assert_eq!(reason(1087, 10), None);
        let small = reason(831, 10).expect("a reason");
        assert_eq!(
            small,
            "out of memory: without copies, no results fit 767 bytes beside the base and the inputs"
        );
        let infeasible = reason(767, 10).expect("a reason");
        assert!(infeasible.starts_with("out of memory: every schedule needs at least 768"), "{infeasible}");
        // What fits needs no program.
        assert_eq!(reason(1088, 0), None);
    }

    #[test]
    fn run_without_time_ends_at_its_deadline() {
        let problem = shortcut_problem().with_capacity(Bytes::new(1087));
        let wall = Some(Duration::from_millis(1));
        let outcome = execute_scheduler(
            &Checkmate::exact(),
            &problem,
            ScheduleBudget { wall, ..ScheduleBudget::default() },
            0,
        );
        assert_eq!((outcome.end, outcome.best), (Ok(Stop::Deadline), None));
    }
}
