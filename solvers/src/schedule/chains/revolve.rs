//! Revolve: binomial checkpointing of a chain whose steps are alike.
//!
//! The state before the first step is in a slot. To run l steps backward with c slots, advance k steps and put the state
//! there into a slot. Treat the other l - k steps with c - 1 slots, and then the first k steps with c slots. The least
//! number of advances is
//!
//! ```text
//! P(l, c) = r l - C(c + r, c + 1)    for the least r with C(c + r, c) >= l
//! ```
//!
//! where C(n, k) is a binomial coefficient. The run before each backward step, which saves what that step reads, is not
//! among them. The scheduler takes the most slots that fit: the fewer slots, the more advances.
//!
//! # References
//!
//! 1. A. Griewank, A. Walther: Algorithm 799: Revolve: an implementation of checkpointing for the reverse or adjoint mode
//!    of computational differentiation. ACM TOMS 26(1), 2000. doi:10.1145/347837.347846.
//!
//! # Complexity
//!
//! O(l^2) for the steps of each number of slots, and a few programs of O(n).
//!
//! # Deviations from the paper
//!
//! - The segments of a net differ in time and memory, and neither counts for the choice of checkpoints. The simulator
//!   decides what fits.
//! - An output that stays as the input of the next segment is not computed again if its own segment is next.
//! - Nets with more segments than 128 are shortened: short neighbours are one segment.

use planlab_graph::{ScheduleHalt, ScheduleRun, Scheduler, SchedulerDescriptor};

use super::chain::Chain;
use super::offers::offer_plans;
use super::persistent::push_sweep;
use super::sequence::{ChainPlan, Step};
use crate::schedule::bound::claim_lp_bound;

const KEY: &str = "revolve";

/// The most segments.
const SEGMENTS: usize = 128;

/// Binomial checkpointing; key `revolve`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Revolve;

impl Scheduler for Revolve {
    fn descriptor(&self) -> SchedulerDescriptor {
        SchedulerDescriptor {
            key: KEY.into(),
            summary: "keeps binomial checkpoints, as many as fit, and recomputes the rest once or more"
                .into(),
            randomized: false,
            reference: "Griewank and Walther 2000",
            complexity: "n for each of at most 128 numbers of slots",
        }
    }

    fn schedule(&self, run: &mut ScheduleRun<'_>) -> Result<(), ScheduleHalt> {
        let problem = run.problem();
        claim_lp_bound(run)?;
        let chain = Chain::new(problem, SEGMENTS);
        let count = chain.segments().len();
        let plans = (1..=count).rev().map(|slots| ChainPlan::new(chain_steps(count, slots), count));
        offer_plans(run, KEY, &chain, plans)
    }
}

/// The least number of advances for some steps with some slots, that of the first state included; both are above 0.
fn least_advances(steps: usize, slots: usize) -> usize {
    // C(slots + repetitions, slots): the steps that this number of repetitions suffices for.
    let (mut repetitions, mut reach) = (0, 1);
    while reach < steps {
        repetitions += 1;
        reach = reach * (slots + repetitions) / repetitions;
    }
    repetitions * steps - reach * repetitions / (slots + 1)
}

/// The steps of a chain of `count` segments with some slots.
fn chain_steps(count: usize, slots: usize) -> Vec<Step> {
    let mut steps = Vec::new();
    push_steps(0, count, slots, &mut steps);
    steps
}

/// Appends the steps of the segments from `first` up to `end`.
fn push_steps(first: usize, end: usize, slots: usize, steps: &mut Vec<Step>) {
    let count = end - first;
    if count == 1 {
        steps.extend([Step::Save(first), Step::Backward(first)]);
    } else if slots == 1 {
        for last in (first + 1..end).rev() {
            push_sweep(first, last, steps);
            steps.extend([Step::Save(last), Step::Backward(last)]);
        }
        steps.extend([Step::Save(first), Step::Backward(first)]);
    } else {
        let advances =
            |&part: &usize| part + least_advances(count - part, slots - 1) + least_advances(part, slots);
        let part = (1..count).min_by_key(advances).expect("there are two segments");
        push_sweep(first, first + part, steps);
        push_steps(first + part, end, slots - 1, steps);
        push_steps(first, first + part, slots, steps);
    }
}

#[cfg(test)]
mod tests {
    use planlab_graph::{Engine, ScheduleBudget, Task, execute_scheduler, validate_schedule};

    use super::*;
    use crate::schedule::chains::testing::{chain_problem, plain_segment, replay_steps};

    fn count_advances(steps: &[Step]) -> usize {
        steps.iter().filter(|step| matches!(step, Step::Advance(_) | Step::Checkpoint(_))).count()
    }

    #[test]
    fn closed_form_is_the_optimum_of_the_recursion() {
        let mut table = vec![[0; 9]; 60];
        for steps in 2..60 {
            table[steps][1] = steps * (steps - 1) / 2;
            for slots in 2..9 {
                let advances = |part: usize| part + table[steps - part][slots - 1] + table[part][slots];
                let least = (1..steps).map(advances).min();
                table[steps][slots] = least.expect("a part");
            }
        }
        for (steps, row) in table.iter().enumerate().skip(1) {
            for (slots, &expected) in row.iter().enumerate().skip(1) {
                assert_eq!(least_advances(steps, slots), expected, "{steps} steps, {slots} slots");
            }
        }
        assert_eq!([least_advances(10, 3), least_advances(20, 4), least_advances(59, 8)], [15, 39, 122]);
    }

    #[test]
    fn steps_have_the_least_advances_and_fit_the_slots() {
        for count in 1..40 {
            let segments = vec![plain_segment(1, 1, 1); count];
            for slots in 1..9 {
                let steps = chain_steps(count, slots);
                let advances = least_advances(count, slots);
                assert_eq!(count_advances(&steps), advances, "{count} steps, {slots} slots");
                // The first slot is that of the input, which counts as fixed. The input of the run that saves needs one
                // more, and its backward pass the output and two gradients.
                let room = u64::try_from(slots + 3).expect("few");
                assert_eq!(replay_steps(&segments, &steps, room), (advances + 2 * count) as f64);
            }
        }
    }

    #[test]
    fn schedule_has_the_most_slots_that_fit() {
        let recomputed = |room| {
            let problem = chain_problem(&[1; 8], &[1; 8], &[1; 8], room);
            let outcome = execute_scheduler(&Revolve, &problem, ScheduleBudget::default(), 0);
            let best = outcome.best?;
            validate_schedule(&problem, best.schedule(), Some(best.height())).expect("valid");
            let events = best.schedule().events_of(Engine::Compute).iter();
            Some(events.filter(|event| matches!(event.task, Task::Recompute(_))).count())
        };
        let counts = [3, 4, 5, 6, 7, 9].map(recomputed);
        assert_eq!(counts[0], None);
        assert!(counts[1].is_some() && counts[1..].is_sorted_by(|one, other| one >= other), "{counts:?}");
        assert_eq!(counts[5], Some(0));
    }
}
