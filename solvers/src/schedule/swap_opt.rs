//! Keeps the maps that fit, from the output to the input, and swaps the rest.
//!
//! The maps that the backward pass needs first have the least time to leave and return, so they are tried first: each
//! stays if the plan still fits. This is the first step of PoocH.
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
//! The paper searches a binary tree over all maps whose copies in delay the backward pass. On a PCIe link these are
//! most of the maps; the paper does not explain how that was feasible. [`Pooch::with_budget`](super::Pooch::with_budget)
//! searches a part of the tree within given limits.

use planlab_graph::{ScheduleHalt, ScheduleRun, Scheduler, SchedulerDescriptor};

use super::bound::claim_lp_bound;
use super::classes::{Class, Classes, Lab, Policy};
use super::program::Prefetch;

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
        claim_lp_bound(run)?;
        let mut classes = lab.all_in_class(Class::Swap);
        lab.offer_classes(run, &classes, KEY)?;
        lab.search_classes(run, &mut classes, KEY, |run, classes| keep_what_fits(&lab, run, classes))
    }
}

/// Starts from all maps swapped, and keeps those that fit, tried from the output to the input.
pub(super) fn keep_what_fits(
    lab: &Lab<'_>,
    run: &mut ScheduleRun<'_>,
    classes: &mut Classes,
) -> Result<(), ScheduleHalt> {
    for map in lab.classified_maps().rev() {
        run.tick(1)?;
        classes.set_class(map, Class::Keep);
        if lab.draft_schedule(classes).is_err() {
            classes.set_class(map, Class::Swap);
        }
    }
    Ok(())
}
