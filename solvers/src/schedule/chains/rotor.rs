//! Rotor: the fastest persistent checkpointing of a chain whose segments differ.
//!
//! A [table](super::persistent) has the least time of each group of segments in each memory. The steps of the whole chain
//! become the fates of maps. The simulator decides whether the schedule fits: the scheduler tries more memory than there
//! is at first, because the table rounds sizes up and counts maps that are freed early, and then less and less.
//!
//! # References
//!
//! 1. J. Herrmann, O. Beaumont, L. Eyraud-Dubois, J. Hermann, A. Joly, A. Shilova: Optimal checkpointing for heterogeneous
//!    chains: how to train deep neural networks with limited memory. 2019. arXiv:1911.13214.
//!
//! # Complexity
//!
//! O(l^3 s) for l segments and s slots of memory, and a few programs of O(n) for each memory that is tried.
//!
//! # Deviations from the paper
//!
//! - The net is cut where all later functions get their inputs through one map. Within a segment only what backward
//!   passes read is computed again, and no more often than the table counts.
//! - An output that stays as the input of the next segment is not computed again if its own segment is next.
//! - Nets with many segments are shortened: short neighbours are one segment.
//! - Of the schedules that fit, the first whose offsets end inside the capacity is taken.

use planlab_graph::{ScheduleHalt, ScheduleRun, Scheduler, SchedulerDescriptor};

use super::chain::Chain;
use super::offers::offer_plans;
use super::persistent::PersistentTable;
use super::sequence::ChainPlan;
use crate::schedule::bound::claim_lp_bound;
use crate::schedule::work::{CUT_OFF, WorkMeter};

const KEY: &str = "rotor";

/// The memories that are tried for each memory that there is.
const TRIALS: usize = 50;

/// The fastest persistent checkpointing; key `rotor`.
#[derive(Clone, Copy, Debug)]
pub struct Rotor {
    /// The slots into which the memory is divided.
    slots: u32,
    /// The most segments into which the net is cut.
    segments: usize,
}

impl Default for Rotor {
    fn default() -> Self {
        Self { slots: 500, segments: 128 }
    }
}

impl Scheduler for Rotor {
    fn descriptor(&self) -> SchedulerDescriptor {
        SchedulerDescriptor {
            key: KEY.into(),
            summary: "keeps the checkpoints of a chain that cost the least time, by dynamic programming"
                .into(),
            randomized: false,
            reference: "Herrmann et al. 2019",
            complexity: "500 l^3 for l segments, at most 128",
        }
    }

    fn schedule(&self, run: &mut ScheduleRun<'_>) -> Result<(), ScheduleHalt> {
        let problem = run.problem();
        claim_lp_bound(run)?;
        let chain = Chain::new(problem, self.segments);
        let count = chain.segments().len();
        let room = problem.capacity.get().saturating_sub(chain.fixed_bytes());
        let mut meter = WorkMeter::new(problem);
        run.fall_short(CUT_OFF);
        let tick = |steps| meter.count_steps(run, steps);
        let table = PersistentTable::try_new(chain.segments(), room, self.slots, tick)?;
        run.fall_short(format!("out of memory: no persistent schedule in {} bytes", problem.capacity));
        let step = (table.room_slots() / TRIALS).max(1);
        // The memory that there is, is one of them.
        let first = table.most_slots() - (table.most_slots() - table.room_slots()) % step;
        let memories = (0..=first).rev().step_by(step);
        let steps = memories.map_while(|slots| table.chain_steps(slots));
        let plans = steps.map(|steps| ChainPlan::new(steps, count));
        offer_plans(run, KEY, &chain, plans)
    }
}

#[cfg(test)]
mod tests {
    use planlab_dsa::Stop;
    use planlab_graph::{
        ScheduleBudget, ScheduleOutcome, SchedulingProblem, execute_scheduler, validate_schedule,
    };
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    use super::*;
    use crate::schedule::chains::testing::chain_problem;
    use crate::schedule::fates::build_program;
    use crate::schedule::program::least_room;
    use crate::schedule::testing::{branching_problem, shortcut_problem};

