//! PoocH: first decides which maps stay, then whether swapping or recomputing costs less for the rest.
//!
//! Step 1 finds the maps that stay, with all others swapped. Step 2 computes for each swapped map how much longer the
//! iteration takes than if the map took no memory, when it is swapped and when it is recomputed. Maps whose
//! recomputation costs at least as much as the swap stay swapped. Of the others, the one with the smallest quotient is
//! recomputed, and the rest is examined again.
//!
//! ```text
//! swap overhead(X)      = T(X swapped)    - T(X for free)
//! recompute overhead(X) = T(X recomputed) - T(X for free)
//! ```
//!
//! # References
//!
//! 1. Y. Ito, H. Imai, T. Le Duc, Y. Negishi, K. Kawachiya, R. Matsumiya, T. Endo: Profiling based Out-of-core Hybrid
//!    Method for Large Neural Networks. PPoPP 2019 (poster) and arXiv 1907.05013. doi:10.1145/3293883.3298790.
//!
//! # Complexity
//!
//! O(s^2) simulations for s swapped maps, each O(n).
//!
//! # Deviations from the paper
//!
//! - Step 1: as [`SwapOpt`](super::SwapOpt), or a part of the paper's tree ([`Pooch::with_budget`]). The whole tree has
//!   2^k leaves for the k maps whose copies in delay something; k is 70 to 80 for ResNet-50 on PCIe.
//! - The overheads: the paper says "the overhead caused by X with the others fixed". The baseline here, a run in which
//!   X is kept and neither it nor its gradients have bytes, is our choice. A recomputation that does not fit costs
//!   infinitely much.
//! - How long recomputed maps stay is a policy; the paper does not specify it.

use planlab_graph::{
    Engine, Event, MapId, Schedule, ScheduleHalt, ScheduleRun, Scheduler, SchedulerDescriptor, Span, Task,
    Timeline,
};

use super::bound::claim_lp_bound;
use super::classes::{Class, Classes, Lab, Policy};
use super::program::Prefetch;
use super::swap_opt::keep_what_fits;

/// Seconds that the compute engine may stand idle without counting as delayed.
const IDLE: f64 = 1e-6;
/// An overhead of swapping up to this counts as zero.
const NO_OVERHEAD: f64 = 1e-9;

/// How step 1 finds the maps that stay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PoochSearch {
    Suffix,
    Budgeted { depth: usize, leaves: u32 },
}

/// Keeps, swaps or recomputes by simulated overheads.
#[derive(Clone, Copy, Debug)]
pub struct Pooch {
    policy: Policy,
    search: PoochSearch,
}

impl Pooch {
    /// Keeps the maps that fit, tried from the output to the input.
    #[must_use]
    pub const fn new(policy: Policy) -> Self {
        Self { policy, search: PoochSearch::Suffix }
    }

    /// Searches for the maps that stay in a tree over the `depth` maps, from the output, whose copies in delay the
    /// most, up to its first `leaves` leaves.
    #[must_use]
    pub const fn with_budget(policy: Policy, depth: usize, leaves: u32) -> Self {
        Self { policy, search: PoochSearch::Budgeted { depth, leaves } }
    }

    fn key(self) -> String {
        let search = if self.search == PoochSearch::Suffix { "" } else { "/budgeted" };
        format!("pooch/{}{search}", self.policy)
    }
}

impl Scheduler for Pooch {
    fn descriptor(&self) -> SchedulerDescriptor {
        let keeps = match self.search {
            PoochSearch::Suffix => "keeps what fits from the output",
            PoochSearch::Budgeted { .. } => "searches for what to keep",
        };
        SchedulerDescriptor {
            key: self.key().into(),
            summary: format!("{keeps}; swaps or recomputes the rest, by what each costs").into(),
            randomized: false,
            reference: "Ito et al. 2019",
            complexity: "s^2 simulations for s swapped maps",
        }
    }

    fn schedule(&self, run: &mut ScheduleRun<'_>) -> Result<(), ScheduleHalt> {
        let lab = Lab::new(run.problem(), self.policy, Prefetch::AsRoomPermits);
        claim_lp_bound(run)?;
        let key = self.key();
        let mut classes = lab.all_in_class(Class::Swap);
        lab.offer_classes(run, &classes, &key)?;
        lab.search_classes(run, &mut classes, &key, |run, classes| match self.search {
            PoochSearch::Suffix => keep_what_fits(&lab, run, classes),
            PoochSearch::Budgeted { depth, leaves } => search_tree(&lab, run, classes, depth, leaves),
        })?;
        if run.best_schedule().is_none() {
            return Ok(());
        }
        lab.search_classes(run, &mut classes, &key, |run, classes| {
            recompute_what_costs_less(&lab, run, classes)
        })
    }
}

/// Step 2: recomputes the maps for which that costs less than swapping.
pub(super) fn recompute_what_costs_less(
    lab: &Lab<'_>,
    run: &mut ScheduleRun<'_>,
    classes: &mut Classes,
) -> Result<(), ScheduleHalt> {
    let is_open = |&map: &MapId| classes.class_of(map) == Class::Swap && lab.can_recompute(map);
    let mut open: Vec<_> = lab.classified_maps().filter(is_open).collect();
    while !open.is_empty() {
        run.tick(1)?;
        let Some(base) = lab.iteration_seconds(classes) else { break };
        let mut quotients = Vec::with_capacity(open.len());
        for &map in &open {
            run.tick(2)?;
            quotients.push((map, overhead_quotient(lab, classes, map, base)));
        }
        quotients.retain(|&(_, quotient)| quotient < 1.0);
        let Some(&(cheapest, _)) = quotients.iter().min_by(|a, b| a.1.total_cmp(&b.1)) else { break };
        classes.set_class(cheapest, Class::Recompute);
        open = quotients.into_iter().map(|(map, _)| map).filter(|&map| map != cheapest).collect();
    }
    Ok(())
}

