//! PoocH's classes for another machine: shows the cost of a plan made for another link.
//!
//! PoocH's classes depend on how long copies take. This scheduler finds them as [`Pooch`](super::Pooch) does, over the
//! link of another machine, and uses them on the machine of the problem.
//!
//! # References
//!
//! 1. Y. Ito et al.: Profiling based Out-of-core Hybrid Method for Large Neural Networks. PPoPP 2019, figure 17.
//!    doi:10.1145/3293883.3298790.
//!
//! # Complexity
//!
//! As [`Pooch`](super::Pooch).
//!
//! # Deviations from the paper
//!
//! The paper's run fails at batch 640. Here a copy in waits until there is room, so classes that fit on one machine fit
//! on the other.

use planlab_graph::{Machine, ScheduleHalt, ScheduleRun, Scheduler, SchedulerDescriptor};

use super::bound::claim_lp_bound;
use super::classes::{Class, Lab, Policy};
use super::pooch::recompute_what_costs_less;
use super::program::Prefetch;
use super::swap_opt::keep_what_fits;

/// The paper's other machine.
const ELSEWHERE: &str = "power9-nvlink2";
const KEY: &str = "pooch/discard/for-power9";

/// PoocH's classes for the POWER9, executed on the machine of the problem.
#[derive(Clone, Copy, Debug, Default)]
pub struct PoochElsewhere;

impl Scheduler for PoochElsewhere {
    fn descriptor(&self) -> SchedulerDescriptor {
        SchedulerDescriptor {
            key: KEY.into(),
            summary: "PoocH's classes for the link of the POWER9, executed on this machine".into(),
            randomized: false,
            reference: "Ito et al. 2019",
            complexity: "s^2 simulations for s swapped maps",
        }
    }

    fn schedule(&self, run: &mut ScheduleRun<'_>) -> Result<(), ScheduleHalt> {
        let here = Lab::new(run.problem(), Policy::Discard, Prefetch::AsRoomPermits);
        claim_lp_bound(run)?;
        let elsewhere = Machine::built_in(ELSEWHERE).expect("a machine that is built in");
        let mut foreign = run.problem().clone();
        (foreign.machine.copy_out, foreign.machine.copy_in) = (elsewhere.copy_out, elsewhere.copy_in);
        let there = Lab::new(&foreign, Policy::Discard, Prefetch::AsRoomPermits);
        let mut classes = here.all_in_class(Class::Swap);
        here.offer_classes(run, &classes, KEY)?;
        here.search_classes(run, &mut classes, KEY, |run, classes| {
            keep_what_fits(&there, run, classes)?;
            recompute_what_costs_less(&there, run, classes)
        })
    }
}
