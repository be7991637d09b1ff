//! Segments cut into blocks, with the free ones in an index.
//!
//! Neighbouring blocks of a segment are linked. A freed block joins its free neighbours, the next one first. Blocks are
//! never joined across segments.
//!
//! ```text
//!   segment  |  in use  | free |   in use   |  free  |
//!                        `-> index           `-> index
//! ```

use std::num::NonZeroU32;

use planlab_dsa::{Address, Backing, NotLive, Refused, Usage};
use rustc_hash::FxHashMap;

use super::device::Device;

/// The number of a block; an `Option` of it takes no more space.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct BlockId(NonZeroU32);

impl BlockId {
    fn from_index(index: usize) -> Self {
        let number = u32::try_from(index + 1).ok().and_then(NonZeroU32::new);
        Self(number.expect("fewer than 2^32 blocks"))
    }

    pub(crate) const fn index(self) -> usize {
        self.0.get() as usize - 1
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    InUse,
    Free,
    /// Addresses without memory.
    Unmapped,
}

/// A part of a segment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Block {
    pub(crate) base: u64,
    pub(crate) size: u64,
    /// Blocks of different pools are never exchanged.
    pub(crate) pool: u64,
    pub(crate) state: State,
    /// The neighbours inside the segment.
    pub(crate) prev: Option<BlockId>,
    pub(crate) next: Option<BlockId>,
}

impl Block {
    pub(crate) const fn end(&self) -> u64 {
        self.base + self.size
    }

    /// Whether it fills its segment.
    pub(crate) const fn is_whole(&self) -> bool {
        self.prev.is_none() && self.next.is_none()
    }
}

/// An index of the free blocks.
pub(crate) trait Index {
    fn insert_block(&mut self, id: BlockId, block: &Block);
    fn remove_block(&mut self, id: BlockId, block: &Block);
}

pub(crate) struct Heap<I> {
    pub(crate) device: Device,
    pub(crate) index: I,
    pub(crate) search_steps: u64,
    blocks: Vec<Block>,
    /// Numbers of blocks that no longer exist.
    spare: Vec<BlockId>,
    /// Blocks in use, by address.
    live: FxHashMap<u64, BlockId>,
    used: u64,
}

impl<I: Index> Heap<I> {
    pub(crate) fn new(backing: Box<dyn Backing>, index: I) -> Self {
        Self {
            device: Device::new(backing),
            index,
            search_steps: 0,
            blocks: Vec::new(),
            spare: Vec::new(),
            live: FxHashMap::default(),
            used: 0,
        }
    }

    pub(crate) fn block(&self, id: BlockId) -> &Block {
        &self.blocks[id.index()]
    }

    fn block_mut(&mut self, id: BlockId) -> &mut Block {
        &mut self.blocks[id.index()]
    }

    pub(crate) fn usage(&self) -> Usage {
        self.device.usage_with(self.used, self.search_steps)
    }

    /// A new segment as one free block that is not yet in the index.
    pub(crate) fn acquire_segment(&mut self, size: u64, pool: u64) -> Result<BlockId, Refused> {
        let base = self.device.acquire_segment(size)?;
        Ok(self.adopt_range(base, size, pool, State::Free))
    }

    /// The same; if the device has no memory, gives whole free segments back and asks again.
    pub(crate) fn acquire_or_trim(&mut self, size: u64, pool: u64) -> Result<BlockId, Refused> {
        self.acquire_segment(size, pool).or_else(|Refused| {
            self.release_whole();
            self.acquire_segment(size, pool)
        })
    }

    /// A range of addresses as one block that is not yet in the index.
    pub(crate) fn adopt_range(&mut self, base: u64, size: u64, pool: u64, state: State) -> BlockId {
        self.add_block(Block { base, size, pool, state, prev: None, next: None })
    }

