//! Checkmate: what to keep and what to recompute, as a mixed-integer program over stages.
//!
//! A node is a pass of the iteration or a sum of gradients; stage t ends with the first run of node t. Two binaries for
//! each stage t and each earlier node i say whether the result of i is there when the stage begins (S), and whether i
//! runs again in the stage (R):
//!
//! ```text
//! minimise the seconds of all R
//! R[t,t] = 1                              a stage ends with its own node
//! R[t,j] <= R[t,i] + S[t,i]               node j reads node i
//! S[t,i] <= R[t-1,i] + S[t-1,i]           what is there was there before, or ran
//! ```
//!
//! Further columns count the bytes in use after each node of each stage, and say which nodes free which of their inputs:
//! those that no later node of the stage reads and that are not there in the next stage. What the program retains becomes
//! a [fate](super::fates) after each use of each map, kept or dropped, and thereby a schedule.
//!
//! The *rounding* solves the relaxation, in nine tenths of the memory, instead. It retains what has at least a threshold
//! there, from 0.1 to 0.9, and runs what that takes. The fastest schedule of those that fit is the result. The program is
//! in [`stages`](super::stages).
//!
//! # References
//!
//! 1. P. Jain, A. Jain, A. Nrusimha, A. Gholami, P. Abbeel, K. Keutzer, I. Stoica, J. E. Gonzalez: Checkmate: Breaking
//!    the memory wall with optimal tensor rematerialization. MLSys 2020, arXiv:1910.02653.
//! 2. Q. Huangfu and J. A. J. Hall: Parallelizing the dual revised simplex method. Mathematical Programming Computation
//!    10, 2018. doi:10.1007/s12532-017-0130-5 (HiGHS).
//!
//! # Complexity
//!
//! O(n^2) binaries for n nodes, and as many for n edges; exponential. Chains of 40 nodes take about a second, nets of 46
//! to 48 nodes with shortcuts or growing maps up to a minute and more. The relaxation is solved in seconds for 120 nodes.
//!
//! # Deviations from the paper
//!
//! - Backward passes and sums run once, as schedules of our machine demand. Their results stay until their last readers.
//!   A sum is a node of its own, and so is each further gradient of a pass: its output lies beside its operands.
//! - A node runs again only in a stage that reads it, since a fate says no more. The paper may run it earlier.
//! - The formula of the paper also frees a node after its own run. This one does not: a node that nothing reads does not
//!   run in an optimum. It has no columns for what a stage's last node frees, either.
//! - The inputs of the net are always there. They count beside the budget.
//! - A plan is offered as a schedule, which is simulated. It needs no more memory than the program counts, up to the
//!   tolerance of the solver, a millionth.
//!
//! Our machine may swap and run backward passes in another order. So neither the optimum of the program nor its relaxation
//! bounds the time of every schedule, and neither is claimed.

use planlab_graph::{ScheduleHalt, ScheduleRun, Scheduler, SchedulerDescriptor};

use super::stages::{Form, StageSearch};

/// The most nodes of the program.
const EXACT_NODES: usize = 40;
/// The most nodes of the relaxation.
const ROUNDED_NODES: usize = 150;
/// The most nodes of HiGHS's search.
const SOLVER_NODES: i32 = 20_000;

/// What to keep and what to recompute, by a mixed-integer program; keys `checkmate` and `checkmate/rounding`.
#[derive(Clone, Copy, Debug)]
pub struct Checkmate(StageSearch);

impl Checkmate {
    /// Solves the program, key `checkmate`.
    #[must_use]
    pub const fn exact() -> Self {
        let (key, form, most_nodes) = ("checkmate", Form::Whole, EXACT_NODES);
        Self(StageSearch { key, form, most_nodes, solver_nodes: SOLVER_NODES, gap: 0.0, has_copies: false })
    }

    /// Rounds the relaxation, key `checkmate/rounding`.
    #[must_use]
    pub const fn rounding() -> Self {
        let (key, form, most_nodes) = ("checkmate/rounding", Form::Relaxed, ROUNDED_NODES);
        Self(StageSearch { key, form, most_nodes, solver_nodes: SOLVER_NODES, gap: 0.0, has_copies: false })
    }
}

impl Scheduler for Checkmate {
    fn descriptor(&self) -> SchedulerDescriptor {
        let summary = match self.0.form {
            Form::Whole => "keeps and recomputes by a mixed-integer program over stages; small nets",
            Form::Relaxed => "keeps and recomputes by the rounded relaxation of Checkmate's program",
        };
        SchedulerDescriptor {
            key: self.0.key.into(),
            summary: summary.into(),
            randomized: false,
            reference: "Jain et al. 2020",
            complexity: "exponential; a program of n^2 columns",
        }
    }

    fn schedule(&self, run: &mut ScheduleRun<'_>) -> Result<(), ScheduleHalt> {
        self.0.offer_schedules(run)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use planlab_dsa::{Bytes, Stop};
    use planlab_graph::{
        Engine, MapId, ScheduleBudget, ScheduleOutcome, SchedulingProblem, execute_scheduler,
        validate_schedule,
    };

    use super::*;
    use crate::schedule::fates::{Fate, Fates, build_program};
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
            let search = StageSearch { most_nodes: most, ..Checkmate::exact().0 };
            run(&problem, Checkmate(search)).shortfall
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
