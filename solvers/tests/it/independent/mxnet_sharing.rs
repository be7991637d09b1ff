//! MXNet's memory sharing for placement problems, step by step as in its planner's text: every step at which buffers
//! begin is a node of the graph, and they are its outputs.
//!
//! - In place first: an output that a later step reads takes the block of an input of the same size at the input's last
//!   step, if no other buffer uses the block and no other output took it.
//! - The other outputs by size, largest first, the larger id first of equals; each requests a block.
//! - Then blocks whose last user ends with this node become free.
//!
//! A request examines the free blocks of `size` to `size * range` bytes, the smallest first, then smaller ones down to
//! `size / range`, the largest first; the block it takes grows to its size. The order of equal blocks cannot change the
//! total, since they are interchangeable.
//!
//! # References
//!
//! 1. Apache MXNet 0.11, `nnvm/src/pass/plan_memory.cc`.

/// Size, first step, and the step after the last.
type Buffer = (u64, u32, u32);

/// The bytes of all blocks. `in_place` lists pairs of input and output, in the order in which they are tried; with a
/// `range` of 0 no block is shared.
pub(crate) fn total(buffers: &[Buffer], in_place: &[(u32, u32)], range: u64) -> u64 {
    let mut steps: Vec<u32> = buffers.iter().flat_map(|&(_, start, end)| [start, end - 1]).collect();
    steps.sort_unstable();
    steps.dedup();
    let mut pool = Pool { range, blocks: Vec::new(), free: Vec::new(), block_of: vec![None; buffers.len()] };
    for step in steps {
        for &(input, output) in in_place.iter().filter(|pair| buffers[pair.1 as usize].1 == step) {
            pool.take_over(buffers, input as usize, output as usize);
        }
        for id in outputs(buffers, step) {
            if pool.block_of[id].is_none() {
                pool.request(buffers, id);
            }
        }
        for id in (0..buffers.len()).filter(|&id| buffers[id].2 == step + 1) {
            pool.release(id);
        }
    }
    pool.blocks.iter().map(|block| block.bytes).sum()
}

/// The buffers that begin at a step, in the order of their requests.
fn outputs(buffers: &[Buffer], step: u32) -> Vec<usize> {
    let mut found: Vec<usize> = (0..buffers.len()).filter(|&id| buffers[id].1 == step).collect();
    found.sort_by(|&a, &b| buffers[b].0.cmp(&buffers[a].0).then(b.cmp(&a)));
    found
}

struct Block {
    bytes: u64,
    users: u32,
}

struct Pool {
    range: u64,
    blocks: Vec<Block>,
    /// Numbers of free blocks, in the order in which they were freed.
    free: Vec<usize>,
    block_of: Vec<Option<usize>>,
}

impl Pool {
    fn take_over(&mut self, buffers: &[Buffer], input: usize, output: usize) {
        let Some(block) = self.block_of[input] else { return };
        let is_last = buffers[input].2 == buffers[output].1 + 1;
        let is_alike = buffers[input].0 == buffers[output].0;
        let is_read = buffers[output].2 > buffers[output].1 + 1;
        // One user: the input itself. Another output in the block would be a second one.
        if is_last && is_alike && is_read && self.block_of[output].is_none() && self.blocks[block].users == 1
        {
            self.blocks[block].users += 1;
            self.block_of[output] = Some(block);
        }
    }

    fn request(&mut self, buffers: &[Buffer], id: usize) {
        let size = buffers[id].0;
        let block = self.find(size).unwrap_or_else(|| {
            self.blocks.push(Block { bytes: size, users: 0 });
            self.blocks.len() - 1
        });
        self.free.retain(|&other| other != block);
        let taken = &mut self.blocks[block];
        taken.bytes = taken.bytes.max(size);
        taken.users = 1;
        self.block_of[id] = Some(block);
    }

    fn find(&self, size: u64) -> Option<usize> {
        if self.range == 0 {
            return None;
        }
        let bytes = |block: &usize| self.blocks[*block].bytes;
        let mut sorted = self.free.clone();
        sorted.sort_by_key(bytes);
        let above =
            sorted.iter().find(|block| (size..=size.saturating_mul(self.range)).contains(&bytes(block)));
        let below = || sorted.iter().rev().find(|block| (size / self.range..size).contains(&bytes(block)));
        above.or_else(below).copied()
    }

    fn release(&mut self, id: usize) {
        let Some(block) = self.block_of[id] else { return };
        self.blocks[block].users -= 1;
        if self.blocks[block].users == 0 {
            self.free.push(block);
        }
    }
}
