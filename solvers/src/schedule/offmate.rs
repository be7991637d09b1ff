//! OffMate: what to keep, what to recompute and what to copy to the host, as a mixed-integer program over stages.
//!
//! The program is that of [`checkmate`](super::checkmate), with copies beside each stage: parts of a result on the device
//! may be copied out in any stage, and parts of one on the host may be copied back in any later one. A stage can
//! read a result if all of it has arrived before. A stage takes the time of what it runs, of its copies out or of its
//! copies back, whichever is longest, and the program minimises the time of all stages:
//!
//! ```text
//! stage        3           4           5           6
//! runs         F3          F4, B4      B3          R1, B2
//! copies out   map 2       map 2
//! copies back                          map 2
//! ```
//!
//! What arrives from the host before it would run again becomes a swap: a [fate](super::fates) beside kept and dropped.
//! When each copy starts is left to the schedule: a copy out as soon as the map is there, a copy back as soon as there is
//! room.
//!
//! Nets of at most 20 passes and sums have the program itself, up to a gap of a thousandth or 100 nodes of the search.
//! Larger ones, of at most 60, have its relaxation, which is rounded as that of `checkmate/rounding`: what is there or has
//! arrived by at least a threshold counts.
//!
//! # References
//!
//! 1. X. Zhao, L. Eyraud-Dubois, T. Le Hellard, J. Gusak, O. Beaumont: OffMate: full fine-tuning of LLMs on a single GPU by
//!    re-materialization and offloading. 2024, hal-04660745.
//! 2. X. Zhao, T. Le Hellard, L. Eyraud-Dubois, J. Gusak, O. Beaumont: Rockmate: an efficient, fast, automatic and generic
//!    tool for re-materialization in PyTorch. ICML 2023.
//! 3. P. Jain et al.: Checkmate: Breaking the memory wall with optimal tensor rematerialization. MLSys 2020,
//!    arXiv:1910.02653. Stages.
//!
//! # Complexity
//!
//! O(n^2) binaries and as many columns of copies for n nodes; exponential. The program of a chain of 16 nodes takes some
//! seconds, the relaxation of 60 nodes about ten.
//!
//! # Deviations from the paper
//!
//! The full text was not at hand; this is a program of its kind, after the abstract and descriptions of it.
//!
//! - Only feature maps leave. Weights and the state of the optimizer are a part of the base, and the host computes nothing.
//! - Nodes are passes and sums, as in `checkmate`, with its deviations. The paper cuts the model into blocks, solves a
//!   block at a few budgets as Rockmate does, and chooses among these solutions. So its nets are larger.
//! - Copies are counted by stages. The paper counts them by the steps of a stage.
//! - What is copied out stays to the end of the stage, and what arrives takes memory by its parts from the stage before
//!   on. The schedule frees a map after the copy out and its last reader, and reserves the whole map for a copy back.
//! - The order of copies is not a part of the program: in the schedule, maps leave and return in the order of their use.
//! - Runs and copies cost 1/100,000 of their time beside the time of the stages. That favours solutions with few of them. But
//!   the search ends at a larger gap, so the solution may have more than it needs.
//! - A map whose copy takes longer than 10,000 iterations stays.
//! - The inputs of the net stay.
//!
//! Copies inside of a stage and other orders may be faster, so the optimum of the program bounds nothing, and none is
//! claimed.

use planlab_graph::{ScheduleHalt, ScheduleRun, Scheduler, SchedulerDescriptor};

use super::stages::{Form, StageSearch, count_nodes};

const KEY: &str = "offmate";
/// The most nodes of HiGHS's search.
const SOLVER_NODES: i32 = 100;
/// The relative gap at which HiGHS ends; larger than the costs of runs and copies, which only guide it.
const GAP: f64 = 1e-3;

/// What to keep, to recompute and to copy, by a mixed-integer program over stages; key `offmate`.
#[derive(Clone, Copy, Debug)]
pub struct OffMate {
    /// The most passes and sums of gradients for the program.
    exact_nodes: usize,
    /// The most for its relaxation.
    rounded_nodes: usize,
}

impl Default for OffMate {
    fn default() -> Self {
        Self { exact_nodes: 20, rounded_nodes: 60 }
    }
}

impl Scheduler for OffMate {
    fn descriptor(&self) -> SchedulerDescriptor {
        SchedulerDescriptor {
            key: KEY.into(),
            summary: "keeps, swaps and recomputes by a mixed-integer program over stages; small nets".into(),
            randomized: false,
            reference: "Zhao et al. 2024",
            complexity: "exponential; a program of n^2 columns",
        }
    }

