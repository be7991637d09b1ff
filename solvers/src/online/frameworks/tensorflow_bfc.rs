//! TensorFlow's BFC allocator: best fit with coalescing, in 21 bins.
//!
//! Requests are rounded up to 256 bytes. Bin b holds free blocks of 256 * 2^b bytes up to twice that (the last bin: all
//! above), in order of size and address. A request takes the first sufficient block from its own bin upwards. A block
//! of at least twice the request, or with 128 MiB to spare, is cut; otherwise the request gets all of it. A freed block
//! joins its free neighbours. Memory comes in regions. Each region doubles the size of the next, unless it had to be
//! enlarged for a request.
//!
//! # References
//!
//! 1. TensorFlow 1.x, `tensorflow/core/common_runtime/bfc_allocator.cc`.
//!
//! # Complexity
//!
//! O(log n + b) for a request whose own bin has b blocks that are too small, and O(log n) for a free, among n free
//! blocks.
//!
//! # Deviations from the original
//!
//! - The original waits for up to ten seconds for other threads to free memory before it gives up; here there are no
//!   others.
//! - Regions are given back only on request; the original gives them back when it is destroyed.
//! - The limit is the memory of the device, if it is known, else 64 TiB.

use std::collections::BTreeMap;

use planlab_dsa::{Address, AllocError, Backing, Refused, Stream};

use crate::online::blocks::{Block, BlockId, Heap, Index, LIMIT, OneRegion, pool};

/// Requests are rounded up to multiples of this, in bytes.
const UNIT: u64 = 256;

const BINS: usize = 21;

/// The first region, in bytes.
const FIRST_REGION: u64 = 1 << 20;

/// A remainder of at least this many bytes is always split off.
const LARGE_REST: u64 = 128 << 20;

/// Free blocks of each bin, by size and address.
struct Bins([BTreeMap<(u64, u64), BlockId>; BINS]);

fn size_bin(size: u64) -> usize {
    let power = size.max(UNIT) / UNIT;
    (BINS - 1).min(power.ilog2() as usize)
}

/// The part of a block that a request gets: the requested size, or all of the block.
fn share_of_block(block: u64, request: u64) -> u64 {
    if block / 2 >= request || block - request >= LARGE_REST { request } else { block }
}

impl Bins {
    fn new() -> Self {
        Self(std::array::from_fn(|_| BTreeMap::new()))
    }

    /// The first sufficient block, and the number of blocks examined.
    fn search_bins(&self, size: u64) -> (Option<BlockId>, u64) {
        let mut steps = 0;
        let mut blocks = self.0[size_bin(size)..].iter().flatten().inspect(|_| steps += 1);
        let found = blocks.find(|&(&(block, _), _)| block >= size).map(|(_, &id)| id);
        (found, steps)
    }
}

impl Index for Bins {
    fn insert_block(&mut self, id: BlockId, block: &Block) {
        self.0[size_bin(block.size)].insert((block.size, block.base), id);
    }

    fn remove_block(&mut self, _: BlockId, block: &Block) {
        self.0[size_bin(block.size)].remove(&(block.size, block.base));
    }
}

/// Regions that double, as with `allow_growth`; key `tensorflow-bfc`.
///
/// ```
/// use planlab_dsa::{Bytes, OnlineAllocator, Simulated, Stream};
/// use planlab_solvers::online::TensorflowBfc;
///
/// let mut pool = TensorflowBfc::new(Box::new(Simulated::new()));
/// pool.alloc(Bytes::new(1), Stream::default())?;
/// assert_eq!(pool.usage().reserved, Bytes::new(1 << 20));
/// pool.alloc(Bytes::new(1 << 20), Stream::default())?; // the next region is twice as large
/// assert_eq!(pool.usage().reserved, Bytes::new(3 << 20));
/// # Ok::<(), planlab_dsa::AllocError>(())
/// ```
pub struct TensorflowBfc {
    heap: Heap<Bins>,
    limit: u64,
    /// The size of the next region.
    region: u64,
    /// Whether the device has refused a region before.
    has_backed_off: bool,
}

impl TensorflowBfc {
    /// An allocator without regions over a backing.
    #[must_use]
    pub fn new(backing: Box<dyn Backing>) -> Self {
        let limit = backing.device_memory().map_or(LIMIT, |memory| memory.total.get());
        let region = FIRST_REGION.min(limit).max(UNIT);
        Self { heap: Heap::new(backing, Bins::new()), limit, region, has_backed_off: false }
    }

    fn search_bins(&mut self, size: u64) -> Option<BlockId> {
        let (found, steps) = self.heap.index.search_bins(size);
        self.heap.search_steps += steps;
        found
    }

    /// A new region that holds `size` bytes.
    fn extend_regions(&mut self, size: u64) -> Result<(), Refused> {
        let available = (self.limit - self.heap.device.reserved_bytes()) / UNIT * UNIT;
        if size > available {
            return Err(Refused);
        }
        let is_enlarged = size > self.region;
        while size > self.region {
            self.region = self.region.saturating_mul(2);
        }
        let id = self.acquire_region(size, self.region.min(available))?;
        self.heap.add_to_index(id);
        if !is_enlarged {
            self.region = self.region.saturating_mul(2);
        }
        Ok(())
    }

