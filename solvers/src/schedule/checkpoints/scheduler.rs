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
use super::cut::{Cut, Thresholds};
use super::net::CheckpointNet;
use crate::schedule::bound::claim_lp_bound;

/// Keeps checkpoints, and recomputes the rest; keys `checkpoints/chen`, `checkpoints/memonger` and
/// `checkpoints/patent`. With [`Candidates::Scored`] `/scored` is added, with checkpoints that are swapped `/swap`.
#[derive(Clone, Copy, Debug)]
pub struct Checkpointing<S> {
    search: S,
    candidates: Candidates,
    swaps: bool,
}

impl<S: Thresholds> Checkpointing<S> {
    /// Tries these thresholds.
    #[must_use]
    pub const fn new(search: S) -> Self {
        Self { search, candidates: Candidates::Articulation, swaps: false }
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
        let candidates = if self.candidates == Candidates::Scored { "/scored" } else { "" };
        let swaps = if self.swaps { "/swap" } else { "" };
        format!("checkpoints/{}{candidates}{swaps}", S::KEY)
    }
}

impl<S: Thresholds> Scheduler for Checkpointing<S> {
    fn descriptor(&self) -> SchedulerDescriptor {
        let candidates = if self.candidates == Candidates::Scored { ", of dear, small maps" } else { "" };
        let keeps = if self.swaps { "swaps or keeps" } else { "keeps" };
        SchedulerDescriptor {
            key: self.key().into(),
            summary: format!("{keeps} checkpoints and recomputes the rest: {}{candidates}", S::SUMMARY)
                .into(),
            randomized: false,
            reference: S::REFERENCE,
            complexity: "n for each of about 8 thresholds",
        }
    }

    fn schedule(&self, run: &mut ScheduleRun<'_>) -> Result<(), ScheduleHalt> {
        let net = CheckpointNet::new(run.problem(), self.candidates).with_swap(self.swaps);
        claim_lp_bound(run)?;
        let key = self.key();
        let cost = |cut: &Cut| {
            // The trial run.
            run.tick(u64::from(self.swaps))?;
            let classes = net.classes_of(cut);
            net.shared_lab().offer_classes(run, &classes, &key)?;
            net.lab().offer_classes(run, &classes, &key)?;
            Ok(net.lab().peak_bytes(&classes).get())
        };
        self.search.search(net.items(), cost).map(|_: Vec<_>| ())
    }
}

#[cfg(test)]
mod tests {
    use planlab_graph::{Engine, ScheduleBudget, Task, execute_scheduler};

    use super::*;
    use crate::schedule::checkpoints::{Chen, Patent};
    use crate::schedule::testing::{branching_problem, shortcut_problem};

    #[test]
    fn swapped_checkpoints_take_less_memory() {
        // The image and the relu go and come back while the rest is computed; everything kept takes 1088 bytes.
        let mut problem = shortcut_problem().with_capacity(planlab_dsa::Bytes::new(1087));
        problem.machine = problem.machine.with_link(128.0);
        let least = |scheduler: Checkpointing<Patent>| {
            let outcome = execute_scheduler(&scheduler, &problem, ScheduleBudget::default(), 0);
            outcome.best.map(|best| (best.schedule().events_of(Engine::Out).len(), best.seconds()))
        };
        let patent = Checkpointing::new(Patent::default());
        assert_eq!(least(patent), None);
        // Two copies out that nothing waits for: nine passes of 2 seconds, and the sum of gradients of 3.
        assert_eq!(least(patent.with_swap(true)), Some((2, 21.0)));
    }

    #[test]
    fn map_without_a_class_is_recomputed_once_for_all_readers() {
        // The relu and the tanh are recomputed; both read the output of the convolution.
        let problem = branching_problem();
        let outcome = execute_scheduler(&Checkpointing::new(Chen), &problem, ScheduleBudget::default(), 0);
        let best = outcome.best.expect("a schedule");
        let events = best.schedule().events_of(Engine::Compute);
        let recomputed = events.iter().filter_map(|event| match event.task {
            Task::Recompute(id) => Some(id.index()),
            _ => None,
        });
        assert_eq!(recomputed.collect::<Vec<_>>(), [0, 1, 2]);
    }

    #[test]
    fn every_choice_is_in_the_key() {
        let patent = Checkpointing::new(Patent::default());
        assert_eq!(patent.key(), "checkpoints/patent");
        assert_eq!(patent.with_swap(true).key(), "checkpoints/patent/swap");
        let scored = Checkpointing::new(Chen).with_candidates(Candidates::Scored);
        assert_eq!(scored.key(), "checkpoints/chen/scored");
        assert_eq!(scored.with_swap(true).key(), "checkpoints/chen/scored/swap");
    }
}