    fn schedule(&self, run: &mut ScheduleRun<'_>) -> Result<(), ScheduleHalt> {
        let is_small = count_nodes(&run.problem().net) <= self.exact_nodes;
        let search = StageSearch {
            key: KEY,
            form: if is_small { Form::Whole } else { Form::Relaxed },
            most_nodes: self.rounded_nodes.max(self.exact_nodes),
            solver_nodes: SOLVER_NODES,
            gap: GAP,
            has_copies: true,
        };
        search.offer_schedules(run)
    }
}

#[cfg(test)]
mod tests {
    use planlab_dsa::Bytes;
    use planlab_graph::{
        Engine, Machine, ScheduleBudget, ScheduleOutcome, SchedulingProblem, bound_memory, execute_scheduler,
        validate_schedule,
    };

    use super::*;
    use crate::schedule::Checkmate;
    use crate::schedule::testing::{branching_problem, chain_problem, shortcut_problem};

    /// The problem in some bytes, over a link of a rate in bytes per second.
    fn restrict(problem: &SchedulingProblem, capacity: u64, rate: f64) -> SchedulingProblem {
        let machine = Machine { copy_out: rate, copy_in: rate, ..problem.machine.clone() };
        SchedulingProblem::new(problem.net.clone(), machine).with_capacity(Bytes::new(capacity))
    }

    fn run_scheduler(problem: &SchedulingProblem, scheduler: &dyn Scheduler) -> ScheduleOutcome {
        let outcome = execute_scheduler(scheduler, problem, ScheduleBudget::default(), 0);
        assert!(outcome.end.is_ok(), "{:?}", outcome.end);
        if let Some(best) = &outcome.best {
            validate_schedule(problem, best.schedule(), Some(best.height())).expect("valid");
            assert!(best.live_peak() <= problem.capacity);
        }
        outcome
    }

    fn fastest(problem: &SchedulingProblem, scheduler: &dyn Scheduler) -> Option<f64> {
        run_scheduler(problem, scheduler).best.map(|best| best.seconds())
    }

    #[test]
    fn plan_over_a_dead_link_is_that_of_checkmate() {
        let sizes: &[u64] = &[831, 832, 900, 1087, 1088, 1200, 1343, 1344];
        let of_chain: &[u64] = &[3, 4, 5, 6];
        let mut slower = 0;
        for (problem, capacities) in
            [(shortcut_problem(), sizes), (branching_problem(), sizes), (chain_problem(&[1; 6]), of_chain)]
        {
            let in_core = fastest(&problem, &Checkmate::exact()).expect("all fits");
            for &capacity in capacities {
                let problem = restrict(&problem, capacity, 1e-9);
                let [ours, theirs] =
                    [fastest(&problem, &OffMate::default()), fastest(&problem, &Checkmate::exact())];
                assert_eq!(ours, theirs, "in {capacity}");
                slower += u32::from(ours.is_some_and(|seconds| seconds > in_core));
            }
        }
        assert!(slower > 3, "only {slower}");
    }

    /// Everything takes 6 bytes. In 5, maps are away while the loss runs, or one of them is computed twice.
    #[test]
    fn map_of_a_chain_leaves_if_its_copies_hide() {
        let chain = chain_problem(&[1; 6]);
        for (rate, has_copies, seconds) in [(1.0, true, 10.0), (1e-9, false, 11.0)] {
            let best = run_scheduler(&restrict(&chain, 5, rate), &OffMate::default()).best.expect("it fits");
            let copies =
                [Engine::Out, Engine::In].map(|engine| !best.schedule().events_of(engine).is_empty());
            assert_eq!((copies, best.seconds()), ([has_copies; 2], seconds), "at {rate} bytes a second");
        }
    }

    #[test]
    fn capacity_for_everything_needs_no_program() {
        for problem in [shortcut_problem(), branching_problem()] {
            let none = OffMate { exact_nodes: 0, rounded_nodes: 0 };
            assert_eq!(fastest(&problem, &none), fastest(&problem, &crate::schedule::InCore));
            let least = bound_memory(&problem).bytes.get();
            let outcome = run_scheduler(&restrict(&problem, least, 64.0), &none);
            let nodes = count_nodes(&problem.net);
            let reason = format!("too large: {nodes} passes and sums; at most 0 are planned");
            assert_eq!((outcome.best, outcome.shortfall), (None, Some(reason)));
        }
    }

    #[test]
    fn rounding_of_a_chain_hides_copies() {
        let rounding = OffMate { exact_nodes: 0, ..OffMate::default() };
        let hidden = [5, 6, 8].into_iter().filter(|&capacity| {
            let problem = restrict(&chain_problem(&[1; 9]), capacity, 1.0);
            let best = run_scheduler(&problem, &rounding).best;
            best.is_some_and(|best| {
                best.seconds() == 16.0 && !best.schedule().events_of(Engine::In).is_empty()
            })
        });
        assert!(hidden.count() > 1);
    }
}
