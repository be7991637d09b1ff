//! Every scheduler by its key.

use planlab_graph::Scheduler;

use super::knapsack::knapsack_schedulers;
use super::quick::{budgeted_searches, chain_schedulers, quick_schedulers};
#[cfg(feature = "mip")]
use super::{Checkmate, OffMate};
use super::{Exact, Joint, LocalSearch, Policy, Pooch, PoochElsewhere};

/// One scheduler of each kind, in the order in which they are listed.
#[must_use]
pub fn schedulers() -> Vec<Box<dyn Scheduler>> {
    let mut all = quick_schedulers();
    all.push(Box::new(Pooch::new(Policy::Discard)));
    all.push(Box::new(Pooch::new(Policy::Retain)));
    all.extend(budgeted_searches());
    all.push(Box::new(PoochElsewhere));
    all.extend(knapsack_schedulers());
    all.extend(chain_schedulers());
    all.push(Box::new(LocalSearch::default()));
    all.push(Box::new(Joint::default()));
    all.push(Box::new(Exact::default()));
    #[cfg(feature = "cp")]
    all.push(Box::new(super::Moccasin::default()));
    #[cfg(feature = "mip")]
    all.extend(
        [Checkmate::exact(), Checkmate::rounding()]
            .map(|scheduler| -> Box<dyn Scheduler> { Box::new(scheduler) }),
    );
    #[cfg(feature = "mip")]
    all.push(Box::new(OffMate::default()));
    all
}

/// The keys of all schedulers.
#[must_use]
pub fn scheduler_keys() -> Vec<String> {
    schedulers().iter().map(|scheduler| scheduler.descriptor().key.into_owned()).collect()
}

/// The scheduler of a key.
///
/// ```
/// assert!(planlab_solvers::schedule::find_scheduler("pooch/retain").is_some());
/// assert!(planlab_solvers::schedule::find_scheduler("hope").is_none());
/// ```
#[must_use]
pub fn find_scheduler(key: &str) -> Option<Box<dyn Scheduler>> {
    schedulers().into_iter().find(|scheduler| scheduler.descriptor().key == key)
}
