//! Every scheduler by its key.

use planlab_graph::Scheduler;

use super::checkpoints::{Candidates, Checkpointing, Chen, Memonger, Patent};
use super::{InCore, LocalSearch, Policy, Pooch, PoochElsewhere, SuperNeurons, SwapAll, SwapOpt};

/// The budget of the tree search: the maps to branch on, and the leaves.
const DEPTH: usize = 8;
const LEAVES: u32 = 32;

/// The schedulers that simulate a few classifications, in the order in which they are listed.
pub(super) fn quick_schedulers() -> Vec<Box<dyn Scheduler>> {
    let patent = Checkpointing::patent(Patent::default());
    vec![
        Box::new(InCore),
        Box::new(SwapAll::unscheduled()),
        Box::new(SwapAll::scheduled()),
        Box::new(SwapOpt),
        Box::new(SuperNeurons::default()),
        Box::new(SuperNeurons::default().with_policy(Policy::Retain)),
        Box::new(Checkpointing::chen(Chen::default())),
        Box::new(Checkpointing::memonger(Memonger::default())),
        Box::new(patent),
        Box::new(patent.with_candidates(Candidates::Scored)),
        Box::new(patent.with_swap(true)),
    ]
}

/// One scheduler of each kind, in the order in which they are listed.
#[must_use]
pub fn schedulers() -> Vec<Box<dyn Scheduler>> {
    let others: [Box<dyn Scheduler>; 6] = [
        Box::new(Pooch::new(Policy::Discard)),
        Box::new(Pooch::new(Policy::Retain)),
        Box::new(Pooch::budgeted(Policy::Discard, DEPTH, LEAVES)),
        Box::new(Pooch::budgeted(Policy::Retain, DEPTH, LEAVES)),
        Box::new(PoochElsewhere),
        Box::new(LocalSearch::default()),
    ];
    quick_schedulers().into_iter().chain(others).collect()
}

/// The keys of all schedulers.
#[must_use]
pub fn scheduler_keys() -> Vec<String> {
    schedulers().iter().map(|scheduler| scheduler.descriptor().key.into_owned()).collect()
}

/// The scheduler of a key.
///
/// ```
/// assert!(planlab_solvers::schedule::scheduler("pooch/retain").is_some());
/// assert!(planlab_solvers::schedule::scheduler("hope").is_none());
/// ```
#[must_use]
pub fn scheduler(key: &str) -> Option<Box<dyn Scheduler>> {
    schedulers().into_iter().find(|scheduler| scheduler.descriptor().key == key)
}
