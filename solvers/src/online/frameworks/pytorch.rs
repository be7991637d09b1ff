//! `PyTorch`'s caching allocator for CUDA devices.
//!
//! Requests are rounded up to 512 bytes. Those of at most 1 MiB are served from segments of 2 MiB, larger ones from
//! segments of 20 MiB. Those of 10 MiB or more get their own segments, rounded up to 2 MiB. A request takes the
//! smallest sufficient free block of its stream and kind, the lowest of equals. If the block is larger, the remainder
//! is split off if it is large enough: 512 bytes for small blocks, more than 1 MiB for large ones. A freed block joins
//! its free neighbours; small and large blocks never mix.
//!
//! # References
//!
//! 1. `PyTorch`, `c10/cuda/CUDACachingAllocator.cpp` (constants unchanged from 2019 to 2025).
//!
//! # Complexity
//!
//! O(log n) for a request and for a free among n free blocks.
//!
//! # Deviations from the original
//!
//! There is one caller, so a block is reusable as soon as it is freed (no `record_stream`). There are no callbacks, no
//! collection by age (off by default in the original) and no private pools of graphs. The switches of
//! `PYTORCH_CUDA_ALLOC_CONF` have their defaults: blocks of any size are cut, requests are rounded to 512 bytes alone,
//! and the size of the segments for large blocks is fixed.

use std::collections::BTreeMap;

use planlab_dsa::{Address, Backing, Refused, Stream};

use crate::online::blocks::{Block, BlockId, Heap, Index, UNIT, pool};

/// The largest request that counts as small.
const SMALL: u64 = 1 << 20;

pub(super) const SMALL_SEGMENT: u64 = 2 << 20;

pub(super) const LARGE_SEGMENT: u64 = 20 << 20;

/// From this size on, a request gets its own segment.
const OWN_SEGMENT: u64 = 10 << 20;

/// Such segments are multiples of this.
const OWN_UNIT: u64 = 2 << 20;

const fn cuts_rest(block: u64, request: u64) -> bool {
    let rest = block - request;
    if request <= SMALL { rest >= UNIT } else { rest > SMALL }
}

/// A stream and a kind of block, as one number.
pub(super) fn pool_of(rounded: u64, stream: Stream) -> u64 {
    2 * u64::from(stream.get()) + u64::from(rounded > SMALL)
}

/// Free blocks by pool, size and address.
#[derive(Default)]
pub(super) struct BySize(pub(super) BTreeMap<(u64, u64, u64), BlockId>);

impl Index for BySize {
    fn insert_block(&mut self, id: BlockId, block: &Block) {
        self.0.insert((block.pool, block.size, block.base), id);
    }

    fn remove_block(&mut self, _: BlockId, block: &Block) {
        self.0.remove(&(block.pool, block.size, block.base));
    }
}

impl BySize {
    /// Free blocks of a pool that are large enough, the best fit first.
    pub(super) fn at_least(&self, size: u64, pool: u64) -> impl Iterator<Item = (u64, BlockId)> + '_ {
        let range = self.0.range((pool, size, 0)..=(pool, u64::MAX, u64::MAX));
        range.map(|(&(_, size, _), &id)| (size, id))
    }
}

/// Two kinds of blocks, best fit in each; key `pytorch-caching`.
///
/// ```
/// use planlab_dsa::{Bytes, OnlineAllocator, Simulated, Stream};
/// use planlab_solvers::online::PytorchCaching;
///
/// let mut pool = PytorchCaching::new(Box::new(Simulated::new()));
/// let small = pool.alloc(Bytes::new(1), Stream::default())?;
/// let large = pool.alloc(Bytes::new(3 << 20), Stream::default())?;
/// assert_eq!(pool.usage().reserved, Bytes::new(22 << 20));
/// pool.free(small)?;
/// pool.free(large)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct PytorchCaching {
    heap: Heap<BySize>,
}

impl PytorchCaching {
    /// An empty pool over a backing.
    #[must_use]
    pub fn new(backing: Box<dyn Backing>) -> Self {
        Self { heap: Heap::new(backing, BySize::default()) }
    }

    fn search_pool(&mut self, rounded: u64, pool: u64) -> Option<BlockId> {
        self.heap.search_steps += 1;
        let (_, id) = self.heap.index.at_least(rounded, pool).next()?;
        self.heap.take_from_index(id);
        Some(id)
    }

    fn serve(&mut self, size: u64, stream: Stream) -> Result<Address, Refused> {
        let rounded = size.checked_next_multiple_of(UNIT).ok_or(Refused)?;
        let pool = pool_of(rounded, stream);
        let id = match self.search_pool(rounded, pool) {
            Some(id) => id,
            None => self.heap.acquire_or_trim(segment_size(rounded).ok_or(Refused)?, pool)?,
        };
        let is_cut = cuts_rest(self.heap.block(id).size, rounded);
        Ok(if is_cut { self.heap.hand_out_part(id, rounded) } else { self.heap.hand_out(id) })
    }
}

/// The size of the segment to request from the device; `None` above 2^64 - 1.
fn segment_size(rounded: u64) -> Option<u64> {
    if rounded <= SMALL {
        Some(SMALL_SEGMENT)
    } else if rounded < OWN_SEGMENT {
        Some(LARGE_SEGMENT)
    } else {
        rounded.checked_next_multiple_of(OWN_UNIT)
    }
}

pool!(PytorchCaching, heap, heap.release_whole);

#[cfg(test)]
mod tests {
    use planlab_dsa::{Bytes, OnlineAllocator, Simulated};

    use super::*;

    const MIB: u64 = 1 << 20;

    fn pool() -> PytorchCaching {
        PytorchCaching::new(Box::new(Simulated::new()))
    }

    fn alloc(pool: &mut PytorchCaching, size: u64) -> Address {
        pool.alloc(Bytes::new(size), Stream::default()).expect("no limit")
    }

    #[test]
    fn segments_are_as_large_as_the_request_is_of_a_kind() {
        let cases = [
            (1, 2 * MIB),
            (MIB, 2 * MIB),
            (MIB + 1, 20 * MIB),
            (10 * MIB - UNIT, 20 * MIB),
            (10 * MIB, 10 * MIB),
            (10 * MIB + 1, 12 * MIB),
        ];
        for (size, segment) in cases {
            let mut pool = pool();
            alloc(&mut pool, size);
            assert_eq!(pool.usage().reserved, Bytes::new(segment), "{size}");
        }
    }

    #[test]
    fn a_large_block_is_cut_only_for_more_than_a_mebibyte() {
        let mut pool = pool();
        let block = alloc(&mut pool, 19 * MIB);
        assert_eq!(pool.usage().used, Bytes::new(20 * MIB));
        pool.free(block).expect("live");
        alloc(&mut pool, 19 * MIB - UNIT);
        assert_eq!(pool.usage().used, Bytes::new(19 * MIB - UNIT));
        assert_eq!(pool.usage().device_allocations, 1);
    }
}
