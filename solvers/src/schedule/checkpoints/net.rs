//! A net in training that is cut into blocks: the maps that a cut keeps, swaps and recomputes, and the memory for that.
//!
//! The maps that a cut keeps stay on the device, or go to the host and come back. The rest is recomputed once, from the
//! nearest checkpoint before it. The inputs of the net are checkpoints, too.

use planlab_dsa::{Budget, Bytes, Instance, execute};
use planlab_graph::{MapId, ScheduleError, SchedulingProblem, Verified};

use super::candidates::Candidates;
use super::cut::{Cut, Item};
use super::swapping::swap_what_hides;
use crate::placement::Order;
use crate::placement::greedy::Fit;
use crate::placement::sharing::PatentFreeList;
use crate::schedule::classes::{Class, Classes, Lab, Policy};
use crate::schedule::program::Prefetch;

/// A net in training whose forward pass is cut into blocks.
///
/// # Panics
///
/// All methods that take a cut panic if it is not one of these items.
#[derive(Clone, Debug)]
pub struct CheckpointNet<'p> {
    lab: Lab<'p>,
    /// The items of cuts: the maps that can be recomputed, in the order of the forward pass.
    maps: Vec<MapId>,
    items: Vec<Item>,
    swaps: bool,
}

impl<'p> CheckpointNet<'p> {
    /// A net whose blocks may end at the given candidates.
    #[must_use]
    pub fn new(problem: &'p SchedulingProblem, candidates: Candidates) -> Self {
        let lab = Lab::new(problem, Policy::Retain, Prefetch::AsRoomPermits);
        let maps: Vec<_> = lab.classified_maps().filter(|&map| lab.can_recompute(map)).collect();
        let may_end = candidates.candidates_among(&lab, &maps);
        let item =
            |(map, is_candidate): (&MapId, bool)| Item { bytes: problem.net.map(*map).bytes, is_candidate };
        let items = maps.iter().zip(may_end).map(item).collect();
        Self { lab, maps, items, swaps: false }
    }

    /// Whether checkpoints are swapped if their copies hide in a trial run. Default: no.
    #[must_use]
    pub const fn with_swap(mut self, yes: bool) -> Self {
        self.swaps = yes;
        self
    }

    /// The items for the searches.
    #[must_use]
    pub fn items(&self) -> &[Item] {
        &self.items
    }

    pub(super) const fn lab(&self) -> &Lab<'p> {
        &self.lab
    }

    /// The same classes as schedules in which no function runs again twice.
    pub(super) fn shared_lab(&self) -> Lab<'p> {
        self.lab.clone().with_policy(Policy::Share)
    }

    /// The class of each map under a cut.
    #[must_use]
    pub fn classes_of(&self, cut: &Cut) -> Classes {
        let mut classes = self.lab.all_in_class(Class::Keep);
        self.maps.iter().for_each(|&map| classes.set_class(map, Class::Recompute));
        cut.kept.iter().for_each(|&place| classes.set_class(self.maps[place], Class::Keep));
        if self.swaps { swap_what_hides(&self.lab, classes) } else { classes }
    }

    /// The bytes of a cut by the patent's free list, with the best of its windows; the base included.
    ///
    /// # Errors
    ///
    /// [`ScheduleError`] if the plan does not run in the problem's capacity.
    pub fn free_list(&self, cut: &Cut) -> Result<Bytes, ScheduleError> {
        let (draft, timeline) =
            self.lab.run_draft(&self.classes_of(cut)).map_err(|error| failed_with(&error))?;
        let instance = draft.placement_problem(&timeline).map_err(|error| failed_with(&error))?;
        let blocks = execute(&PatentFreeList, &instance, Budget::default(), 0).height();
        let blocks = blocks.ok_or_else(|| failed_with(&"the free list has no plan"))?;
        blocks.checked_add(draft.base).ok_or_else(|| failed_with(&"the free list exceeds 64 bits"))
    }

    /// A cut's schedule with validated offsets: the lower of best-fit in the order of requests and of a packing by
    /// area, largest first.
    ///
    /// # Errors
    ///
    /// [`ScheduleError`] if the plan does not run in the problem's capacity, or is refused.
    pub fn pack_schedule(&self, cut: &Cut) -> Result<Verified, ScheduleError> {
        let problem = self.lab.problem();
        let (draft, _) = self.lab.run_draft(&self.classes_of(cut)).map_err(|error| failed_with(&error))?;
        let online = Verified::new(problem, draft)?;
        let Some(plan) = by_area(&online.placement_problem().map_err(|error| failed_with(&error))?) else {
            return Ok(online);
        };
        let packed = online.with_offsets(problem, &plan)?;
        Ok(if packed.height() < online.height() { packed } else { online })
    }
}

/// The offsets of a plan that places the largest areas first.
fn by_area(instance: &Instance) -> Option<Vec<planlab_dsa::Offset>> {
    let outcome = execute(&Fit::first_fit(Order::Area), instance, Budget::default(), 0);
    Some(outcome.best?.as_plan().offsets.as_slice().to_vec())
}

fn failed_with(reason: &impl ToString) -> ScheduleError {
    ScheduleError::Failed(reason.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::checkpoints::cut_items;
    use crate::schedule::testing::shortcut_problem;

    #[test]
    fn a_cut_keeps_its_checkpoints_and_the_inputs() {
        let problem = shortcut_problem();
        let net = CheckpointNet::new(&problem, Candidates::Articulation);
        let letters =
            |threshold| net.lab().class_letters(&net.classes_of(&cut_items(net.items(), threshold)));
        assert_eq!([0.0, 300.0, 600.0].map(letters), ["KKK", "KRK", "KRR"]);
    }

    #[test]
    fn memory_is_that_of_the_buffers_of_the_plan() {
        let problem = shortcut_problem();
        let net = CheckpointNet::new(&problem, Candidates::Articulation);
        // With everything kept, five buffers of 256 or 64 bytes are live at the sum of gradients; the loss of 4 has its
        // own block.
        let kept = cut_items(net.items(), 0.0);
        let packed = net.pack_schedule(&kept).expect("there is room");
        assert_eq!(packed.live_peak(), Bytes::new(1088));
        assert_eq!(packed.height(), Bytes::new(1088));
        assert_eq!(net.free_list(&kept), Ok(Bytes::new(1092)));
        let tight = problem.clone().with_capacity(Bytes::new(500));
        let refused =
            CheckpointNet::new(&tight, Candidates::Articulation).free_list(&kept).expect_err("no room");
        assert!(refused.to_string().starts_with("out of memory"), "{refused}");
    }

    #[test]
    fn with_swap_what_hides_is_swapped() {
        let mut problem = shortcut_problem();
        problem.machine = problem.machine.with_link(128.0);
        let net = CheckpointNet::new(&problem, Candidates::Articulation).with_swap(true);
        let kept = cut_items(net.items(), 0.0);
        assert_eq!(net.lab().class_letters(&net.classes_of(&kept)), "SSK");
        assert!(net.pack_schedule(&kept).is_ok());
    }
}
