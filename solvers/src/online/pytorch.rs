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
//! collection by age (off by default in the original) and no private pools of graphs. The supported switches are those
//! of [`PytorchOptions`]. There are no divisions for each range of sizes. The remainder that a block too large to be
//! cut may leave is the default (`max_non_split_rounding_mb`), and the size of the segments for large blocks is fixed.

use std::collections::BTreeMap;

use planlab_dsa::{Address, AllocError, Backing, Bytes, NotLive, OnlineAllocator, Refused, Stream, Usage};

use super::UNIT;
use super::heap::{Block, BlockId, Heap, Index};

/// The largest request that counts as small.
const SMALL: u64 = 1 << 20;

/// A segment for small blocks.
pub(super) const SMALL_SEGMENT: u64 = 2 << 20;

/// A segment for large blocks.
pub(super) const LARGE_SEGMENT: u64 = 20 << 20;

/// From this size on, a request gets its own segment.
const OWN_SEGMENT: u64 = 10 << 20;

/// Such segments are multiples of this.
const OWN_UNIT: u64 = 2 << 20;

/// The switches of `PYTORCH_CUDA_ALLOC_CONF` that change what is reserved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PytorchOptions {
    max_split: Option<u64>,
    divisions: u64,
}

impl PytorchOptions {
    /// `max_split_size_mb`: blocks of at least this size are not cut. Default: no limit.
    #[must_use]
    pub fn with_max_split(mut self, size: Bytes) -> Self {
        self.max_split = Some(size.get());
        self
    }

    /// `roundup_power2_divisions`: requests are rounded up to one of this many steps between powers of two. Default: 0,
    /// which is off, as is 1.
    ///
    /// # Panics
    ///
    /// If it is neither 0 nor a power of two.
    #[must_use]
    pub fn with_roundup_power2_divisions(mut self, divisions: u32) -> Self {
        assert!(divisions == 0 || divisions.is_power_of_two(), "{divisions} is no power of two");
        self.divisions = divisions.into();
        self
    }

    /// The rounded size of a request of more than 0 bytes; `None` above 2^64 - 1.
    pub(super) fn round(self, size: u64) -> Option<u64> {
        if self.divisions > 1 && size > UNIT.saturating_mul(self.divisions) {
            round_to_step(size, self.divisions)?.checked_next_multiple_of(UNIT)
        } else {
            size.checked_next_multiple_of(UNIT)
        }
    }

    /// Whether a cached block is too large to spend on a request.
    fn is_too_large(self, block: u64, request: u64) -> bool {
        self.max_split.is_some_and(|most| {
            let limit = if request < most { most } else { request.saturating_add(LARGE_SEGMENT) };
            block >= limit
        })
    }

    fn cuts(self, block: u64, request: u64) -> bool {
        let rest = block - request;
        if request <= SMALL {
            rest >= UNIT
        } else {
            rest > SMALL && self.max_split.is_none_or(|most| request < most)
        }
    }
}

/// The next of `divisions` equal steps between two powers of two.
fn round_to_step(size: u64, divisions: u64) -> Option<u64> {
    if size.is_power_of_two() {
        return Some(size);
    }
    let step = (1 << size.ilog2()) / divisions;
    match step {
        0 => size.checked_next_power_of_two(),
        step => size.checked_next_multiple_of(step),
    }
}

/// A stream and a kind of block, as one number.
pub(super) fn pool_of(rounded: u64, stream: Stream) -> u64 {
    2 * u64::from(stream.get()) + u64::from(rounded > SMALL)
}

/// Free blocks by pool, size and address.
#[derive(Default)]
pub(super) struct BySize(pub(super) BTreeMap<(u64, u64, u64), BlockId>);

impl Index for BySize {
    fn insert(&mut self, id: BlockId, block: &Block) {
        self.0.insert((block.pool, block.size, block.base), id);
    }

    fn remove(&mut self, _: BlockId, block: &Block) {
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
    options: PytorchOptions,
}

impl PytorchCaching {
    /// An empty pool over a backing, with the default options.
    #[must_use]
    pub fn new(backing: Box<dyn Backing>) -> Self {
        Self { heap: Heap::new(backing, BySize::default()), options: PytorchOptions::default() }
    }

    /// Uses other options.
    #[must_use]
    pub fn with_options(mut self, options: PytorchOptions) -> Self {
        self.options = options;
        self
    }

    fn search(&mut self, rounded: u64, pool: u64) -> Option<BlockId> {
        self.heap.search_steps += 1;
        let (size, id) = self.heap.index.at_least(rounded, pool).next()?;
        if self.options.is_too_large(size, rounded) {
            return None;
        }
        self.heap.withdraw(id);
        Some(id)
    }

    /// A new segment; if the device has no memory, cached ones are given back first.
    fn grow(&mut self, rounded: u64, pool: u64) -> Option<BlockId> {
        let size = segment_size(rounded)?;
        if let Ok(id) = self.heap.acquire(size, pool) {
            return Some(id);
        }
        if let Ok(id) = self.release_oversize(rounded, pool).and_then(|()| self.heap.acquire(size, pool)) {
            return Some(id);
        }
        self.heap.release_whole();
        self.heap.acquire(size, pool).ok()
    }