    fn run(problem: &SchedulingProblem, rotor: &Rotor) -> ScheduleOutcome {
        let outcome = execute_scheduler(rotor, problem, ScheduleBudget::default(), 0);
        assert!(outcome.end.is_ok(), "{:?}", outcome.end);
        if let Some(best) = &outcome.best {
            validate_schedule(problem, best.schedule(), Some(best.height())).expect("valid");
        }
        outcome
    }

    fn random_chain(rng: &mut ChaCha8Rng, count: usize) -> SchedulingProblem {
        let sizes: Vec<u64> = (0..count).map(|_| rng.random_range(1..=4)).collect();
        let mut times = || (0..count).map(|_| rng.random_range(1..=5)).collect::<Vec<u32>>();
        let [forward, backward] = [times(), times()];
        let room = rng.random_range(8..=sizes.iter().sum::<u64>() + 8);
        chain_problem(&sizes, &forward, &backward, room)
    }

    #[test]
    fn schedule_of_a_true_chain_takes_the_time_and_the_room_of_the_table() {
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let mut found = 0;
        for count in (2..=9).cycle().take(100) {
            let problem = random_chain(&mut rng, count);
            let chain = Chain::new(&problem, 100);
            let room = problem.capacity.get() - chain.fixed_bytes();
            let table = PersistentTable::new(chain.segments(), room, 500);
            let Some(steps) = table.chain_steps(table.room_slots()) else { continue };
            let fates = ChainPlan::new(steps, count).to_fates(&problem, &chain);
            let (program, _) = build_program(&problem, &fates);
            let seconds: f64 = program.compute_steps().iter().map(|event| event.seconds).sum();
            assert_eq!(seconds, table.group_seconds(0, count - 1)[table.room_slots()]);
            assert!(least_room(&program) <= problem.capacity.get());
            let best = run(&problem, &Rotor::default()).best.expect("the table has a schedule");
            assert!(best.live_peak() <= problem.capacity);
            assert!(best.seconds() <= seconds || best.height() <= problem.capacity);
            found += 1;
        }
        assert!(found > 60, "only {found}");
    }

    #[test]
    fn what_fits_is_kept_and_proved_optimal() {
        let problem = chain_problem(&[1; 6], &[1; 6], &[2; 6], 100);
        let outcome = run(&problem, &Rotor::default());
        assert_eq!((outcome.end, outcome.best.map(|best| best.seconds())), (Ok(Stop::Proved), Some(18.0)));
    }

    #[test]
    fn less_memory_costs_more_time() {
        let seconds = |room| {
            let problem = chain_problem(&[1; 8], &[1; 8], &[1; 8], room);
            run(&problem, &Rotor::default()).best.map(|best| best.seconds())
        };
        let all = [3, 4, 5, 6, 9].map(seconds);
        assert!(all[1..].is_sorted_by(|one, other| one >= other), "{all:?}");
        assert_eq!((seconds(2), all[4]), (None, Some(16.0)));
    }

    #[test]
    fn nets_with_branches_are_scheduled_in_less_memory() {
        for problem in [shortcut_problem(), branching_problem()] {
            let most = run(&problem, &Rotor::default()).best.expect("all is kept").live_peak();
            let fits = |percent: u64| {
                let capacity = planlab_dsa::Bytes::new(most.get() * percent / 100);
                run(&problem.clone().with_capacity(capacity), &Rotor::default()).best.is_some()
            };
            assert!(fits(100) && !fits(40));
        }
    }

    #[test]
    fn coarse_slots_and_few_segments_still_give_schedules() {
        let problem = chain_problem(&[100; 12], &[1; 12], &[1; 12], 700);
        let seconds = |rotor: Rotor| run(&problem, &rotor).best.expect("a schedule").seconds();
        let fine = seconds(Rotor::default());
        assert!(fine <= seconds(Rotor { slots: 16, ..Rotor::default() }));
        assert!(fine <= seconds(Rotor { segments: 6, ..Rotor::default() }));
    }
}
