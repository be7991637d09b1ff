//! Blocks, made of buffers and smaller blocks, and the load that they add up to.
//!
//! ```text
//!   stack        row            wheel
//!   +-------+    +---+-----+    +---+-------+
//!   |   1   |    |   |     |    |   |   2   |    address
//!   +-------+    | 0 |  1  |    | 3 +---+---+       ^
//!   |   0   |    |   |     |    |   | 4 |   |       |
//!   +-------+    +---+-----+    +---+---+ 1 |       +--> time
//!                               |   0   |   |
//!                               +-------+---+
//! ```
//!
//! A block takes its size over its whole live range. What its parts leave empty there counts as load, too, and the
//! load must not exceed the capacity at any column. So a slack of zero forbids all waste.

/// How the parts of a block lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Shape {
    /// One buffer.
    Single,
    /// One part on the other.
    Stack,
    /// One part after the other.
    Row,
    /// Four parts around a fifth.
    Wheel,
}

impl Shape {
    pub(super) const fn part_count(self) -> usize {
        match self {
            Self::Single => 0,
            Self::Stack | Self::Row => 2,
            Self::Wheel => 5,
        }
    }
}

/// Parts and how they lie; unused places are 0. Sorted by the parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Join {
    parts: [u32; 5],
    pub(super) shape: Shape,
}

impl Join {
    pub(super) const fn stack_of(low: u32, high: u32) -> Self {
        Self { shape: Shape::Stack, parts: [low, high, 0, 0, 0] }
    }

    pub(super) const fn row_of(earlier: u32, later: u32) -> Self {
        Self { shape: Shape::Row, parts: [earlier, later, 0, 0, 0] }
    }

    pub(super) const fn wheel_of(parts: [u32; 5]) -> Self {
        Self { shape: Shape::Wheel, parts }
    }

    pub(super) fn parts(&self) -> &[u32] {
        &self.parts[..self.shape.part_count()]
    }
}

/// A block or a buffer: columns `[start, end)`, and granules.
#[derive(Clone, Copy, Debug)]
pub(super) struct Block {
    pub(super) start: u32,
    pub(super) end: u32,
    pub(super) size: u64,
    join: Join,
}

#[derive(Clone, Copy, Debug)]
enum Deed {
    Joined(u32),
    Split(u32),
}

/// All blocks. Those that are no part of another are the *roots*. Buffer `i` is block `i`.
#[derive(Clone, Debug)]
pub(super) struct Forest {
    blocks: Vec<Block>,
    buffers: usize,
    /// Numbers of blocks that are no longer in use.
    spare: Vec<u32>,
    /// The roots that start or end at each column.
    starting: Vec<Vec<u32>>,
    ending: Vec<Vec<u32>>,
    roots: Vec<u32>,
    /// The place of each block among the roots.
    place: Vec<u32>,
    load: Vec<u64>,
    capacity: u64,
    /// What was done since the last `keep`.
    log: Vec<Deed>,
}

impl Forest {
    /// A forest of buffers, each `(start, end, size)`, over `columns` columns.
    pub(super) fn new(buffers: &[(u32, u32, u64)], columns: usize, capacity: u64) -> Self {
        let single = Join { shape: Shape::Single, parts: [0; 5] };
        let block = |&(start, end, size): &(u32, u32, u64)| Block { start, end, size, join: single };
        let mut this = Self {
            blocks: buffers.iter().map(block).collect(),
            buffers: buffers.len(),
            spare: Vec::new(),
            starting: vec![Vec::new(); columns + 1],
            ending: vec![Vec::new(); columns + 1],
            roots: Vec::new(),
            place: vec![u32::MAX; buffers.len()],
            load: column_load(buffers, columns),
            capacity,
            log: Vec::new(),
        };
        (0..).take(buffers.len()).for_each(|id| this.plant_root(id));
        this
    }

    pub(super) fn block(&self, id: u32) -> Block {
        self.blocks[id as usize]
    }

    /// Whether a number belongs to a buffer.
    pub(super) fn is_buffer(&self, id: u32) -> bool {
        (id as usize) < self.buffers
    }

    pub(super) fn is_root(&self, id: u32) -> bool {
        self.place[id as usize] != u32::MAX
    }

    pub(super) fn roots(&self) -> &[u32] {
        &self.roots
    }

    pub(super) fn roots_starting(&self, column: u32) -> &[u32] {
        &self.starting[column as usize]
    }

    pub(super) fn roots_ending(&self, column: u32) -> &[u32] {
        &self.ending[column as usize]
    }

    fn plant_root(&mut self, id: u32) {
        let Block { start, end, .. } = self.block(id);
        self.starting[start as usize].push(id);
        self.ending[end as usize].push(id);
        self.place[id as usize] = as_number(self.roots.len());
        self.roots.push(id);
    }