/// The overhead of recomputing a map divided by that of swapping it; infinite if it cannot be recomputed.
fn overhead_quotient(lab: &Lab<'_>, classes: &Classes, map: MapId, base: f64) -> f64 {
    let free = lab.seconds_with_free(classes, map);
    let recomputed = lab.iteration_seconds(&classes.with_class(map, Class::Recompute));
    let (Some(free), Some(recomputed)) = (free, recomputed) else { return f64::INFINITY };
    let (swap, recompute) = (base - free, recomputed - free);
    if swap > NO_OVERHEAD {
        recompute / swap
    } else if recompute > NO_OVERHEAD {
        f64::INFINITY
    } else {
        1.0
    }
}

/// The seconds that the compute engine is idle during each copy of an engine, and the map of the copy.
fn find_stalls(lab: &Lab<'_>, run: &Schedule, timeline: &Timeline, engine: Engine) -> Vec<(MapId, f64)> {
    let idle = timeline.idle_periods(Engine::Compute, IDLE);
    let copies = run.events_of(engine).iter().zip(timeline.spans_of(engine));
    let stall = |(event, span): (&Event, &Span)| {
        let (Task::CopyOut(map) | Task::CopyIn(map)) = event.task else { return None };
        let shared = |&(from, to): &(f64, f64)| (to.min(span.end) - from.max(span.start)).max(0.0);
        let seconds: f64 = idle.iter().map(shared).sum();
        (seconds > 0.0 && lab.classified_maps().any(|other| other == map)).then_some((map, seconds))
    };
    copies.filter_map(stall).collect()
}

/// Step 1 in the paper's tree, cut to a depth and a number of leaves: from all swapped.
fn search_tree(
    lab: &Lab<'_>,
    run: &mut ScheduleRun<'_>,
    classes: &mut Classes,
    depth: usize,
    leaves: u32,
) -> Result<(), ScheduleHalt> {
    let all = classes.clone();
    run.tick(1)?;
    let Ok((draft, timeline)) = lab.run_draft(&all) else { return Ok(()) };
    let mut delaying = find_stalls(lab, &draft, &timeline, Engine::In);
    let out = find_stalls(lab, &draft, &timeline, Engine::Out);
    let mut scanned: Vec<_> = delaying.iter().chain(&out).map(|&(map, _)| map).collect();
    delaying.sort_by(|a, b| b.1.total_cmp(&a.1).then(b.0.cmp(&a.0)));
    let mut tree: Vec<_> = delaying.into_iter().take(depth).map(|(map, _)| map).collect();
    tree.sort_unstable_by(|a, b| b.cmp(a));
    scanned.retain(|map| !tree.contains(map));
    scanned.sort_unstable_by(|a, b| b.cmp(a));
    scanned.dedup();
    let mut search = Tree { lab, tree, scanned, leaves, best: (timeline.seconds, all.clone()) };
    let end = search.descend_node(run, 0, &all);
    *classes = search.best.1;
    end
}

struct Tree<'a> {
    lab: &'a Lab<'a>,
    /// The maps to branch on, from the output.
    tree: Vec<MapId>,
    /// The maps that each leaf tries, from the output.
    scanned: Vec<MapId>,
    /// The number of leaves that may still be visited.
    leaves: u32,
    best: (f64, Classes),
}

impl Tree<'_> {
    fn descend_node(
        &mut self,
        run: &mut ScheduleRun<'_>,
        level: usize,
        classes: &Classes,
    ) -> Result<(), ScheduleHalt> {
        if self.leaves == 0 {
            return Ok(());
        }
        let Some(&map) = self.tree.get(level) else {
            self.leaves -= 1;
            return self.scan_leaf(run, classes.clone());
        };
        let kept = classes.with_class(map, Class::Keep);
        run.tick(1)?;
        if self.lab.draft_schedule(&kept).is_ok() {
            self.descend_node(run, level + 1, &kept)?;
        }
        self.descend_node(run, level + 1, classes)
    }

    /// A leaf: keeps further maps one after another, and offers the best on the way.
    fn scan_leaf(&mut self, run: &mut ScheduleRun<'_>, mut classes: Classes) -> Result<(), ScheduleHalt> {
        self.try_out(run, &classes)?;
        for map in self.scanned.clone() {
            let kept = classes.with_class(map, Class::Keep);
            if self.try_out(run, &kept)? {
                classes = kept;
            }
        }
        Ok(())
    }

    /// Whether the classification runs.
    fn try_out(&mut self, run: &mut ScheduleRun<'_>, classes: &Classes) -> Result<bool, ScheduleHalt> {
        run.tick(1)?;
        let Some(seconds) = self.lab.iteration_seconds(classes) else { return Ok(false) };
        if seconds < self.best.0 {
            self.best = (seconds, classes.clone());
        }
        Ok(true)
    }
}
