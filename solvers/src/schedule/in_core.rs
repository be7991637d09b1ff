//! Everything stays on the device.
//!
//! If everything fits, it runs as fast as its functions do. That is proved optimal: it is the bound on any schedule.
//!
//! # Complexity
//!
//! O(n): one simulation.

use planlab_graph::{ScheduleHalt, ScheduleRun, Scheduler, SchedulerDescriptor};

use super::bound::claim_lp_bound;
use super::classes::{Class, Lab, Policy};
use super::program::Prefetch;

/// Keeps every map.
#[derive(Clone, Copy, Debug, Default)]
pub struct InCore;

impl Scheduler for InCore {
    fn descriptor(&self) -> SchedulerDescriptor {
        SchedulerDescriptor {
            key: "in-core".into(),
            summary: "keeps every feature map on the device".into(),
            randomized: false,
            reference: "",
            complexity: "n",
        }
    }

    fn schedule(&self, run: &mut ScheduleRun<'_>) -> Result<(), ScheduleHalt> {
        let lab = Lab::new(run.problem(), Policy::Discard, Prefetch::AsRoomPermits);
        claim_lp_bound(run)?;
        lab.offer_classes(run, &lab.all_in_class(Class::Keep), "in-core")
    }
}
