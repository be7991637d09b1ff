//! Schedulers that take few simulations; the searches start from their schedules.

use planlab_graph::Scheduler;

use super::chains::{Pofo, Revolve, Rotor};
use super::checkpoints::{Candidates, Checkpointing, Chen, Memonger, Patent};
use super::{Capuchin, Coop, Dtr, InCore, Policy, Pooch, SuperNeurons, SwapAll, SwapOpt};

/// The budget of the tree search: the maps to branch on, and the leaves.
const DEPTH: usize = 8;
const LEAVES: u32 = 32;

/// How the time of a scheduler grows with the number of functions, about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Growth {
    Linear,
    Quadratic,
    Cubic,
}

type Rated = (Growth, Box<dyn Scheduler>);

fn rate_quick_schedulers() -> Vec<Rated> {
    let patent = Checkpointing::new(Patent::default());
    vec![
        (Growth::Linear, Box::new(InCore)),
        (Growth::Linear, Box::new(SwapAll::one_step_ahead())),
        (Growth::Linear, Box::new(SwapAll::with_prefetch())),
        (Growth::Quadratic, Box::new(SwapOpt)),
        (Growth::Quadratic, Box::new(SuperNeurons::default())),
        (Growth::Quadratic, Box::new(SuperNeurons::default().with_policy(Policy::Retain))),
        (Growth::Linear, Box::new(Checkpointing::new(Chen))),
        (Growth::Linear, Box::new(Checkpointing::new(Memonger))),
        (Growth::Linear, Box::new(patent)),
        (Growth::Linear, Box::new(patent.with_candidates(Candidates::Scored))),
        (Growth::Linear, Box::new(patent.with_swap(true))),
        (Growth::Quadratic, Box::new(Capuchin)),
        (Growth::Cubic, Box::new(Dtr)),
        (Growth::Cubic, Box::new(Coop)),
    ]
}

fn rate_chain_schedulers() -> [Rated; 3] {
    [
        (Growth::Quadratic, Box::new(Revolve)),
        (Growth::Cubic, Box::new(Rotor::default())),
        (Growth::Cubic, Box::new(Pofo)),
    ]
}

/// The schedulers that simulate a few classifications, in the order in which they are listed.
pub(super) fn quick_schedulers() -> Vec<Box<dyn Scheduler>> {
    rate_quick_schedulers().into_iter().map(|(_, scheduler)| scheduler).collect()
}

/// The schedulers that take a net for a chain; the joint search starts from their schedules, too.
pub(super) fn chain_schedulers() -> [Box<dyn Scheduler>; 3] {
    rate_chain_schedulers().map(|(_, scheduler)| scheduler)
}

/// On large nets, the schedulers that end first come first.
fn sort_cheap_first(mut rated: Vec<Rated>) -> Vec<Box<dyn Scheduler>> {
    rated.sort_by_key(|&(growth, _)| growth);
    rated.into_iter().map(|(_, scheduler)| scheduler).collect()
}

/// [`quick_schedulers`], cheap ones first.
pub(super) fn cheap_quick_schedulers_first() -> Vec<Box<dyn Scheduler>> {
    sort_cheap_first(rate_quick_schedulers())
}

/// The quick schedulers that take linear time.
pub(super) fn linear_schedulers() -> Vec<Box<dyn Scheduler>> {
    let is_linear = |(growth, _): &Rated| *growth == Growth::Linear;
    rate_quick_schedulers().into_iter().filter(is_linear).map(|(_, scheduler)| scheduler).collect()
}

/// Quick schedulers and those for chains, cheap ones first.
pub(super) fn starting_schedulers() -> Vec<Box<dyn Scheduler>> {
    sort_cheap_first(rate_quick_schedulers().into_iter().chain(rate_chain_schedulers()).collect())
}

/// PoocH's tree search, within a budget of leaves.
pub(super) fn budgeted_searches() -> [Box<dyn Scheduler>; 2] {
    [Policy::Discard, Policy::Retain]
        .map(|policy| -> Box<dyn Scheduler> { Box::new(Pooch::with_budget(policy, DEPTH, LEAVES)) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn starts_are_all_quick_schedulers_cheap_ones_first() {
        let keys = |schedulers: &[Box<dyn Scheduler>]| -> Vec<String> {
            schedulers.iter().map(|scheduler| scheduler.descriptor().key.into_owned()).collect()
        };
        let starts = keys(&starting_schedulers());
        assert_eq!(starts[0], "in-core");
        assert_eq!(starts[starts.len() - 4..], ["dtr", "coop", "rotor", "pofo"]);
        let mut listed = [keys(&quick_schedulers()), keys(&chain_schedulers())].concat();
        let mut sorted = starts;
        listed.sort();
        sorted.sort();
        assert_eq!(sorted, listed);
    }
}
