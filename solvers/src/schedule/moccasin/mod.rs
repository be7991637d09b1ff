//! Moccasin: constraint programming over the times in which values are retained.
//!
//! Nothing is swapped. The passes have a fixed order, and pass i is the end of stage i; before it, the functions of
//! earlier passes run again, in their order. So a stage is a row of times, one for each function that may run then. The
//! output of a function is held in at most C intervals. Each starts with a run of the function: the first in the
//! function's own stage, any other in a stage that the solver chooses, if it takes place at all. A run needs, for each
//! of its inputs, an interval that has begun before it and lasts until then. At no time do the intervals take more
//! bytes than there are. The cost is the time of all further runs.
//!
//! Variables are the stage and the end of each interval: a number that grows with the passes, not with passes times
//! stages. Pumpkin, a solver that learns from its conflicts, finds cheaper and cheaper solutions. It starts from the
//! fastest schedule with checkpoints that has at most C runs of each function. Every solution is offered.
//!
//! # References
//!
//! 1. B. Bartan, H. Li, H. Teague, C. Lott, B. Dilkina: Moccasin: Efficient tensor rematerialization for neural
//!    networks. ICML 2023, arXiv:2304.14463.
//! 2. P. Jain et al.: Checkmate: Breaking the memory wall with optimal tensor rematerialization. MLSys 2020,
//!    arXiv:1910.02653. Stages.
//! 3. M. Flippo et al.: A multi-stage proof logging framework to certify the correctness of CP solvers. CP 2024.
//!    doi:10.4230/LIPIcs.CP.2024.11. Pumpkin.
//!
//! # Complexity
//!
//! Exponential. 2 C variables for each function, C^2 conditions for each read, and a sum for each pass. At most 128
//! passes by default. Anytime.
//!
//! # Deviations from the paper
//!
//! - A backward pass runs once, so its gradients are held for a time that is known. Their bytes are taken from the
//!   budget of each stage, with those of the sums of gradients.
//! - A further run is read in its own stage: schedules recompute a map for the pass that needs it, not before.
//! - Times are the stage times a width plus the function, so that they are linear in the stage. Most of them are unused.
//! - Tasks of the solver's `cumulative` have constant durations: an interval is two tasks, one from its start on and one
//!   up to its end.
//! - At each pass the bytes are limited by a sum over the maps, too. The tasks propagate little while it is not known
//!   whether an interval takes place.
//! - There is no first phase that minimises the memory. The start is a schedule with checkpoints.
//! - The inputs of the net are held until their last read.

mod model;
mod retention;
mod search;
mod training;

use planlab_graph::{ScheduleHalt, ScheduleRun, Scheduler, SchedulerDescriptor};

use model::ModelOptions;
use retention::Runs;
use search::{RetentionSearch, Verdict};
use training::TrainingOrder;

use super::bound::claim_lp_bound;
use super::checkpoints::{Checkpointing, Chen, Memonger};
use super::fates::offer_fates;

const KEY: &str = "moccasin";

/// Constraint programming over retention intervals; key `moccasin`.
#[derive(Clone, Copy, Debug)]
pub struct Moccasin {
    options: ModelOptions,
    /// The most forward and backward passes of a net; larger ones are refused.
    most_passes: usize,
    /// The most steps of the solver.
    steps: u64,
}

impl Default for Moccasin {
    fn default() -> Self {
        let options = ModelOptions { computations: 2, sums: true };
        Self { options, most_passes: 128, steps: 20_000 }
    }
}

impl Scheduler for Moccasin {
    fn descriptor(&self) -> SchedulerDescriptor {
        SchedulerDescriptor {
            key: KEY.into(),
            summary: "recomputes what a constraint solver chooses, each map once; nets of at most 128 passes"
                .into(),
            randomized: false,
            reference: "Bartan et al. 2023",
            complexity: "exponential; anytime",
        }
    }

    fn schedule(&self, run: &mut ScheduleRun<'_>) -> Result<(), ScheduleHalt> {
        let problem = run.problem();
        claim_lp_bound(run)?;
        let (passes, most) = (2 * problem.net.functions().len(), self.most_passes);
        if passes > most {
            run.fall_short(format!("too large: {passes} passes; at most {most} are searched"));
            return Ok(());
        }
        let (runs, capacity) = (self.options.computations, problem.capacity);
        run.fall_short(format!("out of memory: found no schedule in {capacity} bytes without swaps"));
        let Some(order) = TrainingOrder::new(problem) else { return Ok(()) };
        let hint = find_hint(run, &order, runs)?;
        let mut search = RetentionSearch::new(&order.retention, self.options, self.steps, hint.as_ref());
        loop {
            let verdict = search.find_cheaper(&mut || run.tick(1))?;
            match verdict {
                Verdict::Cheaper(runs) => offer_fates(run, KEY, &order.to_fates(&runs))?,
                Verdict::NoneCheaper if run.best_schedule().is_none() => {
                    let reason = format!("the model has no schedule in {capacity} bytes without swaps");
                    run.fall_short(format!(
                        "out of memory: {reason} that runs no function more than {runs} times"
                    ));
                    return Ok(());
                }
                Verdict::NoneCheaper | Verdict::Unknown => return Ok(()),
            }
        }
    }
}

