//! Schedulers that take few simulations; the searches start from their schedules.

use planlab_graph::Scheduler;

use super::chains::{Pofo, Revolve, Rotor};
use super::checkpoints::{Candidates, Checkpointing, Chen, Memonger, Patent};
use super::{Capuchin, Coop, Dtr, InCore, Policy, Pooch, SuperNeurons, SwapAll, SwapOpt};

/// The budget of the tree search: the maps to branch on, and the leaves.
const DEPTH: usize = 8;
const LEAVES: u32 = 32;

/// The schedulers that simulate a few classifications, in the order in which they are listed.
pub(super) fn quick_schedulers() -> Vec<Box<dyn Scheduler>> {
    let patent = Checkpointing::new(Patent::default());
    vec![
        Box::new(InCore),
        Box::new(SwapAll::one_step_ahead()),
        Box::new(SwapAll::with_prefetch()),
        Box::new(SwapOpt),
        Box::new(SuperNeurons::default()),
        Box::new(SuperNeurons::default().with_policy(Policy::Retain)),
        Box::new(Checkpointing::new(Chen)),
        Box::new(Checkpointing::new(Memonger)),
        Box::new(patent),
        Box::new(patent.with_candidates(Candidates::Scored)),
        Box::new(patent.with_swap(true)),
        Box::new(Capuchin),
        Box::new(Dtr),
        Box::new(Coop),
    ]
}

/// The schedulers that take a net for a chain; the joint search starts from their schedules, too.
pub(super) fn chain_schedulers() -> [Box<dyn Scheduler>; 3] {
    [Box::new(Revolve), Box::new(Rotor::default()), Box::new(Pofo)]
}

/// PoocH's tree search, within a budget of leaves.
pub(super) fn budgeted_searches() -> [Box<dyn Scheduler>; 2] {
    [Policy::Discard, Policy::Retain]
        .map(|policy| -> Box<dyn Scheduler> { Box::new(Pooch::with_budget(policy, DEPTH, LEAVES)) })
}