    /// Gives back blocks of a pool that are too large to be cut: the smallest that is sufficient, else the largest ones
    /// until they are.
    fn release_oversize(&mut self, rounded: u64, pool: u64) -> Result<(), Refused> {
        let wanted = rounded.max(self.options.max_split.ok_or(Refused)?);
        let is_large = |size: u64| self.options.max_split.is_some_and(|most| size >= most);
        let is_oversize = |block: &Block| block.pool == pool && is_large(block.size);
        let mut blocks = self.heap.whole_blocks(is_oversize);
        blocks.sort_by_key(|&id| (self.heap.block(id).size, self.heap.block(id).base));
        if let Some(&enough) = blocks.iter().find(|&&id| self.heap.block(id).size >= wanted) {
            self.heap.release(enough);
            return Ok(());
        }
        let mut released = 0;
        for id in blocks.into_iter().rev() {
            if released >= wanted {
                break;
            }
            released += self.heap.block(id).size;
            self.heap.release(id);
        }
        if released >= wanted { Ok(()) } else { Err(Refused) }
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

impl OnlineAllocator for PytorchCaching {
    fn alloc(&mut self, size: Bytes, stream: Stream) -> Result<Address, AllocError> {
        if size == Bytes::ZERO {
            return Ok(Address::NULL);
        }
        let out_of_memory = self.heap.device.out_of_memory(size);
        let rounded = self.options.round(size.get()).ok_or(out_of_memory)?;
        let pool = pool_of(rounded, stream);
        let found = self.search(rounded, pool).or_else(|| self.grow(rounded, pool));
        let id = found.ok_or_else(|| self.heap.device.out_of_memory(size))?;
        let is_cut = self.options.cuts(self.heap.block(id).size, rounded);
        Ok(if is_cut { self.heap.hand_out_part(id, rounded) } else { self.heap.hand_out(id) })
    }

    fn free(&mut self, address: Address) -> Result<(), NotLive> {
        self.heap.free(address)
    }

    fn release_cached(&mut self) {
        self.heap.release_whole();
    }

    fn usage(&self) -> Usage {
        self.heap.usage()
    }
}

#[cfg(test)]
mod tests {
    use planlab_dsa::Simulated;

    use super::*;

    const MIB: u64 = 1 << 20;

    fn pool(options: PytorchOptions) -> PytorchCaching {
        PytorchCaching::new(Box::new(Simulated::new())).with_options(options)
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
            let mut pool = pool(PytorchOptions::default());
            alloc(&mut pool, size);
            assert_eq!(pool.usage().reserved, Bytes::new(segment), "{size}");
        }
    }

    #[test]
    fn a_large_block_is_cut_only_for_more_than_a_mebibyte() {
        let mut pool = pool(PytorchOptions::default());
        let block = alloc(&mut pool, 19 * MIB);
        assert_eq!(pool.usage().used, Bytes::new(20 * MIB));
        pool.free(block).expect("live");
        alloc(&mut pool, 19 * MIB - UNIT);
        assert_eq!(pool.usage().used, Bytes::new(19 * MIB - UNIT));
        assert_eq!(pool.usage().device_allocations, 1);
    }

    #[test]
    fn rounding_to_steps_between_powers_of_two() {
        let options = PytorchOptions::default().with_roundup_power2_divisions(4);
        for (size, rounded) in [(1200, 1536), (2049, 2560), (2600, 3072), (4096, 4096), (3585, 4096)] {
            assert_eq!(options.round(size), Some(rounded), "{size}");
        }
    }

    #[test]
    fn blocks_above_the_split_limit_are_kept_for_their_like() {
        let mut pool = pool(PytorchOptions::default().with_max_split(Bytes::new(32 * MIB)));
        let large = alloc(&mut pool, 64 * MIB);
        pool.free(large).expect("live");
        assert_ne!(alloc(&mut pool, 16 * MIB), large);
        assert_ne!(alloc(&mut pool, 40 * MIB), large);
        assert_eq!(alloc(&mut pool, 50 * MIB), large);
    }

    #[test]
    fn an_oversize_block_goes_back_before_the_others_do() {
        let options = PytorchOptions::default().with_max_split(Bytes::new(32 * MIB));
        for (cached, request, releases, reserved) in [([20, 70], 40, 1, 60), ([20, 40], 70, 2, 70)] {
            let device = Simulated::with_capacity(Bytes::new(100 * MIB));
            let mut pool = PytorchCaching::new(Box::new(device)).with_options(options);
            let blocks = cached.map(|size| alloc(&mut pool, size * MIB));
            blocks.into_iter().for_each(|block| pool.free(block).expect("live"));
            alloc(&mut pool, request * MIB);
            let usage = pool.usage();
            assert_eq!((usage.device_releases, usage.reserved), (releases, Bytes::new(reserved * MIB)));
        }
    }

    #[test]
    fn the_oversize_blocks_of_other_streams_go_back_with_all_that_is_cached() {
        let options = PytorchOptions::default().with_max_split(Bytes::new(32 * MIB));
        let device = Simulated::with_capacity(Bytes::new(100 * MIB));
        let mut pool = PytorchCaching::new(Box::new(device)).with_options(options);
        let blocks = [16, 70].map(|size| alloc(&mut pool, size * MIB));
        blocks.into_iter().for_each(|block| pool.free(block).expect("live"));
        pool.alloc(Bytes::new(40 * MIB), Stream::new(1)).expect("all that is cached goes back");
        let usage = pool.usage();
        assert_eq!((usage.device_releases, usage.reserved), (2, Bytes::new(40 * MIB)));
    }

    #[test]
    #[should_panic(expected = "3 is no power of two")]
    fn divisions_are_a_power_of_two() {
        let _ = PytorchOptions::default().with_roundup_power2_divisions(3);
    }
}
