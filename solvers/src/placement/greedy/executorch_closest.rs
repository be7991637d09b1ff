//! The first greedy planner of ExecuTorch: whole objects are shared, the closest in size first.
//!
//! Buffers are taken in the order of their first steps. Each takes, of the objects no longer in use, the one whose size
//! is closest to its own; a smaller one grows. If all are in use, it gets a new one. In the end the objects are
//! stacked. ExecuTorch has since replaced it by the buckets of [`Executorch`](super::Executorch).
//!
//! # References
//!
//! 1. ExecuTorch, `exir/memory_planning.py` (`greedy`, `pick_shared_obj`), 2023 to 2025.
//!
//! # Complexity
//!
//! O(n k) for k objects, as published.
//!
//! # Deviations from the paper
//!
//! - *Default: published.* The loop marks every object that is the closest *so far* as in use until the buffer's end,
//!   and keeps the mark when it finds a closer one. Plans stay valid and become higher.
//!   [`ExecutorchClosest::with_passing_marks`] of `false` is the repaired rule.
//! - Buffers that start together are sorted by id; in the original by the order of the graph's nodes.
//! - Each buffer has its own alignment; the original has one for all. An object begins at a multiple of its first
//!   buffer's alignment, and takes only buffers whose alignment divides that. The original counts the padding at the
//!   end of the arena; here it is not part of the height.
//! - Live ranges are half-open here and closed in the original, with the same conflicts.
//! - Arenas are planned one by one, as in the original; capacities are checked once everything is placed. Pins and
//!   kept-apart pairs are not honoured, pauses and in-place permissions not used.

use planlab_dsa::{Alignment, Buffer, Descriptor, Halt, Honours, Offset, Plan, Planner, Run, Step};

use super::executorch::{padded_size, stack_blocks};
use crate::demands::fits_arenas;
use crate::placement::Order;

/// The unused object of the closest size; key `executorch/closest`.
#[derive(Clone, Copy, Debug, Default)]
pub struct ExecutorchClosest {
    skips_marks: bool,
}

impl ExecutorchClosest {
    /// Whether an object that is passed over for a closer one is still marked as in use, as published. Default: yes.
    #[must_use]
    pub const fn with_passing_marks(mut self, yes: bool) -> Self {
        self.skips_marks = !yes;
        self
    }
}

impl Planner for ExecutorchClosest {
    fn descriptor(&self) -> Descriptor {
        Descriptor {
            key: "executorch/closest".into(),
            summary: "whole objects shared, earliest start first, the unused one of the closest size".into(),
            honours: Honours { alignment: true, arenas: true, work_limit: true, ..Honours::default() },
            reference: "ExecuTorch, exir/memory_planning.py, 2023",
            complexity: "n k for k objects",
            practical: Some(10_000),
            ..Descriptor::default()
        }
    }

    fn plan(&self, run: &mut Run<'_>) -> Result<(), Halt> {
        let instance = run.instance();
        let mut arenas: Vec<Vec<Object>> = vec![Vec::new(); instance.arenas().len()];
        let mut places = vec![0; instance.len()];
        for id in Order::Start.sort_buffers(instance) {
            let buffer = instance.buffer(id);
            let objects = &mut arenas[buffer.arena.index()];
            run.tick(objects.len() as u64 + 1)?;
            places[id.index()] = self.pick_object(objects, buffer);
        }
        let bases =
            |objects: &Vec<Object>| stack_blocks(objects.iter().map(|object| (object.height, object.align)));
        let bases: Vec<Vec<u64>> = arenas.iter().map(bases).collect();
        let offset = |(buffer, &place): (&Buffer, &usize)| Offset::new(bases[buffer.arena.index()][place]);
        let offsets: Vec<Offset> = instance.buffers().iter().zip(&places).map(offset).collect();
        if fits_arenas(instance, &offsets) { run.offer(Plan::from_offsets(offsets)) } else { Ok(()) }
    }
}

