//! The pool of `CuPy` 4 and later: best fit, found in a sorted list of the existing sizes.
//!
//! It splits and joins like `cupy2rc1-pool`, but keeps an arena for each stream (a block is reused only on the stream
//! of its allocation) and a list of the bins used so far. A request finds its size by bisection and skips sizes whose
//! bins are empty. If it has to skip 512 or more, the empty ones are removed.
//!
//! # References
//!
//! 1. `CuPy` 4.0, `cupy/cuda/memory.pyx` (2018).
//!
//! # Complexity
//!
//! A request costs O(log s + e) for s sizes and e empty ones that follow, at most 511 of them more than once; a free
//! that adds a new size costs O(s).
//!
//! # Deviations from the original
//!
//! As for `cupy2rc1-pool`; there is no limit on requests.

use std::collections::BTreeMap;

use planlab_dsa::{Address, Backing, Refused, Stream};

use crate::online::blocks::{Block, BlockId, Heap, Index, Lists, UNIT, pool};

/// Empty sizes that a request may skip before they are removed.
const COMPACTION: usize = 512;

/// Best fit by a sparse index of sizes; key `cupy4-pool`.
///
/// ```
/// use planlab_dsa::{Bytes, OnlineAllocator, Simulated, Stream};
/// use planlab_solvers::online::Cupy4Pool;
///
/// let mut pool = Cupy4Pool::new(Box::new(Simulated::new()));
/// let block = pool.alloc(Bytes::new(4096), Stream::new(1))?;
/// pool.free(block)?;
/// assert_ne!(pool.alloc(Bytes::new(512), Stream::new(2))?, block); // another stream's
/// assert_eq!(pool.alloc(Bytes::new(512), Stream::new(1))?, block);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Cupy4Pool {
    heap: Heap<Arenas>,
}

#[derive(Default)]
struct Arenas {
    streams: BTreeMap<u64, Arena>,
    lists: Lists,
}

/// The bins of one stream.
#[derive(Default)]
struct Arena {
    /// Sizes that have, or had, a free block, ascending.
    sizes: Vec<u64>,
    /// The head of each size's list.
    heads: Vec<Option<BlockId>>,
}

impl Arena {
    /// The index of a size, which is added if it is missing.
    fn place(&mut self, size: u64) -> usize {
        self.sizes.binary_search(&size).unwrap_or_else(|place| {
            self.sizes.insert(place, size);
            self.heads.insert(place, None);
            place
        })
    }

    /// A block of the least size from `size` up, and the number of sizes examined.
    fn search(&mut self, size: u64) -> (Option<BlockId>, usize) {
        let heads = &self.heads[self.sizes.partition_point(|&other| other < size)..];
        let empty = heads.iter().take_while(|head| head.is_none()).count();
        let found = heads.get(empty).copied().flatten();
        if empty >= COMPACTION {
            self.compact();
        }
        (found, empty + 1)
    }

    fn compact(&mut self) {
        let all = std::mem::take(&mut self.sizes).into_iter().zip(std::mem::take(&mut self.heads));
        (self.sizes, self.heads) = all.filter(|(_, head)| head.is_some()).unzip();
    }
}

impl Index for Arenas {
    fn insert_block(&mut self, id: BlockId, block: &Block) {
        let arena = self.streams.entry(block.pool).or_default();
        let place = arena.place(block.size);
        self.lists.push_head(&mut arena.heads[place], id);
    }

    fn remove_block(&mut self, id: BlockId, block: &Block) {
        let arena = self.streams.entry(block.pool).or_default();
        let place = arena.place(block.size);
        self.lists.unlink_block(&mut arena.heads[place], id);
    }
}

impl Cupy4Pool {
    /// An empty pool over a backing.
    #[must_use]
    pub fn new(backing: Box<dyn Backing>) -> Self {
        Self { heap: Heap::new(backing, Arenas::default()) }
    }

    fn search_arenas(&mut self, size: u64, pool: u64) -> Option<BlockId> {
        let arena = self.heap.index.streams.entry(pool).or_default();
        let (found, steps) = arena.search(size);
        self.heap.search_steps += steps as u64;
        found
    }

    fn serve(&mut self, size: u64, stream: Stream) -> Result<Address, Refused> {
        let rounded = size.checked_next_multiple_of(UNIT).ok_or(Refused)?;
        let pool = u64::from(stream.get());
        if let Some(id) = self.search_arenas(rounded, pool) {
            self.heap.take_from_index(id);
            return Ok(self.heap.hand_out_part(id, rounded));
        }
        let id = self.heap.acquire_or_trim(rounded, pool)?;
        Ok(self.heap.hand_out(id))
    }

    fn release_and_compact(&mut self) {
        self.heap.release_whole();
        self.heap.index.streams.values_mut().for_each(Arena::compact);
    }
}

pool!(Cupy4Pool, heap, release_and_compact);

#[cfg(test)]
mod tests {
    use planlab_dsa::{Bytes, OnlineAllocator, Simulated};

    use super::*;

    #[test]
    fn empty_sizes_are_thrown_out_once_they_are_in_the_way() {
        let mut pool = Cupy4Pool::new(Box::new(Simulated::new()));
        let alloc = |pool: &mut Cupy4Pool, units: u64| {
            pool.alloc(Bytes::new(units * UNIT), Stream::default()).expect("no limit")
        };
        // Free blocks of 600 sizes, then all but the largest taken again.
        let blocks: Vec<Address> = (1..=600).map(|units| alloc(&mut pool, units)).collect();
        blocks.into_iter().for_each(|block| pool.free(block).expect("live"));
        for units in 1..600 {
            alloc(&mut pool, units);
        }
        let before = pool.usage().search_steps;
        alloc(&mut pool, 1);
        alloc(&mut pool, 1);
        // 599 empty sizes and the one found; then the rest of 599 units, the first in the list.
        assert_eq!(pool.usage().search_steps - before, 601);
    }
}
