//! The searches for checkpoints as schedulers: what they keep stays on the device, and the rest is recomputed once, from
//! the nearest checkpoint before it.
//!
//! Blocks may end where a single feature map carries everything that comes after it: at articulation points. A net that
//! has none that can be kept offers all its maps. Every cut that is tried is offered; the cost, by which some searches go
//! on, is the most bytes that are taken at once. The inputs of the net always stay.
//!
//! # References
//!
//! As `chen`, `memonger` and `patent`.
//!
//! # Complexity
//!
//! A simulation, O(n), for each threshold.

use planlab_graph::{MapId, ScheduleHalt, ScheduleRun, Scheduler, SchedulerDescriptor, TrainingNet};

use super::super::class::{Class, Classes, Policy};
use super::super::lab::Lab;
use super::super::residency::Prefetch;
use super::chen::Chen;
use super::cut::{Cut, Item, Mark};
use super::memonger::Memonger;
use super::patent::Patent;

/// Which search.
#[derive(Clone, Copy, Debug)]
enum Search {
    Chen(Chen),
    Memonger(Memonger),
    Patent(Patent),
}

/// Keeps checkpoints, and recomputes the rest; keys `checkpoints/chen`, `checkpoints/memonger` and `checkpoints/patent`.
#[derive(Clone, Copy, Debug)]
pub struct Checkpointing {
    search: Search,
}

impl Checkpointing {
    /// By [`Chen`]'s thresholds.
    #[must_use]
    pub const fn chen(search: Chen) -> Self {
        Self { search: Search::Chen(search) }
    }

    /// By [`Memonger`]'s thresholds.
    #[must_use]
    pub const fn memonger(search: Memonger) -> Self {
        Self { search: Search::Memonger(search) }
    }

    /// By the [`Patent`]'s thresholds.
    #[must_use]
    pub const fn patent(search: Patent) -> Self {
        Self { search: Search::Patent(search) }
    }

    const fn key(self) -> &'static str {
        match self.search {
            Search::Chen(_) => "checkpoints/chen",
            Search::Memonger(_) => "checkpoints/memonger",
            Search::Patent(_) => "checkpoints/patent",
        }
    }
}

impl Scheduler for Checkpointing {
    fn descriptor(&self) -> SchedulerDescriptor {
        let (summary, reference) = match self.search {
            Search::Chen(_) => ("blocks of about the root of the net", "Chen et al. 2016"),
            Search::Memonger(_) => ("memonger's search for the size of blocks", "dmlc/mxnet-memonger"),
            Search::Patent(_) => {
                ("a threshold that follows the mean block", "a Chinese patent (Zhejiang) on checkpoints")
            }
        };
        SchedulerDescriptor {
            key: self.key().into(),
            summary: format!("keeps checkpoints and recomputes the rest: {summary}").into(),
            randomized: false,
            reference,
            complexity: "n for each of about 8 thresholds",
        }
    }

    fn schedule(&self, run: &mut ScheduleRun<'_>) -> Result<(), ScheduleHalt> {
        let lab = Lab::new(run.problem(), Policy::Retain, Prefetch::AsRoomPermits);
        lab.claim_bound(run)?;
        let maps: Vec<_> = lab.maps().filter(|&map| lab.can_recompute(map)).collect();
        let items = items(&run.problem().net, &maps);
        let mut cost = |cut: &Cut| {
            let classes = classes(&lab, &maps, cut);
            lab.offer(run, &classes, self.key())?;
            Ok(lab.peak(&classes).get())
        };
        match self.search {
            Search::Chen(search) => search.search(&items, &mut cost),
            Search::Memonger(search) => search.search(&items, &mut cost),
            Search::Patent(search) => search.search(&items, &mut cost),
        }
        .map(|_: Vec<_>| ())
    }
}

fn classes(lab: &Lab<'_>, maps: &[MapId], cut: &Cut) -> Classes {
    let mut classes = lab.all(Class::Keep);
    maps.iter().for_each(|&map| classes.set(map, Class::Recompute));
    cut.kept.iter().for_each(|&place| classes.set(maps[place], Class::Keep));
    classes
}

fn items(net: &TrainingNet, maps: &[MapId]) -> Vec<Item> {
    let carriers = carriers(net);
    let has_carrier = maps.iter().any(|map| carriers[map.index()]);
    let item = |&map: &MapId| Item {
        bytes: net.map(map).bytes,
        mark: Mark::candidate(!has_carrier || carriers[map.index()]),
    };
    maps.iter().map(item).collect()
}

/// By map, whether every later function gets what it reads through it: no other map is read on both sides of it.
fn carriers(net: &TrainingNet) -> Vec<bool> {
    let mut carriers = vec![false; net.maps().len()];
    // The last function that reads something made before; inputs of the net are there from the start.
    let last = |map: MapId| net.last_use(map).map_or(0, |id| id.index() + 1);
    let mut latest = net.map_ids().filter(|&map| !net.has_gradient(map)).map(last).max().unwrap_or(0);
    for id in net.function_ids() {
        let output = net.function(id).output;
        carriers[output.index()] = latest <= id.index() + 1;
        latest = latest.max(last(output));
    }
    carriers
}

#[cfg(test)]
mod tests {
    use planlab_graph::{ScheduleBudget, execute_scheduler};

    use super::super::super::testing::shortcut;
    use super::*;

    #[test]
    fn a_map_beside_a_shortcut_carries_nothing() {
        let problem = shortcut();
        let found: Vec<_> =
            carriers(&problem.net).iter().enumerate().filter_map(|(map, &yes)| yes.then_some(map)).collect();
        assert_eq!(found, [1, 2, 4, 5]);
    }

    #[test]
    fn each_search_finds_a_schedule_that_recomputes() {
        // With everything kept the sum of gradients takes 1088 bytes.
        let problem = shortcut().with_capacity(planlab_dsa::Bytes::new(1084));
        for scheduler in [Checkpointing::chen(Chen::default()), Checkpointing::patent(Patent::default())] {
            let outcome = execute_scheduler(&scheduler, &problem, ScheduleBudget::default(), 0);
            assert!(outcome.end.is_ok(), "{:?}", outcome.end);
            assert!(outcome.best.is_some() || outcome.shortfall.is_some());
        }
    }
}
