//! What fits stays, from the output to the input; the rest is swapped.
//!
//! The maps that the backward pass wants first have the least time to go and come back, so they are tried first: each
//! stays if the plan still fits. The first step of PoocH.
//!
//! # References
//!
//! 1. Y. Ito et al.: Profiling based Out-of-core Hybrid Method for Large Neural Networks. PPoPP 2019, 4.4.
//!    doi:10.1145/3293883.3298790.
//!
//! # Complexity
//!
//! O(n^2): n plans are checked, one is simulated.
//!
//! # Deviations from the paper
//!
//! The paper searches a binary tree over all maps whose copies in delay the backward pass. On a PCIe link these are most of
//! the maps; what made that feasible there is not said. [`Pooch::budgeted`](super::Pooch::budgeted) searches as much of
//! the tree as it is given.

use planlab_graph::{ScheduleHalt, ScheduleRun, Scheduler, SchedulerDescriptor};

use super::class::{Class, Classes, Policy};
use super::lab::Lab;
use super::residency::Prefetch;

const KEY: &str = "swap-opt";

/// Keeps what fits, and swaps the rest.
#[derive(Clone, Copy, Debug, Default)]
pub struct SwapOpt;

impl Scheduler for SwapOpt {
    fn descriptor(&self) -> SchedulerDescriptor {
        SchedulerDescriptor {
            key: KEY.into(),
            summary: "keeps what fits, from the output to the input, and swaps the rest".into(),
            randomized: false,
            reference: "Ito et al. 2019",
            complexity: "n^2",
        }
    }

    fn schedule(&self, run: &mut ScheduleRun<'_>) -> Result<(), ScheduleHalt> {
        let lab = Lab::new(run.problem(), Policy::Discard, Prefetch::AsRoomPermits);
        lab.claim_bound(run)?;
        let mut classes = lab.all(Class::Swap);
        lab.offer(run, &classes, KEY)?;
        lab.search(run, &mut classes, KEY, |run, classes| keep_what_fits(&lab, run, classes))
    }
}

/// From all swapped, the maps that can stay, tried from the output to the input.
pub(super) fn keep_what_fits(
    lab: &Lab<'_>,
    run: &mut ScheduleRun<'_>,
    classes: &mut Classes,
) -> Result<(), ScheduleHalt> {
    for map in lab.maps().rev() {
        run.tick(1)?;
        classes.set(map, Class::Keep);
        if lab.draft(classes).is_err() {
            classes.set(map, Class::Swap);
        }
    }
    Ok(())
}
