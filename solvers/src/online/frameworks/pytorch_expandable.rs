//! `PyTorch`'s caching allocator with `expandable_segments`: few ranges of addresses that grow page by page.
//!
//! Each stream has one range for small blocks (pages of 2 MiB) and one for large ones (pages of 20 MiB), with more
//! addresses than the device has memory. A request takes the best free block; a block that can grow counts with the
//! size it could reach. If no block is large enough, pages are mapped behind the lowest block (or hole) that becomes
//! large enough by that. Every remainder of 512 bytes or more is split off.
//!
//! ```text
//!   range  | in use | free | in use | free |   no memory yet   ...
//!                                    `---> grows by whole pages
//! ```
//!
//! # References
//!
//! 1. `PyTorch`, `c10/cuda/CUDACachingAllocator.cpp`, `ExpandableSegment` (2023).
//!
//! # Complexity
//!
//! O(log n) for a request and for a free among n free blocks. O(n) if the last block could grow and is compared with
//! all others, or if pages were unmapped and many holes are examined.
//!
//! # Deviations from the original
//!
//! As for `pytorch-caching`. If the device does not report its memory, ranges have 1 TiB (the original: 1.125 times the
//! device's memory), or more for larger requests.

use std::collections::{BTreeMap, BTreeSet};

use planlab_dsa::{Address, Backing, Refused, Stream};

use super::pytorch::{BySize, LARGE_SEGMENT, SMALL_SEGMENT, pool_of};
use crate::online::blocks::{Block, BlockId, Heap, State, UNIT, pool};

/// The size in bytes of a range if the device does not report its memory.
const RANGE: u64 = 1 << 40;

/// Ranges that grow by pages; key `pytorch-caching/expandable`.
///
/// ```
/// use planlab_dsa::{Bytes, OnlineAllocator, Simulated, Stream};
/// use planlab_solvers::online::PytorchExpandable;
///
/// let mut pool = PytorchExpandable::new(Box::new(Simulated::new()));
/// let block = pool.alloc(Bytes::new(15 << 20), Stream::default())?;
/// pool.free(block)?;
/// assert_eq!(pool.alloc(Bytes::new(30 << 20), Stream::default())?, block); // the same range, one page more
/// assert_eq!(pool.usage().reserved, Bytes::new(40 << 20));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct PytorchExpandable {
    heap: Heap<BySize>,
    /// Blocks without memory, by pool and address.
    unmapped: BTreeMap<(u64, u64), BlockId>,
    /// The bases of the ranges, by pool and base.
    ranges: BTreeSet<(u64, u64)>,
}

/// The page size of a pool, in bytes.
const fn page_size(pool: u64) -> u64 {
    if pool.is_multiple_of(2) { SMALL_SEGMENT } else { LARGE_SEGMENT }
}

impl PytorchExpandable {
    /// An empty pool over a backing that can reserve addresses; over another, it is always out of memory.
    #[must_use]
    pub fn new(backing: Box<dyn Backing>) -> Self {
        Self {
            heap: Heap::new(backing, BySize::default()),
            unmapped: BTreeMap::new(),
            ranges: BTreeSet::new(),
        }
    }

    /// The best free block, removed from the index.
    fn search_pool(&mut self, rounded: u64, pool: u64) -> Option<BlockId> {
        let mut best: Option<(u64, BlockId)> = None;
        let mut steps = 1;
        for (size, id) in self.heap.index.at_least(rounded, pool) {
            let reach = size + self.room_behind(id);
            if best.is_some_and(|(least, _)| reach >= least) {
                break;
            }
            best = Some((reach, id));
            steps += 1;
            if reach == size {
                break;
            }
        }
        self.heap.search_steps += steps;
        let (_, id) = best?;
        self.heap.take_from_index(id);
        Some(id)
    }

    /// Bytes that could be mapped directly behind a block.
    fn room_behind(&self, id: BlockId) -> u64 {
        let next = self.heap.block(id).next.map(|next| self.heap.block(next));
        next.filter(|next| next.state == State::Unmapped).map_or(0, |next| next.size)
    }

    /// The lowest block that becomes large enough when pages are mapped; a new range if there is no such block.
    fn expand_segment(&mut self, rounded: u64, pool: u64) -> Result<BlockId, Refused> {
        let first = match self.find_expandable(rounded, pool) {
            Some(first) => first,
            None => self.new_range(rounded, pool)?,
        };
        self.fill_from(first, rounded)
    }

    fn find_expandable(&mut self, rounded: u64, pool: u64) -> Option<BlockId> {
        let holes = self.unmapped.range((pool, 0)..=(pool, u64::MAX)).map(|(_, &id)| id);
        let starts = holes.map(|hole| {
            let before = self.heap.block(hole).prev;
            before.filter(|&before| self.heap.block(before).state == State::Free).unwrap_or(hole)
        });
        let mut steps = 0;
        let found = starts.inspect(|_| steps += 1).find(|&start| self.reaches_size(start, rounded));
        self.heap.search_steps += steps;
        found
    }

