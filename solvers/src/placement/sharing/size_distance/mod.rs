//! Shared objects, greedy by size and distance: buffers of similar size, the nearest in time first.
//!
//! The sizes are divided at the *positional maxima* (the i-th is the largest size that is the i-th largest of all
//! live at some step), and buffers are placed position by position. Within a position, consider all pairs of a
//! buffer and an object that is free during its live range: the pair with the least time between the buffer and the
//! contents of the object comes next, so that objects fill up without holes. If no pair is left, the largest buffer
//! opens an object.
//!
//! # References
//!
//! 1. Y. Pisarchyk and J. Lee, *Efficient memory management for deep neural net inference*, 2020,
//!    arXiv:2001.03288, section 4 (greedy by size improved).
//! 2. The GPU delegate of TensorFlow Lite, `GreedyBySizeDistPriorityAssignment`.
//!
//! # Complexity
//!
//! O((n + r) log n), where r is the number of times that a buffer looks for its nearest object again because the object
//! was taken: at most n times the number of objects, and a few n on nets. The public loop is O(n^2) with a table of n
//! times the objects. Here a queue replaces the table. It has the best pair of each waiting buffer and, for each buffer
//! in an object and each side in time, the pair with the nearest waiting buffer.
//!
//! # Deviations from the paper
//!
//! - Positions and distances are those of the public code.
//! - Ties: the larger buffer, then the lower id, as in the public code; then the larger neighbour in time, then the
//!   one with the lower id. (Of two objects that are equally near, the public code takes the one that it finds
//!   first; its comment says the largest.)
//! - Alignment is honoured within objects.

mod nearest;
mod stages;

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use planlab_dsa::{BufferId, Descriptor, Halt, Instance, Plan, Planner, Run};

use self::nearest::{Side, both_sides};
use self::stages::buffers_by_position;
use super::objects::{HONOURS, REFERENCE, stack_objects};

/// Positions by size, nearest in time first; key `shared-objects/size-distance`.
#[derive(Clone, Copy, Debug, Default)]
pub struct SharedObjectsSizeDistance;

impl Planner for SharedObjectsSizeDistance {
    fn descriptor(&self) -> Descriptor {
        Descriptor {
            key: "shared-objects/size-distance".into(),
            summary: "whole objects shared: sizes cut at positional maxima, nearest in time first".into(),
            honours: HONOURS,
            reference: REFERENCE,
            complexity: "(n + r) log n for r looks for a new neighbour",
            ..Descriptor::default()
        }
    }

    fn plan(&self, run: &mut Run<'_>) -> Result<(), Halt> {
        let object_of = share_objects(run.instance(), |work| run.tick(work))?;
        run.offer(Plan::from_offsets(stack_objects(run.instance(), &object_of)))
    }
}

fn share_objects<E>(instance: &Instance, mut tick: impl FnMut(u64) -> Result<(), E>) -> Result<Vec<u32>, E> {
    let mut sharing = Sharing::new(instance);
    for stage in buffers_by_position(instance) {
        sharing.begin_stage(&stage);
        for &id in &stage {
            // Buffers near an object go first; of those left, the largest opens a new object.
            while sharing.take_nearest() {
                tick(1)?;
            }
            tick(1)?;
            if sharing.object_of[id.index()] == NONE {
                sharing.open_object(id);
            }
        }
        while sharing.take_nearest() {
            tick(1)?;
        }
    }
    Ok(sharing.object_of)
}

/// No object yet.
const NONE: u32 = u32::MAX;
/// The side on which time runs forwards.
const FORWARDS: usize = 0;
/// The side on which it runs backwards.
const BACKWARDS: usize = 1;

/// A buffer next to one that has an object; the least comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Pair {
    /// Steps between both.
    distance: u32,
    size: Reverse<u64>,
    id: BufferId,
    neighbour_size: Reverse<u64>,
    neighbour: BufferId,
    /// The side on which the buffer lies before its neighbour.
    side: usize,
    /// Whether it is the neighbour that looked for the buffer.
    is_of_neighbour: bool,
}

struct Sharing<'i> {
    instance: &'i Instance,
    object_of: Vec<u32>,
    objects: u32,
    sides: [Side; 2],
    /// The buffer before each one in its object, on either side.
    before: [Vec<Option<BufferId>>; 2],
    pairs: BinaryHeap<Reverse<Pair>>,
}

impl<'i> Sharing<'i> {
    fn new(instance: &'i Instance) -> Self {
        let nothing = vec![None; instance.len()];
        Self {
            instance,
            object_of: vec![NONE; instance.len()],
            objects: 0,
            sides: both_sides(instance),
            before: [nothing.clone(), nothing],
            pairs: BinaryHeap::new(),
        }
    }

    /// Adds the buffers of a position to those that wait.
    fn begin_stage(&mut self, stage: &[BufferId]) {
        self.pairs.clear();
        for &id in stage {
            self.sides.iter_mut().for_each(|side| side.set_waiting(id, true));
            self.look_around(id);
        }
    }

    /// Queues the best pair of a waiting buffer.
    fn look_around(&mut self, id: BufferId) {
        let on = |side: usize| Some(self.make_pair(side, id, self.sides[side].next_around(id)?, false));
        let best = on(FORWARDS).into_iter().chain(on(BACKWARDS)).min();
        self.pairs.extend(best.map(Reverse));
    }