    /// A region of `wish` bytes; at the first refusal, smaller ones are tried.
    fn acquire_region(&mut self, size: u64, wish: u64) -> Result<BlockId, Refused> {
        let mut refused = self.heap.acquire_segment(wish, 0);
        if refused.is_ok() || self.has_backed_off {
            return refused;
        }
        self.has_backed_off = true;
        let mut wish = wish;
        while refused.is_err() {
            wish = (wish / 10 * 9).next_multiple_of(UNIT).min(wish - UNIT);
            if wish < size {
                break;
            }
            refused = self.heap.acquire_segment(wish, 0);
        }
        refused
    }

    fn serve(&mut self, size: u64, _: Stream) -> Result<Address, Refused> {
        let rounded = size.checked_next_multiple_of(UNIT).ok_or(Refused)?;
        let id = match self.search_bins(rounded) {
            Some(id) => id,
            None => self.extend_regions(rounded).and_then(|()| self.search_bins(rounded).ok_or(Refused))?,
        };
        let share = share_of_block(self.heap.block(id).size, rounded);
        self.heap.take_from_index(id);
        Ok(self.heap.hand_out_part(id, share))
    }
}

pool!(TensorflowBfc, heap, heap.release_whole, Err(AllocError::ZeroSize));

/// One region that never ends, counted up to its high-water mark; key `tensorflow-bfc/one-region`.
///
/// ```
/// use planlab_dsa::{Bytes, OnlineAllocator, Simulated, Stream};
/// use planlab_solvers::online::TensorflowBfcOneRegion;
///
/// let mut pool = TensorflowBfcOneRegion::new(Box::new(Simulated::new()));
/// let block = pool.alloc(Bytes::new(1000), Stream::default())?;
/// assert_eq!(pool.usage().reserved, Bytes::new(1024));
/// pool.free(block)?;
/// assert_eq!(pool.alloc(Bytes::new(700), Stream::default())?, block);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct TensorflowBfcOneRegion {
    region: OneRegion<Bins>,
}

impl TensorflowBfcOneRegion {
    /// An allocator over a backing that can reserve addresses; over another, it is always out of memory.
    #[must_use]
    pub fn new(backing: Box<dyn Backing>) -> Self {
        Self { region: OneRegion::new(backing, Bins::new()) }
    }

    fn serve(&mut self, size: u64, _: Stream) -> Result<Address, Refused> {
        let rounded = size.checked_next_multiple_of(UNIT).ok_or(Refused)?;
        self.region.open_range()?;
        let (found, steps) = self.region.heap.index.search_bins(rounded);
        self.region.heap.search_steps += steps;
        let id = found.ok_or(Refused)?;
        let share = share_of_block(self.region.heap.block(id).size, rounded);
        self.region.hand_out(id, share)
    }
}

pool!(TensorflowBfcOneRegion, region.heap, region.release_cached, Err(AllocError::ZeroSize));

#[cfg(test)]
mod tests {
    use planlab_dsa::{Bytes, OnlineAllocator, Simulated};

    use super::*;

    const MIB: u64 = 1 << 20;

    #[test]
    fn bins_double() {
        let cases =
            [(1, 0), (256, 0), (511, 0), (512, 1), (1023, 1), (1024, 2), (256 << 20, 20), (u64::MAX, 20)];
        for (size, expected) in cases {
            assert_eq!(size_bin(size), expected, "{size}");
        }
    }

    #[test]
    fn a_block_is_cut_from_twice_the_request_on_or_with_much_to_spare() {
        for (block, request, expected) in [
            (1024, 512, 512),
            (768, 512, 768),
            (512, 512, 512),
            (400 * MIB, 300 * MIB, 400 * MIB),
            (428 * MIB, 300 * MIB, 300 * MIB),
        ] {
            assert_eq!(share_of_block(block, request), expected, "{block} {request}");
        }
    }

    #[test]
    fn a_region_that_is_enlarged_does_not_double_the_next() {
        let mut pool = TensorflowBfc::new(Box::new(Simulated::new()));
        let reserved = [1, 8 * MIB, 8 * MIB, 1].map(|size| {
            pool.alloc(Bytes::new(size), Stream::default()).expect("no limit");
            pool.usage().reserved.get() / MIB
        });
        assert_eq!(reserved, [1, 9, 17, 17]);
    }

    #[test]
    fn a_refused_region_is_asked_for_smaller_once() {
        let device =
            std::sync::Arc::new(std::sync::Mutex::new(Simulated::with_capacity(Bytes::new(8 * MIB))));
        let mut pool = TensorflowBfc::new(Box::new(std::sync::Arc::clone(&device)));
        // Another user takes 7.5 MiB of the 8 that the pool expects.
        device.lock().expect("one thread").acquire(Bytes::new(15 * MIB / 2)).expect("room");
        pool.alloc(Bytes::new(1), Stream::default()).expect("a smaller region");
        let reserved = pool.usage().reserved.get();
        assert!((MIB * 2 / 5..=MIB / 2).contains(&reserved), "{reserved}");
        assert!(pool.alloc(Bytes::new(MIB / 2), Stream::default()).is_err());
        assert!(pool.alloc(Bytes::ZERO, Stream::default()).is_err());
    }
}
