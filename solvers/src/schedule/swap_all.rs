//! Every map goes to the host and comes back.
//!
//! Unscheduled, a copy in starts with the step before its first use, as soon as there is room. Scheduled, it starts as
//! early as there is room for it until its last use.
//!
//! # References
//!
//! 1. M. Rhu et al.: vDNN. MICRO 2016. doi:10.1109/MICRO.2016.7783721. Copies one layer ahead.
//! 2. Y. Ito et al.: Profiling based Out-of-core Hybrid Method for Large Neural Networks. PPoPP 2019, 4.3 and 5.
//!    doi:10.1145/3293883.3298790. Both variants, as baselines of the method.
//!
//! # Complexity
//!
//! O(n + sum of the stays): one simulation.

use planlab_graph::{ScheduleHalt, ScheduleRun, Scheduler, SchedulerDescriptor};

use super::bound::claim_lp_bound;
use super::classes::{Class, Lab, Policy};
use super::program::Prefetch;

/// Swaps every map.
#[derive(Clone, Copy, Debug)]
pub struct SwapAll {
    prefetch: Prefetch,
    key: &'static str,
}

impl SwapAll {
    /// With copies in as early as there is room.
    #[must_use]
    pub const fn with_prefetch() -> Self {
        Self { prefetch: Prefetch::AsRoomPermits, key: "swap-all" }
    }

    /// With copies in one step ahead.
    #[must_use]
    pub const fn one_step_ahead() -> Self {
        Self { prefetch: Prefetch::OneAhead, key: "swap-all/unscheduled" }
    }
}

impl Scheduler for SwapAll {
    fn descriptor(&self) -> SchedulerDescriptor {
        let start = match self.prefetch {
            Prefetch::AsRoomPermits => "as early as there is room",
            Prefetch::OneAhead | Prefetch::WithConvolution => "one step ahead",
        };
        SchedulerDescriptor {
            key: self.key.into(),
            summary: format!("swaps every feature map, each back {start}").into(),
            randomized: false,
            reference: "Rhu et al. 2016; Ito et al. 2019",
            complexity: "n",
        }
    }

    fn schedule(&self, run: &mut ScheduleRun<'_>) -> Result<(), ScheduleHalt> {
        let lab = Lab::new(run.problem(), Policy::Discard, self.prefetch);
        claim_lp_bound(run)?;
        lab.offer_classes(run, &lab.all_in_class(Class::Swap), self.key)
    }
}