    /// Queues the pair of a buffer in an object and the nearest waiting buffer in the hole before it.
    fn look_before(&mut self, side: usize, neighbour: BufferId) {
        let (begin, end) = (self.hole_start(side, neighbour), self.sides[side].mirrored_life(neighbour).0);
        // Seen from the neighbour, the hole lies behind it.
        let found = self.sides[1 - side].first_waiting(u32::MAX - end, u32::MAX - begin);
        let pair = found.map(|id| self.make_pair(side, id, neighbour, true));
        self.pairs.extend(pair.map(Reverse));
    }

    fn make_pair(&self, side: usize, id: BufferId, neighbour: BufferId, is_of_neighbour: bool) -> Pair {
        let size = |id: BufferId| Reverse(self.instance.buffer(id).size.get());
        let distance = self.sides[side].mirrored_life(neighbour).0 - self.sides[side].mirrored_life(id).1;
        let (size, neighbour_size) = (size(id), size(neighbour));
        Pair { distance, size, id, neighbour_size, neighbour, side, is_of_neighbour }
    }

    /// The start of the hole before a buffer.
    fn hole_start(&self, side: usize, id: BufferId) -> u32 {
        self.before[side][id.index()].map_or(0, |before| self.sides[side].mirrored_life(before).1)
    }

    /// Takes the first pair of the queue; the buffer takes the object if that is still possible. `false` if no pair
    /// is left.
    fn take_nearest(&mut self) -> bool {
        let Some(Reverse(pair)) = self.pairs.pop() else { return false };
        let Pair { id, neighbour, side, .. } = pair;
        let waits = self.object_of[id.index()] == NONE;
        if waits && self.hole_start(side, neighbour) <= self.sides[side].mirrored_life(id).0 {
            self.join_hole(side, id, neighbour);
        } else if waits && !pair.is_of_neighbour {
            self.look_around(id);
        }
        if pair.is_of_neighbour {
            self.look_before(side, neighbour);
        }
        true
    }

    /// Puts a buffer into the hole before its neighbour.
    fn join_hole(&mut self, side: usize, id: BufferId, neighbour: BufferId) {
        let before = self.before[side][neighbour.index()].replace(id);
        self.before[side][id.index()] = before;
        self.before[1 - side][id.index()] = Some(neighbour);
        if let Some(before) = before {
            self.before[1 - side][before.index()] = Some(id);
            self.refresh_pairs(1 - side, before);
        }
        self.refresh_pairs(side, neighbour);
        self.settle_buffer(id, self.object_of[neighbour.index()]);
    }

    fn open_object(&mut self, id: BufferId) {
        self.objects += 1;
        self.settle_buffer(id, self.objects - 1);
    }

    fn settle_buffer(&mut self, id: BufferId, object: u32) {
        self.object_of[id.index()] = object;
        for side in [FORWARDS, BACKWARDS] {
            self.sides[side].set_waiting(id, false);
            self.refresh_pairs(side, id);
        }
        self.look_before(FORWARDS, id);
        self.look_before(BACKWARDS, id);
    }

    fn refresh_pairs(&mut self, side: usize, id: BufferId) {
        let begin = self.hole_start(side, id);
        self.sides[side].set_hole(id, begin);
    }
}

#[cfg(test)]
mod tests {
    use planlab_dsa::testing::{Shape, instances};
    use proptest::prelude::*;

    use super::*;
    use crate::placement::sharing::objects::testing::offsets_of;
    use crate::placement::testing::planned_offsets;

    /// Looks at every pair of a waiting buffer and one with an object.
    fn literal(instance: &Instance) -> Vec<u32> {
        let mut object_of = vec![NONE; instance.len()];
        let live = |id: BufferId| instance.buffer(id).live;
        let size = |id: BufferId| Reverse(instance.buffer(id).size);
        let mut objects = 0;
        for stage in buffers_by_position(instance) {
            for _ in &stage {
                let known = &object_of;
                let has = |id: &BufferId| known[id.index()] != NONE;
                let waiting = || stage.iter().copied().filter(|id| !has(id));
                let is_free = |id: BufferId, object: u32| {
                    let mut in_it = instance.ids().filter(|other| known[other.index()] == object);
                    in_it.all(|other| !live(other).overlaps(live(id)))
                };
                let mut near = Vec::new();
                for id in waiting() {
                    let free = instance.ids().filter(has);
                    for other in free.filter(|other| is_free(id, known[other.index()])) {
                        let is_first = live(other).start() < live(id).start();
                        let (before, after) = if is_first { (other, id) } else { (id, other) };
                        let distance = live(after).start().get() - live(before).end().get();
                        near.push((distance, size(id), id, size(other), other));
                    }
                }
                let found = near.into_iter().min().map(|(_, _, id, _, other)| (id, known[other.index()]));
                let (id, object) = found.unwrap_or_else(|| {
                    objects += 1;
                    let first = waiting().min_by_key(|&id| (size(id), id));
                    (first.expect("one for each turn"), objects - 1)
                });
                object_of[id.index()] = object;
            }
        }
        object_of
    }

    proptest! {
        #[test]
        fn plans_are_those_of_the_table_of_all_pairs(
            instance in instances(Shape::plain_buffers().with_max_buffers(40).with_max_steps(40)),
        ) {
            let expected = literal(&instance);
            prop_assert_eq!(share_objects(&instance, |_| Ok::<(), ()>(())), Ok(expected.clone()));
            prop_assert_eq!(planned_offsets(&SharedObjectsSizeDistance, &instance), offsets_of(&instance, &expected));
        }
    }
}
