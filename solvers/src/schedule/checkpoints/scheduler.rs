//! The searches for checkpoints as schedulers: checkpoints stay on the device, and the rest is recomputed once, from
//! the nearest checkpoint before it. Maps that only other recomputations read are computed once for all of them if
//! memory allows, else once for each.
//!
//! Blocks end at [`Candidates`]: articulation points, or those of them with a high score. Checkpoints stay, or are
//! swapped if their copies hide. Every cut that is tried is offered. The cost, which guides some searches, is the most
//! bytes in use at once, without copies in. The inputs of the net are checkpoints.
//!
//! # References
//!
//! As `chen`, `memonger` and `patent`.
//!
//! # Complexity
//!
//! A simulation, O(n), for each threshold; two with swapping.

use planlab_graph::{ScheduleHalt, ScheduleRun, Scheduler, SchedulerDescriptor};

use super::candidates::Candidates;
use super::chen::Chen;
use super::cut::{Cut, Thresholds};
use super::memonger::Memonger;
use super::net::CheckpointNet;
use super::patent::Patent;

/// The kind of search.
#[derive(Clone, Copy, Debug)]
enum ThresholdSearch {
    Chen(Chen),
    Memonger(Memonger),
    Patent(Patent),
}

/// Keeps checkpoints, and recomputes the rest; keys `checkpoints/chen`, `checkpoints/memonger` and
/// `checkpoints/patent`. With [`Candidates::Scored`] `/scored` is added, with checkpoints that are swapped `/swap`.
#[derive(Clone, Copy, Debug)]
pub struct Checkpointing {
    search: ThresholdSearch,
    candidates: Candidates,
    swaps: bool,
}

impl Checkpointing {
    const fn new(search: ThresholdSearch) -> Self {
        Self { search, candidates: Candidates::Articulation, swaps: false }
    }

    /// Uses [`Chen`]'s thresholds.
    #[must_use]
    pub const fn with_chen(search: Chen) -> Self {
        Self::new(ThresholdSearch::Chen(search))
    }

    /// Uses [`Memonger`]'s thresholds.
    #[must_use]
    pub const fn with_memonger(search: Memonger) -> Self {
        Self::new(ThresholdSearch::Memonger(search))
    }

    /// Uses the [`Patent`]'s thresholds.
    #[must_use]
    pub const fn with_patent(search: Patent) -> Self {
        Self::new(ThresholdSearch::Patent(search))
    }

    /// Where blocks may end. Default: [`Candidates::Articulation`].
    #[must_use]
    pub const fn with_candidates(mut self, candidates: Candidates) -> Self {
        self.candidates = candidates;
        self
    }

    /// Whether checkpoints are swapped if their copies hide in a trial run. Default: no.
    #[must_use]
    pub const fn with_swap(mut self, yes: bool) -> Self {
        self.swaps = yes;
        self
    }

    fn key(self) -> String {
        let search = match self.search {
            ThresholdSearch::Chen(_) => "chen",
            ThresholdSearch::Memonger(_) => "memonger",
            ThresholdSearch::Patent(_) => "patent",
        };
        let candidates = if self.candidates == Candidates::Scored { "/scored" } else { "" };
        let swaps = if self.swaps { "/swap" } else { "" };
        format!("checkpoints/{search}{candidates}{swaps}")
    }
}

impl Scheduler for Checkpointing {
    fn descriptor(&self) -> SchedulerDescriptor {
        let (summary, reference) = match self.search {
            ThresholdSearch::Chen(_) => ("blocks of about the root of the net", "Chen et al. 2016"),
            ThresholdSearch::Memonger(_) => {
                ("memonger's search for the size of blocks", "dmlc/mxnet-memonger")
            }
            ThresholdSearch::Patent(_) => {
                ("a threshold that follows the mean block", "a Chinese patent (Zhejiang) on checkpoints")
            }
        };
        let candidates = if self.candidates == Candidates::Scored { ", of dear, small maps" } else { "" };
        let keeps = if self.swaps { "swaps or keeps" } else { "keeps" };
        SchedulerDescriptor {
            key: self.key().into(),
            summary: format!("{keeps} checkpoints and recomputes the rest: {summary}{candidates}").into(),
            randomized: false,
            reference,
            complexity: "n for each of about 8 thresholds",
        }
    }

    fn schedule(&self, run: &mut ScheduleRun<'_>) -> Result<(), ScheduleHalt> {
        let net = CheckpointNet::new(run.problem(), self.candidates).with_swap(self.swaps);
        net.lab().claim_bound(run)?;
        let key = self.key();
        let mut cost = |cut: &Cut| {
            // The trial run.
            run.tick(u64::from(self.swaps))?;
            let classes = net.classes_of(cut);
            net.shared_lab().offer_classes(run, &classes, &key)?;
            net.lab().offer_classes(run, &classes, &key)?;
            Ok(net.lab().peak_bytes(&classes).get())
        };
        match self.search {
            ThresholdSearch::Chen(search) => search.search(net.items(), &mut cost),
            ThresholdSearch::Memonger(search) => search.search(net.items(), &mut cost),
            ThresholdSearch::Patent(search) => search.search(net.items(), &mut cost),
        }
        .map(|_: Vec<_>| ())
    }
}

#[cfg(test)]
mod tests {
    use planlab_graph::{ScheduleBudget, execute_scheduler};

    use super::*;
    use crate::schedule::testing::shortcut_problem;

    #[test]
    fn each_search_finds_a_schedule_that_recomputes() {
        // With everything kept the sum of gradients takes 1088 bytes.
        let problem = shortcut_problem().with_capacity(planlab_dsa::Bytes::new(1084));
        let patent = Checkpointing::with_patent(Patent::default());
        let scored = patent.with_candidates(Candidates::Scored);
        for scheduler in [Checkpointing::with_chen(Chen), patent, scored, patent.with_swap(true)] {
            let outcome = execute_scheduler(&scheduler, &problem, ScheduleBudget::default(), 0);
            assert!(outcome.end.is_ok(), "{:?}", outcome.end);
            assert!(outcome.best.is_some() || outcome.shortfall.is_some());
        }
    }

    #[test]
    fn swapped_checkpoints_take_less_memory() {
        // The image and the relu go and come back while the rest is computed; everything kept takes 1088 bytes.
        let mut problem = shortcut_problem().with_capacity(planlab_dsa::Bytes::new(1087));
        problem.machine = problem.machine.with_link(128.0);
        let least = |scheduler: Checkpointing| {
            let outcome = execute_scheduler(&scheduler, &problem, ScheduleBudget::default(), 0);
            outcome
                .best
                .map(|best| (best.schedule().events_of(planlab_graph::Engine::Out).len(), best.seconds()))
        };
        let patent = Checkpointing::with_patent(Patent::default());
        assert_eq!(least(patent), None);
        // Two copies out that nothing waits for: nine passes of 2 seconds, and the sum of gradients of 3.
        assert_eq!(least(patent.with_swap(true)), Some((2, 21.0)));
    }

    #[test]
    fn every_choice_is_in_the_key() {
        let patent = Checkpointing::with_patent(Patent::default());
        assert_eq!(patent.key(), "checkpoints/patent");
        assert_eq!(patent.with_swap(true).key(), "checkpoints/patent/swap");
        let scored = Checkpointing::with_chen(Chen).with_candidates(Candidates::Scored);
        assert_eq!(
            (scored.key(), scored.with_swap(true).key()),
            ("checkpoints/chen/scored".into(), "checkpoints/chen/scored/swap".into())
        );
    }
}
