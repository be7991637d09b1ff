//! One range of addresses, with memory up to the highest byte ever in use.
//!
//! The reserved bytes are then the high-water mark: the smallest arena in which the allocator would have served every
//! request. This is the figure to compare with the height of a plan.

use planlab_dsa::{Address, Backing, Refused};

use super::heap::{BlockId, Heap, Index, State};

/// The size of the range in bytes: more than the memory of any device, and small enough for a process to have many such
/// ranges.
pub(crate) const LIMIT: u64 = 1 << 42;

pub(crate) struct OneRegion<I> {
    pub(crate) heap: Heap<I>,
    /// The block at the lowest address, and that address; joined blocks keep the lower one's number.
    first: Option<(BlockId, u64)>,
    /// There is memory below this address.
    top: u64,
}

impl<I: Index> OneRegion<I> {
    pub(crate) fn new(backing: Box<dyn Backing>, index: I) -> Self {
        Self { heap: Heap::new(backing, index), first: None, top: 0 }
    }

    pub(crate) fn open_range(&mut self) -> Result<(), Refused> {
        if self.first.is_none() {
            let base = self.heap.device.reserve_range(LIMIT)?;
            let id = self.heap.adopt_range(base, LIMIT, 0, State::Free);
            self.heap.add_to_index(id);
            self.first = Some((id, base));
            self.top = base;
        }
        Ok(())
    }

    /// Hands out the first `size` bytes of a free block in the index, or all of it if it is smaller; if the device has
    /// no memory for it, nothing changes.
    pub(crate) fn hand_out(&mut self, id: BlockId, size: u64) -> Result<Address, Refused> {
        let block = *self.heap.block(id);
        self.cover_up_to(block.base + size.min(block.size))?;
        self.heap.take_from_index(id);
        Ok(self.heap.hand_out_part(id, size))
    }

    fn cover_up_to(&mut self, end: u64) -> Result<(), Refused> {
        let Some((_, base)) = self.first.filter(|_| end > self.top) else { return Ok(()) };
        let top = self.page_above(base, end);
        self.heap.device.map_memory(self.top, top - self.top)?;
        self.top = top;
        Ok(())
    }

    fn page_above(&self, base: u64, end: u64) -> u64 {
        base + (end - base).next_multiple_of(self.heap.device.page_size())
    }

    /// Removes the memory behind the last block in use.
    pub(crate) fn release_cached(&mut self) {
        let Some((first, base)) = self.first else { return };
        let mut last = first;
        while let Some(next) = self.heap.block(last).next {
            last = next;
        }
        let last = *self.heap.block(last);
        let end = if last.state == State::Free { last.base } else { last.end() };
        let top = self.page_above(base, end);
        if top < self.top {
            self.heap.device.unmap_memory(top, self.top - top);
            self.top = top;
        }
    }
}
