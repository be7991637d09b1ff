//! The position of a buffer by its size among the live buffers.
//!
//! The i-th *positional maximum* is the largest size that is the i-th largest of all live at some step. Every
//! plan of whole objects has, for each i, an i-th largest object at least that large. Buffers stand at
//! the last position whose maximum is not below their size.
//!
//! The number of positional maxima of at least x bytes is the most buffers of at least x bytes that are live at one
//! step. So one pass over all buffers, the largest first, that counts the live ones gives the positions of all
//! sizes.

use std::cmp::Reverse;
use std::ops::Range;

use planlab_dsa::{BufferId, Instance};

use crate::placement::order::sort_by;
use crate::trees::{Columns, parts};

/// The buffers by position, the first position first; within a position by size, the largest first, then by id.
/// O(n log n).
pub(super) fn buffers_by_position(instance: &Instance) -> Vec<Vec<BufferId>> {
    let columns = Columns::of_live_ranges(instance);
    let mut live = Counts::new(columns.len());
    let mut stages: Vec<Vec<BufferId>> = Vec::new();
    let size = |id: &BufferId| instance.buffer(*id).size;
    let order = sort_by(instance, |buffer| Reverse(buffer.size));
    for alike in order.chunk_by(|a, b| size(a) == size(b)) {
        alike.iter().for_each(|&id| live.add_range(&columns.columns_of(instance.buffer(id).live)));
        let position = live.highest_count() as usize;
        stages.resize_with(position, Vec::new);
        stages[position - 1].extend(alike);
    }
    stages.retain(|stage| !stage.is_empty());
    stages
}

/// The number of ranges at each column, and the largest of these numbers.
struct Counts {
    leaves: usize,
    /// The largest count below each node, without the additions at the nodes above it.
    most: Vec<u32>,
    /// The additions to all columns of each node.
    here: Vec<u32>,
}

impl Counts {
    fn new(columns: usize) -> Self {
        let leaves = columns.next_power_of_two();
        Self { leaves, most: vec![0; 2 * leaves], here: vec![0; 2 * leaves] }
    }

    fn highest_count(&self) -> u32 {
        self.most[1]
    }

    /// Adds one to a range that is not empty.
    fn add_range(&mut self, range: &Range<usize>) {
        for node in parts(self.leaves, range) {
            self.most[node] += 1;
            self.here[node] += 1;
        }
        self.update_above(range.start + self.leaves);
        self.update_above(range.end - 1 + self.leaves);
    }

    /// Updates all nodes above a leaf.
    fn update_above(&mut self, mut node: usize) {
        while node > 1 {
            node /= 2;
            self.most[node] = self.here[node] + self.most[2 * node].max(self.most[2 * node + 1]);
        }
    }
}

#[cfg(test)]
mod tests {
    use planlab_dsa::Step;
    use planlab_dsa::testing::{Shape, instances};
    use proptest::prelude::*;

    use super::*;

    /// Sorts the live buffers of every step.
    fn literal(instance: &Instance) -> Vec<Vec<BufferId>> {
        let mut maxima: Vec<u64> = Vec::new();
        for step in 0..instance.horizon().get() {
            let live = instance.buffers().iter().filter(|buffer| buffer.live.contains(Step::new(step)));
            let mut sizes: Vec<u64> = live.map(|buffer| buffer.size.get()).collect();
            sizes.sort_unstable_by_key(|&size| Reverse(size));
            maxima.resize(maxima.len().max(sizes.len()), 0);
            maxima.iter_mut().zip(sizes).for_each(|(most, size)| *most = size.max(*most));
        }
        let mut stages = vec![Vec::new(); maxima.len()];
        for id in sort_by(instance, |buffer| Reverse(buffer.size)) {
            let size = instance.buffer(id).size.get();
            let position = maxima.iter().rposition(|&most| most >= size).expect("it is live itself");
            stages[position].push(id);
        }
        stages.retain(|stage| !stage.is_empty());
        stages
    }

    proptest! {
        #[test]
        fn counting_gives_the_positions_of_the_definition(
            instance in instances(Shape::plain_buffers().with_max_buffers(40).with_max_steps(30)),
        ) {
            prop_assert_eq!(buffers_by_position(&instance), literal(&instance));
        }
    }
}