    /// Whether the blocks from `start` up to the next one in use have `wanted` addresses in all.
    fn reaches_size(&self, start: BlockId, wanted: u64) -> bool {
        let (mut bytes, mut at) = (0, Some(start));
        while let Some(block) = at.map(|id| self.heap.block(id)).filter(|block| block.state != State::InUse) {
            bytes += block.size;
            if bytes >= wanted {
                return true;
            }
            at = block.next;
        }
        false
    }

    fn new_range(&mut self, rounded: u64, pool: u64) -> Result<BlockId, Refused> {
        let usual = self.heap.device.device_memory().map_or(RANGE, |memory| {
            let total = memory.total.get();
            total.saturating_add(total / 8)
        });
        let size = usual.max(rounded).checked_next_multiple_of(page_size(pool)).ok_or(Refused)?;
        let base = self.heap.device.reserve_pages(size, page_size(pool))?;
        let id = self.heap.adopt_range(base, size, pool, State::Unmapped);
        self.unmapped.insert((pool, base), id);
        self.ranges.insert((pool, base));
        Ok(id)
    }

    /// Maps pages from `start` on until it has `wanted` bytes, and returns it, removed from the index. If the device
    /// has no more memory, the pages mapped so far stay, free.
    fn fill_from(&mut self, start: BlockId, wanted: u64) -> Result<BlockId, Refused> {
        let id = start;
        if self.heap.block(id).state == State::Unmapped {
            self.map_pages(id, wanted)?;
        } else {
            self.heap.take_from_index(id);
        }
        while self.heap.block(id).size < wanted {
            let next = self.heap.block(id).next.expect("the blocks behind it reach far enough");
            if self.heap.block(next).state == State::Free {
                self.heap.take_from_index(next);
            } else if let Err(refused) = self.map_pages(next, wanted - self.heap.block(id).size) {
                let id = self.heap.join_neighbours(id);
                self.heap.add_to_index(id);
                return Err(refused);
            }
            self.heap.absorb_next(id);
        }
        Ok(self.heap.join_neighbours(id))
    }

    /// Maps the first pages of a block without memory: enough for `wanted` bytes, or all. The mapped part keeps the
    /// number of the block; it is not in the index.
    fn map_pages(&mut self, id: BlockId, wanted: u64) -> Result<(), Refused> {
        let Block { base, size, pool, .. } = *self.heap.block(id);
        let bytes = wanted.checked_next_multiple_of(page_size(pool)).ok_or(Refused)?.min(size);
        self.heap.device.map_memory(base, bytes)?;
        self.unmapped.remove(&(pool, base));
        if bytes < size {
            let rest = self.heap.split_block(id, bytes);
            self.unmapped.insert((pool, base + bytes), rest);
        }
        self.heap.set_state(id, State::Free);
        Ok(())
    }

    /// Unmaps the whole pages of a free block.
    fn unmap_pages(&mut self, mut id: BlockId) {
        let Block { base, pool, .. } = *self.heap.block(id);
        let range = self.ranges.range((pool, 0)..=(pool, base)).next_back();
        let range = range.map(|&(_, base)| base).expect("every block lies in a range");
        let page = page_size(pool);
        let first = range + (base - range).next_multiple_of(page);
        let last = range + (self.heap.block(id).end() - range) / page * page;
        if first >= last {
            return;
        }
        self.heap.take_from_index(id);
        if base < first {
            let rest = self.heap.split_block(id, first - base);
            self.heap.add_to_index(id);
            id = rest;
        }
        if last < self.heap.block(id).end() {
            let rest = self.heap.split_block(id, last - first);
            self.heap.add_to_index(rest);
        }
        self.heap.device.unmap_memory(first, last - first);
        self.heap.set_state(id, State::Unmapped);
        self.join_unmapped(id);
    }

    /// Joins a block without memory with such neighbours.
    fn join_unmapped(&mut self, mut id: BlockId) {
        let Block { pool, prev, next, .. } = *self.heap.block(id);
        let is_unmapped = |at: &BlockId| self.heap.block(*at).state == State::Unmapped;
        let (before, after) = (prev.filter(is_unmapped), next.filter(is_unmapped));
        if let Some(after) = after {
            self.unmapped.remove(&(pool, self.heap.block(after).base));
            self.heap.absorb_next(id);
        }
        if let Some(before) = before {
            self.heap.absorb_next(before);
            id = before;
        }
        self.unmapped.insert((pool, self.heap.block(id).base), id);
    }

    fn serve(&mut self, size: u64, stream: Stream) -> Result<Address, Refused> {
        let rounded = size.checked_next_multiple_of(UNIT).ok_or(Refused)?;
        let pool = pool_of(rounded, stream);
        let id = match self.search_pool(rounded, pool) {
            Some(id) => id,
            None => self.expand_segment(rounded, pool).or_else(|Refused| {
                self.unmap_free();
                self.expand_segment(rounded, pool)
            })?,
        };
        Ok(self.heap.hand_out_part(id, rounded))
    }

