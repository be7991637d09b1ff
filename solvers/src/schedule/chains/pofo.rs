//! Checkpointing of a chain with offloading: saved maps and checkpoints of the first forward sweep may go to the host.
//!
//! A [table](super::offloading) chooses for each part of the first sweep whether it is saved or run again, and whether
//! what stays of it goes to the host. Parts that are run again follow the [table](super::persistent) of chains without
//! offloading. The steps become the fates of maps. Copies back start as early as there is room; the simulator decides how
//! long the schedule takes, and whether it fits.
//!
//! # References
//!
//! 1. O. Beaumont, L. Eyraud-Dubois, A. Shilova: Efficient combination of rematerialization and offloading for training
//!    DNNs. NeurIPS 2021.
//!
//! # Complexity
//!
//! O(l^2 s t) for l segments, s slots of memory and t of time, for each of a few rates of the link; some programs of O(n)
//! for each.
//!
//! # Deviations from the paper
//!
//! The paper was not at hand; this is a program of its kind.
//!
//! - The paper's program decides about copies in both directions. Here the table counts copies out alone; the way back
//!   takes as long, and is left to the simulator.
//! - The table takes a link that is faster or slower than the machine's by some factors, so that more or less goes to the
//!   host than hides; the fastest schedule counts.
//! - What a segment saves goes to the host as a whole or stays as a whole. What recomputation makes stays.
//! - The time until which the link is busy is rounded to the nearest slot.
//! - Inputs of the net stay on the device.
//! - The net is cut as for `rotor`, into fewer segments, and the memory into fewer slots.

use planlab_graph::{ScheduleHalt, ScheduleRun, Scheduler, SchedulerDescriptor};

use super::chain::Chain;
use super::offers::PlanOffers;
use super::offloading::OffloadTable;
use super::persistent::PersistentTable;
use crate::schedule::bound::claim_lp_bound;
use crate::schedule::work::{CUT_OFF, WorkMeter};

const KEY: &str = "pofo";

/// The slots of memory, and of the time of the first sweep.
const SLOTS: u32 = 100;
const TIMES: usize = 48;
/// The memories that are tried for each memory that there is.
const TRIALS: usize = 40;
/// The factors on the time of a copy.
const SLOWDOWNS: [f64; 5] = [1.0, 1.5, 2.5, 0.7, 0.4];

/// The most segments into which the net is cut.
const SEGMENTS: usize = 32;

/// Checkpointing with offloading; key `pofo`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Pofo;

impl Scheduler for Pofo {
    fn descriptor(&self) -> SchedulerDescriptor {
        SchedulerDescriptor {
            key: KEY.into(),
            summary: "keeps or swaps checkpoints and saved parts of a chain, by dynamic programming".into(),
            randomized: false,
            reference: "Beaumont et al. 2021",
            complexity: "5000 l^2 for l segments, at most 32, for each of 5 links",
        }
    }

    fn schedule(&self, run: &mut ScheduleRun<'_>) -> Result<(), ScheduleHalt> {
        let problem = run.problem();
        claim_lp_bound(run)?;
        let chain = Chain::new(problem, SEGMENTS);
        let room = problem.capacity.get().saturating_sub(chain.fixed_bytes());
        let mut meter = WorkMeter::new(problem);
        run.fall_short(CUT_OFF);
        let tick = |steps| meter.count_steps(run, steps);
        let table = PersistentTable::try_new(chain.segments(), room, SLOTS, tick)?;
        let rate = problem.machine.copy_out.min(problem.machine.copy_in);
        let slot_seconds = table.slot_bytes() as f64 / rate;
        let step = (table.room_slots() / TRIALS).max(1);
        let mut offers = PlanOffers::new(KEY, &chain);
        let end = SLOWDOWNS.iter().enumerate().try_for_each(|(turn, slowdown)| {
            let tick = |steps| meter.count_steps(run, steps);
            let offload = OffloadTable::try_new(&table, slot_seconds * slowdown, TIMES, tick)?;
            if turn == 0 {
                let capacity = problem.capacity;
                run.fall_short(format!("out of memory: no schedule of the chain in {capacity} bytes"));
            }
            let memories = (0..=table.most_slots()).rev().step_by(step);
            offers.offer_first_fit(run, memories.map_while(|slots| offload.chain_plan(slots)))
        });
        offers.offer_unplaced(run)?;
        end
    }
}

#[cfg(test)]
mod tests {
    use planlab_graph::{Engine, ScheduleBudget, SchedulingProblem, execute_scheduler, validate_schedule};

    use super::*;
    use crate::schedule::chains::Rotor;
    use crate::schedule::chains::testing::chain_problem;
    use crate::schedule::testing::shortcut_problem;

    fn best_seconds(problem: &SchedulingProblem, scheduler: &dyn Scheduler) -> Option<f64> {
        let outcome = execute_scheduler(scheduler, problem, ScheduleBudget::default(), 0);
        assert!(outcome.end.is_ok(), "{:?}", outcome.end);
        let best = outcome.best?;
        validate_schedule(problem, best.schedule(), Some(best.height())).expect("valid");
        Some(best.seconds())
    }

    fn linked_problem(rate: f64, room: u64) -> SchedulingProblem {
        let mut problem = chain_problem(&[1; 10], &[1; 10], &[2; 10], room);
        (problem.machine.copy_out, problem.machine.copy_in) = (rate, rate);
        problem
    }

    #[test]
    fn link_saves_time_and_a_slow_one_costs_none() {
        for room in [5, 6, 7] {
            let rotor = best_seconds(&linked_problem(1.0, room), &Rotor::default()).expect("it fits");
            let with_link = |rate| best_seconds(&linked_problem(rate, room), &Pofo).expect("it fits");
            assert!(with_link(4.0) < rotor, "in {room}");
            assert_eq!(with_link(1e-9), rotor, "in {room}");
        }
    }

    #[test]
    fn what_goes_to_the_host_comes_back_once() {
        let outcome = execute_scheduler(&Pofo, &linked_problem(4.0, 7), ScheduleBudget::default(), 0);
        let best = outcome.best.expect("it fits");
        let copies = [Engine::Out, Engine::In].map(|engine| best.schedule().events_of(engine).len());
        assert!(copies[0] > 0 && copies[0] == copies[1], "{copies:?}");
    }

    #[test]
    fn nets_with_branches_are_scheduled() {
        let within = |bytes| shortcut_problem().with_capacity(planlab_dsa::Bytes::new(bytes));
        assert_eq!(best_seconds(&within(1088), &Pofo), Some(21.0));
        // The image would have to go to the host.
        assert_eq!(best_seconds(&within(1087), &Pofo), None);
    }
}