impl ExecutorchClosest {
    fn pick_object(self, objects: &mut Vec<Object>, buffer: &Buffer) -> usize {
        let mut picked: Option<usize> = None;
        for number in 0..objects.len() {
            let distance = |number: usize| objects[number].size.abs_diff(padded_size(buffer));
            let is_closer = picked.is_none_or(|picked| distance(number) < distance(picked));
            if objects[number].may_take(buffer) && is_closer {
                picked = Some(number);
                if !self.skips_marks {
                    objects[number].take_buffer(buffer);
                }
            }
        }
        let picked = picked.unwrap_or(objects.len());
        if picked == objects.len() {
            objects.push(Object { align: buffer.align, ..Object::default() });
        }
        objects[picked].take_buffer(buffer);
        picked
    }
}

/// A piece of memory used by one buffer after the other.
#[derive(Clone, Debug, Default)]
struct Object {
    /// The largest padded size of its buffers.
    size: u64,
    /// The largest size of its buffers.
    height: u64,
    align: Alignment,
    /// The step from which it is no longer in use.
    free: Step,
}

impl Object {
    fn may_take(&self, buffer: &Buffer) -> bool {
        self.free <= buffer.live.start() && buffer.align.divides(self.align.get())
    }

    fn take_buffer(&mut self, buffer: &Buffer) {
        self.size = self.size.max(padded_size(buffer));
        self.height = self.height.max(buffer.size.get());
        self.free = buffer.live.end();
    }
}

#[cfg(test)]
mod tests {
    use planlab_dsa::testing::{Shape, instances};
    use planlab_dsa::{BufferId, Instance};
    use proptest::prelude::*;

    use super::*;
    use crate::placement::testing::{aligned, place_buffers, planned_offsets, test_instance};

    #[test]
    fn the_closest_is_taken_and_what_is_passed_over_is_not_free_for_the_next() {
        // The third finds 8, then 4, which is closer; the fourth could have the 8.
        let passed_over = test_instance(&[(8, 0, 1), (4, 0, 1), (4, 1, 3), (8, 2, 3)]);
        // A smaller object grows, and of equally close ones the first is taken.
        let grows = test_instance(&[(6, 0, 1), (2, 0, 1), (4, 1, 2), (9, 2, 3)]);
        for (marks, expected) in [(true, [0, 8, 8, 12]), (false, [0, 8, 8, 0])] {
            let planner = ExecutorchClosest::default().with_passing_marks(marks);
            assert_eq!(planned_offsets(&planner, &passed_over), expected, "{marks}");
            assert_eq!(planned_offsets(&planner, &grows), [0, 9, 0, 0], "{marks}");
        }
    }

    #[test]
    fn an_object_takes_only_what_is_aligned_with_it() {
        let all = vec![aligned(6, 0, 1, 3), aligned(6, 1, 2, 4)];
        assert_eq!(place_buffers(&ExecutorchClosest::default(), all), [0, 8]);
    }

    /// The planner without the marks, from the definition: the object of each buffer by id.
    fn literal(instance: &Instance) -> Vec<u64> {
        let mut objects: Vec<Vec<BufferId>> = Vec::new();
        let size = |object: &[BufferId]| object.iter().map(|&id| instance.buffer(id).size.get()).max();
        for id in Order::Start.sort_buffers(instance) {
            let buffer = instance.buffer(id);
            let is_free = |object: &[BufferId]| {
                object.iter().all(|&other| !instance.buffer(other).live.overlaps(buffer.live))
            };
            let closest = (0..objects.len())
                .filter(|&number| is_free(&objects[number]))
                .min_by_key(|&number| size(&objects[number]).map(|size| size.abs_diff(buffer.size.get())));
            match closest {
                Some(number) => objects[number].push(id),
                None => objects.push(vec![id]),
            }
        }
        let mut offsets = vec![0; instance.len()];
        let mut base = 0;
        for object in &objects {
            object.iter().for_each(|id| offsets[id.index()] = base);
            base += size(object).unwrap_or(0);
        }
        offsets
    }

    proptest! {
        #[test]
        fn without_marks_each_buffer_takes_the_closest_free_object(
            instance in instances(Shape::plain_buffers().with_max_buffers(60).with_max_steps(30).with_max_size(60)),
        ) {
            let planner = ExecutorchClosest::default().with_passing_marks(false);
            prop_assert_eq!(planned_offsets(&planner, &instance), literal(&instance));
        }
    }
}