/// The passes of the fastest schedule with checkpoints that runs no function too often.
fn find_hint(
    run: &mut ScheduleRun<'_>,
    order: &TrainingOrder<'_>,
    computations: usize,
) -> Result<Option<Runs>, ScheduleHalt> {
    let schedulers: [Box<dyn Scheduler>; 2] =
        [Box::new(Checkpointing::new(Chen)), Box::new(Checkpointing::new(Memonger))];
    let mut offers = Vec::new();
    for scheduler in &schedulers {
        let (found, end) = run.consult_scheduler(scheduler);
        offers.extend(found);
        end?;
    }
    offers.sort_by(|one, other| one.seconds().total_cmp(&other.seconds()));
    Ok(offers.iter().find_map(|offer| order.runs_of_schedule(offer.schedule(), computations)))
}

#[cfg(test)]
mod tests {
    use planlab_dsa::Bytes;
    use planlab_graph::{
        Engine, ScheduleBudget, ScheduleOutcome, SchedulingProblem, execute_scheduler, validate_schedule,
    };

    use super::retention::tests::peak_bytes;
    use super::*;
    use crate::schedule::fates::build_program;
    use crate::schedule::program::least_room;
    use crate::schedule::testing::{branching_problem, shortcut_problem};

    fn run_within(problem: &SchedulingProblem, capacity: u64, scheduler: Moccasin) -> ScheduleOutcome {
        let problem = problem.clone().with_capacity(Bytes::new(capacity));
        let outcome = execute_scheduler(&scheduler, &problem, ScheduleBudget::default(), 0);
        assert!(outcome.end.is_ok(), "{:?}", outcome.end);
        if let Some(best) = &outcome.best {
            assert!(best.live_peak() <= problem.capacity);
            assert!(best.schedule().events_of(Engine::Out).is_empty());
            validate_schedule(&problem, best.schedule(), None).expect("valid");
        }
        outcome
    }

    #[test]
    fn activation_of_a_shortcut_is_recomputed_where_it_does_not_fit() {
        let problem = shortcut_problem();
        let seconds = |capacity: u64| {
            run_within(&problem, capacity, Moccasin::default()).best.map(|best| best.seconds())
        };
        // Nine passes of 2 seconds and a sum of 3. The sum takes 768 bytes, the image 64, and the activation 256; its
        // last read comes later. It is recomputed with its input, 2 seconds each; then 832 bytes are enough.
        assert_eq!([1088, 1087, 832, 831].map(seconds), [Some(21.0), Some(25.0), Some(25.0), None]);
    }

    #[test]
    fn less_memory_takes_no_less_time() {
        let mut found = 0;
        for problem in [shortcut_problem(), branching_problem()] {
            let mut before = 0.0;
            for capacity in (600..1500).rev().step_by(100) {
                let Some(best) = run_within(&problem, capacity, Moccasin::default()).best else { continue };
                assert!(best.seconds() >= before, "{capacity}");
                before = best.seconds();
                found += 1;
            }
        }
        assert!(found > 7, "only {found}");
    }

    #[test]
    fn memory_of_the_model_is_that_of_the_program() {
        let mut compared = 0;
        for problem in [shortcut_problem(), branching_problem()] {
            let order = TrainingOrder::new(&problem).expect("room");
            let retention = &order.retention;
            let room = |runs: &Runs| {
                let (program, _) = build_program(&problem, &order.to_fates(runs));
                least_room(&program) - problem.base().get()
            };
            let once = retention.run_once();
            assert_eq!(peak_bytes(retention, &once), room(&once));
            // The image comes first. The activation runs again in one of the backward stages, alone or with its input.
            let functions = problem.net.functions().len();
            for stage in functions + 1..=2 * functions {
                for nodes in [&[2][..], &[1, 2]] {
                    let mut runs = once.clone();
                    nodes.iter().for_each(|&node| runs[node].push(stage));
                    let (last, reader) = retention.retain_values(&runs)[2][1].last;
                    if last == stage && reader != 2 {
                        assert_eq!(peak_bytes(retention, &runs), room(&runs), "{nodes:?} in {stage}");
                        compared += 1;
                    }
                }
            }
        }
        assert!(compared > 3, "only {compared}");
    }

    #[test]
    fn what_is_not_searched_has_a_reason() {
        let problem = shortcut_problem();
        let reason = |capacity, scheduler| run_within(&problem, capacity, scheduler).shortfall;
        let refused = reason(1088, Moccasin { most_passes: 9, ..Moccasin::default() }).expect("too large");
        assert_eq!(refused, "too large: 10 passes; at most 9 are searched");
        let short = reason(831, Moccasin::default()).expect("too little memory");
        assert!(short.starts_with("out of memory: the model has no schedule in 831 bytes"), "{short}");
        let unknown = reason(832, Moccasin { steps: 0, ..Moccasin::default() }).expect("no steps");
        assert!(unknown.starts_with("out of memory: found no schedule in 832 bytes"), "{unknown}");
    }
}
