//! The order of the passes, and what happens to each map after each of its uses: the decisions of a schedule.
//!
//! A *stage* is a pass of the iteration. Stages are numbered: the forward passes in the net's order, then the backward
//! passes in reverse order; they may run in any [order](StageOrder) that the data permit. A map is *accessed* in a stage if the pass writes or reads it, or if a recomputation for the pass does. After the access it
//! is kept until the next one, dropped, or moved to the host. A map that was dropped is recomputed for its next access,
//! from its function's inputs, which are accessed, too. So every map, transient or not, may be kept, swapped and
//! recomputed any number of times, and what one recomputation makes may stay for others.

mod offer;
mod order;
mod program;

use std::ops::Range;

use planlab_graph::{Content, Engine, MapId, Schedule, Task, TrainingNet};
use smallvec::SmallVec;

pub(super) use offer::offer_fates;
pub(super) use order::{StageLimits, StageOrder, backward_stage, forward_stage};
pub(super) use program::{Gap, build_program, build_program_within};

/// What happens to a map between an access and the next one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::schedule) enum Fate {
    /// It is recomputed for the next access.
    Drop,
    /// It stays on the device.
    Keep,
    /// It goes to the host, unless it is there, and comes back.
    Swap,
}

/// An order of the stages, and a fate for each map and stage; it has no meaning where the map is not accessed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::schedule) struct Fates {
    pub(in crate::schedule) order: StageOrder,
    /// For each map: the stages after which it is not kept, ascending.
    by_map: Vec<Vec<(usize, Fate)>>,
}

/// What a change concerns.
pub(in crate::schedule) enum Changed {
    /// The order of the stages.
    Order,
    /// The fates of some maps.
    Maps(SmallVec<[MapId; 2]>),
}

impl Fates {
    /// Every map stays on the device, and the passes run in the order of their numbers.
    pub(in crate::schedule) fn keep_all(net: &TrainingNet) -> Self {
        Self { order: StageOrder::canonical(net), by_map: vec![Vec::new(); net.maps().len()] }
    }

    /// The order of the passes of a schedule, and the fates of its maps.
    pub(in crate::schedule) fn from_schedule(net: &TrainingNet, schedule: &Schedule) -> Self {
        let order = StageOrder::from_passes(&list_passes(net, schedule), &StageLimits::new(net));
        let mut fates = Self { order, ..Self::keep_all(net) };
        let mut made_by_copy = vec![false; schedule.buffers.len()];
        for copy in schedule.events_of(Engine::In) {
            copy.writes.iter().for_each(|id| made_by_copy[id.index()] = true);
        }
        // For each map: the stage and the buffer of its last access.
        let mut last: Vec<Option<(usize, usize)>> = vec![None; net.maps().len()];
        let mut stage = 0;
        let stages = stages_of_events(net, schedule);
        for (event, of_event) in schedule.events_of(Engine::Compute).iter().zip(stages) {
            stage = of_event.unwrap_or(stage);
            for &buffer in event.reads.iter().chain(&event.writes) {
                let Content::Map(map) = schedule.buffer(buffer).content else { continue };
                if let Some((before, held)) = last[map.index()].filter(|&(before, _)| before != stage) {
                    let fate = match (held == buffer.index(), made_by_copy[buffer.index()]) {
                        (true, _) => Fate::Keep,
                        (false, true) => Fate::Swap,
                        (false, false) => Fate::Drop,
                    };
                    fates.set_fate(map, before, stage, fate);
                }
                last[map.index()] = Some((stage, buffer.index()));
            }
        }
        fates
    }

    pub(in crate::schedule) fn fate(&self, map: MapId, stage: usize) -> Fate {
        let fates = &self.by_map[map.index()];
        let place = fates.binary_search_by_key(&stage, |&(at, _)| at);
        place.map_or(Fate::Keep, |place| fates[place].1)
    }

    /// Sets the fate after an access, up to the next one. An access that comes between leaves the map on the device.
    pub(in crate::schedule) fn set_fate(&mut self, map: MapId, stage: usize, next: usize, fate: Fate) {
        let fates = &mut self.by_map[map.index()];
        let [first, end] = [stage, next].map(|bound| self.order.position(bound));
        fates.retain(|&(at, _)| at != stage && !(first..end).contains(&self.order.position(at)));
        if fate != Fate::Keep {
            let place = fates.partition_point(|&(at, _)| at < stage);
            fates.insert(place, (stage, fate));
        }
    }

    /// Drops a map after each of some stages.
    pub(in crate::schedule) fn drop_after_each(&mut self, map: MapId, stages: Range<usize>) {
        let fates = &mut self.by_map[map.index()];
        fates.retain(|(at, _)| !stages.contains(at));
        let place = fates.partition_point(|&(at, _)| at < stages.start);
        fates.splice(place..place, stages.map(|stage| (stage, Fate::Drop))).for_each(drop);
    }

    /// Takes from others what was changed.
    pub(in crate::schedule) fn copy_changed(&mut self, changed: &Changed, other: &Self) {
        match changed {
            Changed::Order => self.order.clone_from(&other.order),
            Changed::Maps(maps) => {
                for map in maps {
                    self.by_map[map.index()].clone_from(&other.by_map[map.index()]);
                }
            }
        }
    }

    /// The number of stages.
    pub(in crate::schedule) fn stages(&self) -> usize {
        self.order.stages().len()
    }
}

/// The stages of the passes of a schedule, in the order in which they run.
fn list_passes(net: &TrainingNet, schedule: &Schedule) -> Vec<usize> {
    let functions = net.functions().len();
    let stage = |task: Task| match task {
        Task::Forward(id) => Some(forward_stage(id)),
        Task::Backward(id) => Some(backward_stage(id, functions)),
        Task::Recompute(_) | Task::Accumulate(_) | Task::CopyOut(_) | Task::CopyIn(_) => None,
    };
    schedule.events_of(Engine::Compute).iter().filter_map(|event| stage(event.task)).collect()
}

/// For each compute event, the stage to which it belongs: a recomputation to the pass that follows it, a sum to the one
/// before, which is `None`.
fn stages_of_events(net: &TrainingNet, schedule: &Schedule) -> Vec<Option<usize>> {
    let functions = net.functions().len();
    let mut following = None;
    let events = schedule.events_of(Engine::Compute).iter().rev();
    let mut stages: Vec<_> = events
        .map(|event| match event.task {
            Task::Forward(id) => {
                following = Some(forward_stage(id));
                following
            }
            Task::Backward(id) => {
                following = Some(backward_stage(id, functions));
                following
            }
            Task::Recompute(_) => following,
            Task::Accumulate(_) | Task::CopyOut(_) | Task::CopyIn(_) => None,
        })
        .collect();
    stages.reverse();
    stages
}
