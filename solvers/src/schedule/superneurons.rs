//! Keeps the longest end of the net that fits; before it, swaps what is expensive to compute and recomputes the rest.
//!
//! The outputs of convolutions and of matrix products, and the inputs of the net, count as expensive. A copy in starts
//! with the nearest backward step of a convolution before its first use.
//!
//! # References
//!
//! 1. L. Wang et al.: SuperNeurons: dynamic GPU memory management for training deep neural networks. PPoPP 2018.
//!    doi:10.1145/3178487.3178491.
//! 2. Y. Ito et al.: Profiling based Out-of-core Hybrid Method for Large Neural Networks. PPoPP 2019, 5.
//!    doi:10.1145/3293883.3298790. This scheduler follows its implementation.
//!
//! # Complexity
//!
//! O(n^2): at most n plans are checked, one is simulated.
//!
//! # Deviations from the paper
//!
//! No tensor cache: the maps that stay are fixed before, as in the second reference. How long recomputed maps stay is a
//! policy; the default is [`Policy::Discard`].

use planlab_graph::{
    FunctionKind, MapId, ScheduleHalt, ScheduleRun, Scheduler, SchedulerDescriptor, TrainingNet,
};

use super::bound::claim_lp_bound;
use super::classes::{Class, Classes, Lab, Policy};
use super::program::Prefetch;

/// Keeps the end of the net, and classifies the rest by the kind of function.
#[derive(Clone, Copy, Debug, Default)]
pub struct SuperNeurons {
    policy: Policy,
}

impl SuperNeurons {
    /// Uses another policy for recomputed maps. Default: [`Policy::Discard`].
    #[must_use]
    pub const fn with_policy(mut self, policy: Policy) -> Self {
        self.policy = policy;
        self
    }

    const fn key(self) -> &'static str {
        match self.policy {
            Policy::Discard => "superneurons",
            Policy::Retain => "superneurons/retain",
            Policy::Share => "superneurons/share",
        }
    }
}

impl Scheduler for SuperNeurons {
    fn descriptor(&self) -> SchedulerDescriptor {
        SchedulerDescriptor {
            key: self.key().into(),
            summary:
                "keeps the end of the net; before it, swaps convolutions' outputs and recomputes the rest"
                    .into(),
            randomized: false,
            reference: "Wang et al. 2018",
            complexity: "n^2",
        }
    }

    fn schedule(&self, run: &mut ScheduleRun<'_>) -> Result<(), ScheduleHalt> {
        let lab = Lab::new(run.problem(), self.policy, Prefetch::WithConvolution);
        claim_lp_bound(run)?;
        let classes = keep_the_end(&lab, run)?;
        lab.offer_classes(run, &classes, self.key())
    }
}

fn is_dear(net: &TrainingNet, map: MapId) -> bool {
    net.producer_of(map).is_none_or(|id| {
        matches!(net.function(id).kind, FunctionKind::Convolution | FunctionKind::FullyConnected)
    })
}

/// The longest end that fits while no swapped map is back; keeps nothing if no end does. Ends once the recomputations are
/// too many: those of shorter ends are more.
fn keep_the_end(lab: &Lab<'_>, run: &mut ScheduleRun<'_>) -> Result<Classes, ScheduleHalt> {
    let mut classes = lab.all_in_class(Class::Keep);
    for map in lab.classified_maps() {
        run.tick(1)?;
        let capacity = run.problem().capacity;
        if lab.peak_if_offered(&classes).is_none_or(|peak| peak <= capacity) {
            break;
        }
        let class = if is_dear(&run.problem().net, map) { Class::Swap } else { Class::Recompute };
        classes.set_class(map, class);
    }
    Ok(classes)
}