    fn uproot_block(&mut self, id: u32) {
        let Block { start, end, .. } = self.block(id);
        self.starting[start as usize].retain(|&other| other != id);
        self.ending[end as usize].retain(|&other| other != id);
        let at = std::mem::replace(&mut self.place[id as usize], u32::MAX);
        self.roots.swap_remove(at as usize);
        if let Some(&moved) = self.roots.get(at as usize) {
            self.place[moved as usize] = at;
        }
    }

    /// What the capacity leaves for waste beside a root, at most: at its first and last column.
    pub(super) fn room_beside(&self, id: u32) -> u64 {
        let Block { start, end, .. } = self.block(id);
        let load = self.load[start as usize].max(self.load[end as usize - 1]);
        self.capacity.saturating_sub(load)
    }

    /// The load of all roots.
    pub(super) fn highest_load(&self) -> u64 {
        self.load.iter().copied().max().unwrap_or(0)
    }

    fn join_sizes(&self, join: &Join) -> [u64; 5] {
        let mut sizes = [0; 5];
        for (size, &part) in sizes.iter_mut().zip(join.parts()) {
            *size = self.block(part).size;
        }
        sizes
    }

    /// The size of the block that a join makes.
    pub(super) fn joined_size(&self, join: &Join) -> u64 {
        let [a, b, c, d, e] = self.join_sizes(join);
        match join.shape {
            Shape::Single => 0,
            Shape::Stack => a + b,
            Shape::Row => a.max(b),
            Shape::Wheel => (a + d).max(a + e + c).max(b + c),
        }
    }

    /// The load that a join adds over the live range of each part.
    pub(super) fn join_waste(&self, join: &Join) -> [u64; 5] {
        let [a, b, c, d, e] = self.join_sizes(join);
        let size = self.joined_size(join);
        match join.shape {
            Shape::Single | Shape::Stack => [0; 5],
            Shape::Row => [size - a, size - b, 0, 0, 0],
            Shape::Wheel => [0, size - b - c, 0, size - a - d, size - a - e - c],
        }
    }

    /// The offset of each part in the block of a join.
    fn offsets_of(&self, join: &Join) -> [u64; 5] {
        let [a, b, _, _, e] = self.join_sizes(join);
        match join.shape {
            Shape::Single | Shape::Row => [0; 5],
            Shape::Stack => [0, a, 0, 0, 0],
            Shape::Wheel => [0, 0, b.max(a + e), a, a],
        }
    }

    /// Makes roots into one block if the capacity allows it. Returns the block, and the number of columns looked at.
    pub(super) fn join_roots(&mut self, join: Join) -> (Option<u32>, u64) {
        let waste = self.join_waste(&join);
        let mut looks = 1;
        for (&part, &waste) in join.parts().iter().zip(&waste) {
            let columns = self.block_columns(part);
            if waste > 0 {
                looks += columns.len() as u64;
                if self.load[columns].iter().any(|load| load + waste > self.capacity) {
                    return (None, looks);
                }
            }
        }
        let parts = join.parts();
        let start = parts.iter().map(|&part| self.block(part).start).min().unwrap_or(0);
        let end = parts.iter().map(|&part| self.block(part).end).max().unwrap_or(0);
        let block = Block { start, end, size: self.joined_size(&join), join };
        let id = self.spare.pop().unwrap_or_else(|| as_number(self.blocks.len()));
        if id as usize == self.blocks.len() {
            self.blocks.push(block);
            self.place.push(u32::MAX);
        } else {
            self.blocks[id as usize] = block;
        }
        self.put_together(id);
        self.log.push(Deed::Joined(id));
        (Some(id), looks)
    }

    /// Makes a root into its parts again and adds them to `parts`; false if it is a buffer.
    pub(super) fn split_root(&mut self, id: u32, parts: &mut Vec<u32>) -> bool {
        if self.is_buffer(id) {
            return false;
        }
        self.take_apart(id);
        parts.extend_from_slice(self.block(id).join.parts());
        self.log.push(Deed::Split(id));
        true
    }

    /// Takes back everything since the last `keep`.
    pub(super) fn undo_changes(&mut self) {
        while let Some(deed) = self.log.pop() {
            match deed {
                Deed::Joined(id) => {
                    self.take_apart(id);
                    self.spare.push(id);
                }
                Deed::Split(id) => self.put_together(id),
            }
        }
    }

    /// Makes everything that was done final.
    pub(super) fn keep_changes(&mut self) {
        for deed in self.log.drain(..) {
            if let Deed::Split(id) = deed {
                self.spare.push(id);
            }
        }
    }