    fn unmap_free(&mut self) {
        let free: Vec<BlockId> = self.heap.index.0.values().copied().collect();
        free.into_iter().for_each(|id| self.unmap_pages(id));
    }
}

pool!(PytorchExpandable, heap, unmap_free);

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use planlab_dsa::{Bytes, Metered, OnlineAllocator, Simulated};

    use super::*;

    const MIB: u64 = 1 << 20;

    fn alloc(pool: &mut PytorchExpandable, size: u64) -> Address {
        pool.alloc(Bytes::new(size), Stream::default()).expect("no limit")
    }

    fn reserved(pool: &PytorchExpandable) -> u64 {
        pool.usage().reserved.get() / MIB
    }

    #[test]
    fn the_free_end_of_a_range_grows() {
        let mut pool = PytorchExpandable::new(Box::new(Simulated::new()));
        let low = alloc(&mut pool, 5 * MIB);
        let high = alloc(&mut pool, 30 * MIB);
        assert_eq!((high.get() - low.get(), reserved(&pool)), (5 * MIB, 40));
        alloc(&mut pool, 1);
        assert_eq!(reserved(&pool), 42);
    }

    #[test]
    fn whole_pages_are_unmapped_and_the_hole_is_filled_again() {
        let mut pool = PytorchExpandable::new(Box::new(Simulated::new()));
        let blocks = [10, 60, 10].map(|size| alloc(&mut pool, size * MIB));
        pool.free(blocks[1]).expect("live");
        pool.release_cached();
        // Of [10, 70) MiB the pages [20, 60) are unmapped; the range is 80 MiB, all in use at its end.
        assert_eq!(reserved(&pool), 40);
        let again = alloc(&mut pool, 50 * MIB);
        assert_eq!((again, reserved(&pool)), (blocks[1], 80));
    }

    #[test]
    fn a_block_that_cannot_grow_is_taken_before_one_that_can() {
        let mut pool = PytorchExpandable::new(Box::new(Simulated::new()));
        let hole = alloc(&mut pool, 15 * MIB);
        let wall = alloc(&mut pool, 15 * MIB);
        pool.free(hole).expect("live");
        // The end of the range has 10 free MiB, the hole 15.
        assert_eq!(alloc(&mut pool, 8 * MIB), hole);
        pool.free(wall).expect("live");
        assert_eq!(reserved(&pool), 40);
    }

    /// A backing that maps and unmaps only as promised: whole pages from the base of the range.
    struct Strict {
        memory: Simulated,
        /// Base and page of each range.
        ranges: BTreeMap<u64, u64>,
        /// Page counts of the calls that mapped, and of those that unmapped.
        seen: Arc<Mutex<[Vec<u64>; 2]>>,
    }

    impl Strict {
        fn pages(&self, at: Address, size: Bytes) -> u64 {
            let (base, page) = self.ranges.range(..=at.get()).next_back().expect("a range");
            let is_whole = |bytes: u64| bytes.is_multiple_of(*page);
            assert!(is_whole(at.get() - base) && is_whole(size.get()), "{at} {size}");
            size.get() / page
        }
    }

    impl Backing for Strict {
        fn acquire(&mut self, size: Bytes) -> Result<Address, Refused> {
            self.memory.acquire(size)
        }

        fn release(&mut self, base: Address) {
            self.memory.release(base);
        }

        fn reserve_pages(&mut self, size: Bytes, page: Bytes) -> Result<Address, Refused> {
            let base = self.memory.reserve(size)?;
            self.ranges.insert(base.get(), page.get());
            Ok(base)
        }

        fn map(&mut self, at: Address, size: Bytes) -> Result<(), Refused> {
            self.memory.map(at, size)?;
            let pages = self.pages(at, size);
            self.seen.lock().expect("nobody panics")[0].push(pages);
            Ok(())
        }

        fn unmap(&mut self, at: Address, size: Bytes) -> Bytes {
            let pages = self.pages(at, size);
            self.seen.lock().expect("nobody panics")[1].push(pages);
            self.memory.unmap(at, size)
        }
    }

    #[test]
    fn a_backing_is_told_the_pages_and_may_take_memory_by_them() {
        let seen = Arc::new(Mutex::new([Vec::new(), Vec::new()]));
        let strict = Strict { memory: Simulated::new(), ranges: BTreeMap::new(), seen: Arc::clone(&seen) };
        // A meter between the two, as in replays, forwards every call.
        let (metered, meter) = Metered::new(strict);
        let mut pool = PytorchExpandable::new(Box::new(metered));
        alloc(&mut pool, 1);
        let blocks = [10, 60, 10].map(|size| alloc(&mut pool, size * MIB));
        pool.free(blocks[1]).expect("live");
        pool.release_cached();
        // [20, 80) MiB were mapped at once; of these, the pages [20, 60) are unmapped.
        assert_eq!(*seen.lock().expect("nobody panics"), [vec![1, 1, 3], vec![2]]);
        let held = [meter.take_most(), meter.take_most()].map(|bytes| bytes.get() / MIB);
        assert_eq!((held, reserved(&pool)), ([82, 42], 42));
    }
}
