//! The pool of `CuPy` 2.0.0rc1 (Chainer 3.0.0rc1): best fit by a linear scan of the bins.
//!
//! There is a bin for each multiple of 512 bytes. A request takes a free block from its own bin, or from the first
//! non-empty bin above it. A larger block is cut: the rest becomes free. If there is no block, the device is asked for
//! exactly the request. A freed block joins its free neighbours. The profile-guided best fit was compared with this
//! pool.
//!
//! ```text
//!   bin     512  1024  1536  2048  2560
//!   blocks   -     -     -     *     *      a request for 1024 looks at three bins
//!                  `---------->
//! ```
//!
//! # References
//!
//! 1. `CuPy` 2.0.0rc1, `cupy/cuda/memory.pyx` (2017).
//! 2. T. Sekiyama, T. Imamichi, H. Imai and R. Raymond, *Profile-guided memory optimization for deep
//!    neural networks*, 2018, arXiv:1804.10001, section 5 (there `orig`).
//!
//! # Complexity
//!
//! A request costs O(b) for b bins. Their number is the largest block ever freed divided by 512: 200,704 for one of
//! 102.8 MB. If nothing fits, all bins from the request's own bin on are scanned. A free costs O(1).
//!
//! # Deviations from the original
//!
//! - The original takes any block of the bin (a hash set of addresses); this one takes the last that was freed.
//! - If the device has no memory, whole free segments are given back and it is asked again; the original also runs
//!   Python's cycle collector and asks a third time.
//! - Requests above 128 GiB are refused: the table of bins itself would take more than 1 GiB.

use planlab_dsa::{Address, Backing, Refused, Stream};

use crate::online::blocks::{Block, BlockId, Heap, Index, Lists, UNIT, pool};

/// The length of the table of bins at the start.
const FIRST_BINS: usize = 1024;

/// The largest request, in bytes.
const LARGEST: u64 = 128 << 30;

/// Best fit by a linear scan of the bins; key `cupy2rc1-pool`.
///
/// ```
/// use planlab_dsa::{Bytes, OnlineAllocator, Simulated, Stream};
/// use planlab_solvers::online::Cupy2Pool;
///
/// let mut pool = Cupy2Pool::new(Box::new(Simulated::new()));
/// let block = pool.alloc(Bytes::new(4096), Stream::default())?;
/// pool.free(block)?;
/// let steps = pool.usage().search_steps;
/// assert_eq!(pool.alloc(Bytes::new(512), Stream::default())?, block); // the head of the free block
/// assert_eq!(pool.usage().search_steps - steps, 8); // the bins from 512 to 4096
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Cupy2Pool {
    heap: Heap<Bins>,
}

/// The head of each bin's list.
struct Bins {
    heads: Vec<Option<BlockId>>,
    lists: Lists,
}

/// The bin of a size that is a multiple of the unit.
fn size_bin(size: u64) -> usize {
    usize::try_from(size / UNIT - 1).expect("no block is larger than the largest request")
}

impl Index for Bins {
    fn insert_block(&mut self, id: BlockId, block: &Block) {
        let bin = size_bin(block.size);
        if self.heads.len() <= bin {
            self.heads.resize(bin + 1, None);
        }
        self.lists.push_head(&mut self.heads[bin], id);
    }

    fn remove_block(&mut self, id: BlockId, block: &Block) {
        self.lists.unlink_block(&mut self.heads[size_bin(block.size)], id);
    }
}

impl Cupy2Pool {
    /// An empty pool over a backing.
    #[must_use]
    pub fn new(backing: Box<dyn Backing>) -> Self {
        let bins = Bins { heads: vec![None; FIRST_BINS], lists: Lists::default() };
        Self { heap: Heap::new(backing, bins) }
    }

    /// A free block of at least `size` bytes, from the lowest bin that has one.
    fn search_bins(&mut self, size: u64) -> Option<BlockId> {
        let bins = self.heap.index.heads.get(size_bin(size)..).unwrap_or_default();
        let found = bins.iter().position(Option::is_some);
        self.heap.search_steps += found.map_or(bins.len(), |index| index + 1) as u64;
        bins[found?]
    }

    fn serve(&mut self, size: u64, _: Stream) -> Result<Address, Refused> {
        let rounded =
            size.checked_next_multiple_of(UNIT).filter(|&rounded| rounded <= LARGEST).ok_or(Refused)?;
        if let Some(id) = self.search_bins(rounded) {
            self.heap.take_from_index(id);
            return Ok(self.heap.hand_out_part(id, rounded));
        }
        let id = self.heap.acquire_or_trim(rounded, 0)?;
        Ok(self.heap.hand_out(id))
    }
}

pool!(Cupy2Pool, heap, heap.release_whole);

#[cfg(test)]
mod tests {
    use planlab_dsa::{Bytes, OnlineAllocator, Simulated};

    use super::*;

    fn pool() -> Cupy2Pool {
        Cupy2Pool::new(Box::new(Simulated::new()))
    }

    fn alloc(pool: &mut Cupy2Pool, units: u64) -> Address {
        pool.alloc(Bytes::new(units * UNIT), Stream::default()).expect("no limit")
    }

    #[test]
    fn freed_neighbours_join_and_serve_a_larger_request() {
        let mut pool = pool();
        let whole = alloc(&mut pool, 6);
        pool.free(whole).expect("live");
        let parts = [1, 2, 3].map(|units| alloc(&mut pool, units));
        assert_eq!(parts.map(|part| (part.get() - whole.get()) / UNIT), [0, 1, 3]);
        for part in [parts[0], parts[2], parts[1]] {
            pool.free(part).expect("live");
        }
        assert_eq!(alloc(&mut pool, 6), whole);
        assert_eq!(pool.usage().device_allocations, 1);
    }

    #[test]
    fn a_miss_walks_to_the_end_of_the_bins_and_takes_exactly_the_request() {
        let mut pool = pool();
        alloc(&mut pool, 24);
        assert_eq!(pool.usage().search_steps, 1024 - 23);
        let large = alloc(&mut pool, 2000);
        assert_eq!(pool.usage().search_steps, 1024 - 23);
        pool.free(large).expect("live");
        alloc(&mut pool, 2000);
        assert_eq!(pool.usage().search_steps, 1024 - 23 + 1);
        assert_eq!(pool.usage().reserved, Bytes::new(2024 * UNIT));
    }

    #[test]
    fn where_the_device_is_full_whole_free_segments_go_back() {
        let mut pool = Cupy2Pool::new(Box::new(Simulated::with_capacity(Bytes::new(8 * UNIT))));
        let (a, b) = (alloc(&mut pool, 4), alloc(&mut pool, 4));
        pool.free(a).expect("live");
        assert_eq!(alloc(&mut pool, 1), a);
        // The remainder of the first segment is not a whole segment.
        assert!(pool.alloc(Bytes::new(4 * UNIT), Stream::default()).is_err());
        pool.free(b).expect("live");
        pool.free(a).expect("live");
        alloc(&mut pool, 8);
        assert_eq!(pool.usage().device_releases, 2);
    }
}