    fn put_together(&mut self, id: u32) {
        let join = self.block(id).join;
        let waste = self.join_waste(&join);
        for (&part, &waste) in join.parts().iter().zip(&waste) {
            let columns = self.block_columns(part);
            self.load[columns].iter_mut().filter(|_| waste > 0).for_each(|load| *load += waste);
            self.uproot_block(part);
        }
        self.plant_root(id);
    }

    fn take_apart(&mut self, id: u32) {
        let join = self.block(id).join;
        let waste = self.join_waste(&join);
        self.uproot_block(id);
        for (&part, &waste) in join.parts().iter().zip(&waste) {
            let columns = self.block_columns(part);
            self.load[columns].iter_mut().filter(|_| waste > 0).for_each(|load| *load -= waste);
            self.plant_root(part);
        }
    }

    fn block_columns(&self, id: u32) -> std::ops::Range<usize> {
        let Block { start, end, .. } = self.block(id);
        start as usize..end as usize
    }

    /// The offset of every buffer, if `offsets` are those of the roots.
    pub(super) fn spread_offsets(&self, offsets: &[u64]) -> Vec<u64> {
        let mut all = vec![0; self.buffers];
        let mut open: Vec<(u32, u64)> = self.roots.iter().copied().zip(offsets.iter().copied()).collect();
        while let Some((id, offset)) = open.pop() {
            if self.is_buffer(id) {
                all[id as usize] = offset;
                continue;
            }
            let join = self.block(id).join;
            let within = self.offsets_of(&join);
            open.extend(join.parts().iter().zip(&within).map(|(&part, more)| (part, offset + more)));
        }
        all
    }
}

fn column_load(buffers: &[(u32, u32, u64)], columns: usize) -> Vec<u64> {
    let (mut begun, mut ended) = (vec![0; columns + 1], vec![0; columns + 1]);
    for &(start, end, size) in buffers {
        begun[start as usize] += size;
        ended[end as usize] += size;
    }
    let mut live = 0;
    let column = |(begun, ended): (u64, u64)| {
        live = live + begun - ended;
        live
    };
    begun.into_iter().zip(ended).map(column).collect()
}

fn as_number(index: usize) -> u32 {
    u32::try_from(index).expect("fewer than 2^32 blocks")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sizes that leave nothing empty, and those that need a capacity of 7.
    fn wheel(centre: u64) -> Vec<(u32, u32, u64)> {
        vec![(0, 2, 2), (2, 3, 4), (1, 3, 2), (0, 1, 4), (1, 2, centre)]
    }

    #[test]
    fn a_wheel_without_waste_is_a_block() {
        let mut forest = Forest::new(&wheel(2), 3, 6);
        let (block, _) = forest.join_roots(Join::wheel_of([0, 1, 2, 3, 4]));
        let block = forest.block(block.expect("nothing is wasted"));
        assert_eq!((block.start, block.end, block.size), (0, 3, 6));
        assert_eq!(forest.spread_offsets(&[10]), [10, 10, 14, 12, 12]);
    }

    #[test]
    fn the_capacity_forbids_waste() {
        let join = Join::wheel_of([0, 1, 2, 3, 4]);
        assert_eq!(Forest::new(&wheel(3), 3, 6).join_roots(join).0, None);
        assert!(Forest::new(&wheel(3), 3, 7).join_roots(join).0.is_some());
        let row = [(0, 1, 3), (1, 2, 5), (0, 1, 2)];
        assert_eq!(Forest::new(&row, 2, 6).join_roots(Join::row_of(0, 1)).0, None);
        assert!(Forest::new(&row, 2, 7).join_roots(Join::row_of(0, 1)).0.is_some());
    }

    #[test]
    fn undo_restores_blocks_and_load() {
        let mut forest = Forest::new(&[(0, 1, 3), (1, 2, 5), (0, 2, 2)], 2, 9);
        let (row, _) = forest.join_roots(Join::row_of(0, 1));
        forest.keep_changes();
        let row = row.expect("there is room");
        let (before, load) = (forest.roots.clone(), forest.load.clone());
        let mut parts = Vec::new();
        assert!(forest.split_root(row, &mut parts) && !forest.split_root(0, &mut parts));
        assert_eq!((parts.as_slice(), forest.load[0]), (&[0, 1][..], 5));
        forest.undo_changes();
        let mut after = forest.roots.clone();
        after.sort_unstable();
        let mut before = before;
        before.sort_unstable();
        assert_eq!((after, forest.load.clone()), (before, load));
        let (whole, _) = forest.join_roots(Join::stack_of(row, 2));
        assert_eq!(forest.block(whole.expect("stacks waste nothing")).size, 7);
        assert_eq!(forest.roots().len(), 1);
    }
}