    fn add_block(&mut self, block: Block) -> BlockId {
        match self.spare.pop() {
            Some(id) => {
                *self.block_mut(id) = block;
                id
            }
            None => {
                self.blocks.push(block);
                BlockId::from_index(self.blocks.len() - 1)
            }
        }
    }

    pub(crate) fn add_to_index(&mut self, id: BlockId) {
        self.index.insert_block(id, &self.blocks[id.index()]);
    }

    pub(crate) fn take_from_index(&mut self, id: BlockId) {
        self.index.remove_block(id, &self.blocks[id.index()]);
    }

    /// Hands out a free block that is not in the index.
    pub(crate) fn hand_out(&mut self, id: BlockId) -> Address {
        let block = self.block_mut(id);
        block.state = State::InUse;
        let (base, size) = (block.base, block.size);
        self.live.insert(base, id);
        self.used += size;
        Address::new(base)
    }

    /// The same, for its first `size` bytes only: the rest, if any, becomes free.
    pub(crate) fn hand_out_part(&mut self, id: BlockId, size: u64) -> Address {
        if self.block(id).size > size {
            let rest = self.split_block(id, size);
            self.add_to_index(rest);
        }
        self.hand_out(id)
    }

    /// Cuts a block after `size` bytes and returns the upper part, in the same state; does not update the index.
    pub(crate) fn split_block(&mut self, id: BlockId, size: u64) -> BlockId {
        let whole = *self.block(id);
        let rest = Block { base: whole.base + size, size: whole.size - size, prev: Some(id), ..whole };
        let rest = self.add_block(rest);
        if let Some(next) = whole.next {
            self.block_mut(next).prev = Some(rest);
        }
        let block = self.block_mut(id);
        block.size = size;
        block.next = Some(rest);
        rest
    }

    /// Joins a block with its next neighbour; does not update the index.
    pub(crate) fn absorb_next(&mut self, id: BlockId) {
        let Some(next) = self.block(id).next else { return };
        let gone = *self.block(next);
        let block = self.block_mut(id);
        block.size += gone.size;
        block.next = gone.next;
        if let Some(after) = gone.next {
            self.block_mut(after).prev = Some(id);
        }
        self.recycle_number(next);
    }

    /// Frees the block at an address, and joins it with its free neighbours.
    pub(crate) fn free_block(&mut self, address: Address) -> Result<(), NotLive> {
        let id = self.live.remove(&address.get()).ok_or(NotLive { address })?;
        self.used -= self.block(id).size;
        self.block_mut(id).state = State::Free;
        let id = self.join_neighbours(id);
        self.add_to_index(id);
        Ok(())
    }

    /// Joins a free block that is not in the index with its free neighbours.
    pub(crate) fn join_neighbours(&mut self, id: BlockId) -> BlockId {
        if let Some(next) = self.free_neighbour(self.block(id).next) {
            self.take_from_index(next);
            self.absorb_next(id);
        }
        match self.free_neighbour(self.block(id).prev) {
            Some(prev) => {
                self.take_from_index(prev);
                self.absorb_next(prev);
                prev
            }
            None => id,
        }
    }

    fn free_neighbour(&self, neighbour: Option<BlockId>) -> Option<BlockId> {
        neighbour.filter(|&id| self.block(id).state == State::Free)
    }

    pub(crate) fn set_state(&mut self, id: BlockId, state: State) {
        self.block_mut(id).state = state;
    }

    /// Gives back every free block that is a whole segment.
    pub(crate) fn release_whole(&mut self) {
        for id in (0..self.blocks.len()).map(BlockId::from_index) {
            let block = *self.block(id);
            // A removed block has size 0.
            if block.size > 0 && block.state == State::Free && block.is_whole() {
                self.take_from_index(id);
                self.device.release_segment(block.base, block.size);
                self.recycle_number(id);
            }
        }
    }

    fn recycle_number(&mut self, id: BlockId) {
        self.block_mut(id).size = 0;
        self.spare.push(id);
    }
}
