//! Whole objects that buffers share, and the conversion to offsets.

use std::collections::{BTreeMap, BTreeSet};

use planlab_dsa::{Buffer, BufferId, Halt, Honours, Instance, LiveRange, Offset, Plan, Run};

/// What planners of whole objects honour.
pub(crate) const HONOURS: Honours = Honours { alignment: true, work_limit: true, ..Honours::NONE };

/// The publication of the planners of shared objects.
pub(super) const REFERENCE: &str = "Pisarchyk and Lee 2020, arXiv:2001.03288, section 4";

/// The offsets of buffers that share objects; `object_of` has the number of each buffer's object, by id.
///
/// Objects are stacked in the order of their numbers. A buffer lies at the bottom of its object, at the next
/// multiple of its alignment.
pub(crate) fn stack_objects(instance: &Instance, object_of: &[u32]) -> Vec<Offset> {
    let object = |id: &BufferId| object_of[id.index()];
    let mut ids: Vec<BufferId> = instance.ids().collect();
    ids.sort_by_key(object);
    let mut offsets = vec![Offset::default(); instance.len()];
    let mut base = 0;
    for members in ids.chunk_by(|a, b| object(a) == object(b)) {
        let mut top = base;
        for &id in members {
            let buffer = instance.buffer(id);
            let offset = buffer.align.round_up(base).expect("an instance leaves room for all padding");
            offsets[id.index()] = Offset::new(offset);
            top = top.max(offset + buffer.size.get());
        }
        base = top;
    }
    offsets
}

/// Gives each buffer, in a given order, the smallest free object that holds it; else the largest free one, which
/// grows; else a new one.
pub(super) fn share_in_order(run: &mut Run<'_>, order: &[BufferId]) -> Result<(), Halt> {
    let instance = run.instance();
    let mut objects = Objects::new(instance.len());
    for &id in order {
        let looked = objects.place_buffer(id, instance.buffer(id));
        run.tick(1 + looked)?;
    }
    run.offer(Plan::from_offsets(stack_objects(instance, &objects.object_of)))
}

/// The objects so far, and the steps at which each is in use.
struct Objects {
    object_of: Vec<u32>,
    sizes: Vec<u64>,
    /// The size and the number of each object.
    by_size: BTreeSet<(u64, u32)>,
    /// The live ranges in each object: ends by start.
    uses: Vec<BTreeMap<u32, u32>>,
}

impl Objects {
    fn new(buffers: usize) -> Self {
        let object_of = vec![0; buffers];
        Self { object_of, sizes: Vec::new(), by_size: BTreeSet::new(), uses: Vec::new() }
    }

    /// Puts a buffer into an object; returns the number of objects examined.
    fn place_buffer(&mut self, id: BufferId, buffer: &Buffer) -> u64 {
        let size = buffer.size.get();
        let mut looked = 0;
        let object = match self.choose_object(size, buffer.live, &mut looked) {
            Some(object) => object,
            None => self.open_object(size),
        };
        self.grow_object(object, size);
        let (start, end) = buffer.live.into();
        self.uses[object as usize].insert(start, end);
        self.object_of[id.index()] = object;
        looked
    }

    fn choose_object(&self, size: u64, live: LiveRange, looked: &mut u64) -> Option<u32> {
        let mut is_free = |&&(_, object): &&(u64, u32)| {
            *looked += 1;
            self.is_free(object, live)
        };
        if let Some(&(_, object)) = self.by_size.range((size, 0)..).find(&mut is_free) {
            return Some(object);
        }
        let mut above = (size, 0);
        // From one size to the next smaller; of equals, the one that was opened first.
        while let Some(&(smaller, _)) = self.by_size.range(..above).next_back() {
            if let Some(&(_, object)) = self.by_size.range((smaller, 0)..above).find(&mut is_free) {
                return Some(object);
            }
            above = (smaller, 0);
        }
        None
    }

    fn is_free(&self, object: u32, live: LiveRange) -> bool {
        let before = self.uses[object as usize].range(..live.end().get()).next_back();
        before.is_none_or(|(_, &end)| end <= live.start().get())
    }

    fn open_object(&mut self, size: u64) -> u32 {
        let object = u32::try_from(self.sizes.len()).expect("no more objects than buffers");
        self.sizes.push(size);
        self.uses.push(BTreeMap::new());
        self.by_size.insert((size, object));
        object
    }

    fn grow_object(&mut self, object: u32, size: u64) {
        let known = &mut self.sizes[object as usize];
        if *known < size {
            self.by_size.remove(&(*known, object));
            *known = size;
            self.by_size.insert((size, object));
        }
    }
}

/// What tests of these planners share.
#[cfg(test)]
pub(crate) mod testing {
    use super::*;
    use crate::placement::testing::{aligned, test_buffer};

    /// The offsets of objects by number, as the published loops give them.
    pub(crate) fn offsets_of(instance: &Instance, object_of: &[u32]) -> Vec<u64> {
        stack_objects(instance, object_of).iter().map(|offset| offset.get()).collect()
    }

    /// The published loop over all objects, for buffers in an order.
    pub(crate) fn literal(instance: &Instance, order: &[BufferId]) -> Vec<u32> {
        let mut object_of = vec![u32::MAX; instance.len()];
        let mut sizes: Vec<u64> = Vec::new();
        for &id in order {
            let (size, live) = (instance.buffer(id).size.get(), instance.buffer(id).live);
            let mut best: Option<usize> = None;
            for object in 0..sizes.len() {
                let better = best.is_none_or(|best| {
                    if sizes[best] < size {
                        sizes[object] > sizes[best]
                    } else {
                        (size..sizes[best]).contains(&sizes[object])
                    }
                });
                let is_in = |other: &BufferId| object_of[other.index()] as usize == object;
                let is_free =
                    !instance.ids().filter(is_in).any(|other| instance.buffer(other).live.overlaps(live));
                if better && is_free {
                    best = Some(object);
                }
            }
            let object = best.unwrap_or_else(|| {
                sizes.push(size);
                sizes.len() - 1
            });
            sizes[object] = sizes[object].max(size);
            object_of[id.index()] = u32::try_from(object).expect("few");
        }
        object_of
    }

    #[test]
    fn objects_stand_one_above_the_other_and_buffers_are_rounded_up_within() {
        let buffers = vec![test_buffer(3, 0, 1), aligned(4, 0, 1, 8), test_buffer(5, 1, 2)];
        let instance = Instance::from_buffers(buffers).expect("valid");
        assert_eq!(offsets_of(&instance, &[0, 1, 1]), [0, 8, 3]);
    }
}
