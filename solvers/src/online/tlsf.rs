//! Two-level segregated fit: a good fit in constant time.
//!
//! Free blocks are sorted into classes: each power of two is cut into 16 equal steps. Two levels of bit masks mark the
//! classes that have a block. A request is rounded up to the next class, so that *any* block of the first non-empty
//! class is large enough; the last freed block is taken and cut. A freed block joins its free neighbours. All blocks
//! lie in one region.
//!
//! ```text
//!   power of two    2^11        2^12                 2^13
//!   step           .. 15 | 0 1 2 3 ... 15 | 0 1 ...
//!   mask             ..1 | 0 0 1 0 ...  0 | 1 0 ...      one look at the step, one at the power
//! ```
//!
//! # References
//!
//! 1. M. Masmano, I. Ripoll, A. Crespo and J. Real, *TLSF: a new dynamic memory allocator for real-time
//!    systems*, ECRTS 2004, doi:10.1109/EMRTS.2004.1311009.
//!
//! # Complexity
//!
//! O(1) for a request and for a free.
//!
//! # Deviations from the paper
//!
//! The unit is 512 bytes, as in the pools of devices, and the managed memory itself is never written: headers are kept
//! in tables beside it, so that the device need not be read.

use planlab_dsa::{Address, Backing, Refused, Stream};

use crate::online::blocks::{Block, BlockId, Index, LIMIT, Lists, OneRegion, UNIT, pool};

/// Powers of two of bytes.
const POWERS: usize = 64;

/// Steps of a power of two, as a power of two.
const STEP_BITS: u32 = 4;

const STEPS: usize = 1 << STEP_BITS;

/// Good fit in one region; key `tlsf`.
///
/// ```
/// use planlab_dsa::{Bytes, OnlineAllocator, Simulated, Stream};
/// use planlab_solvers::online::Tlsf;
///
/// let mut pool = Tlsf::new(Box::new(Simulated::new()));
/// let block = pool.alloc(Bytes::new(4000), Stream::default())?;
/// pool.alloc(Bytes::new(1), Stream::default())?;
/// pool.free(block)?;
/// assert_eq!(pool.alloc(Bytes::new(2000), Stream::default())?, block);
/// assert_eq!(pool.usage().reserved, Bytes::new(4608));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Tlsf {
    region: OneRegion<Classes>,
}

/// The head of each class's list, and masks of the non-empty classes.
struct Classes {
    heads: Vec<[Option<BlockId>; STEPS]>,
    powers: u64,
    steps: [u16; POWERS],
    lists: Lists,
}

/// The class of a block of `size` bytes, which is at least a unit.
fn size_class(size: u64) -> (usize, usize) {
    let power = size.ilog2();
    let step = u8::try_from((size >> (power - STEP_BITS)) % STEPS as u64).expect("fewer than 256 steps");
    (power as usize, step.into())
}

/// The first class in which every block has `size` bytes; `None` above 2^64 - 1.
fn sufficient_class(size: u64) -> Option<(usize, usize)> {
    let step = 1_u64 << (size.ilog2() - STEP_BITS);
    size.checked_next_multiple_of(step).map(size_class)
}

impl Classes {
    fn new() -> Self {
        Self { heads: vec![[None; STEPS]; POWERS], powers: 0, steps: [0; POWERS], lists: Lists::default() }
    }

    /// The head of the first class, from `size` rounded up, that is not empty.
    fn search_classes(&self, size: u64) -> Option<BlockId> {
        let (power, step) = sufficient_class(size)?;
        let same = self.steps[power] & (u16::MAX << step);
        let (power, steps) = if same == 0 {
            let above = self.powers & (u64::MAX << power << 1);
            let power = above.trailing_zeros() as usize;
            (power, *self.steps.get(power)?)
        } else {
            (power, same)
        };
        self.heads[power][steps.trailing_zeros() as usize]
    }
}

impl Index for Classes {
    fn insert_block(&mut self, id: BlockId, block: &Block) {
        let (power, step) = size_class(block.size);
        self.lists.push_head(&mut self.heads[power][step], id);
        self.steps[power] |= 1 << step;
        self.powers |= 1 << power;
    }

    fn remove_block(&mut self, id: BlockId, block: &Block) {
        let (power, step) = size_class(block.size);
        self.lists.unlink_block(&mut self.heads[power][step], id);
        if self.heads[power][step].is_none() {
            self.steps[power] &= !(1 << step);
            self.powers &= !(u64::from(self.steps[power] == 0) << power);
        }
    }
}

impl Tlsf {
    /// An allocator over a backing that can reserve addresses; over another, it is always out of memory.
    #[must_use]
    pub fn new(backing: Box<dyn Backing>) -> Self {
        Self { region: OneRegion::new(backing, Classes::new()) }
    }

    fn serve(&mut self, size: u64, _: Stream) -> Result<Address, Refused> {
        let rounded =
            size.checked_next_multiple_of(UNIT).filter(|&rounded| rounded <= LIMIT).ok_or(Refused)?;
        self.region.open_range()?;
        self.region.heap.search_steps += 1;
        let id = self.region.heap.index.search_classes(rounded).ok_or(Refused)?;
        self.region.hand_out(id, rounded)
    }
}

pool!(Tlsf, region.heap, region.release_cached);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_block_of_a_sufficient_class_is_large_enough() {
        for size in (1..3000).map(|units| units * UNIT) {
            let (class_of, enough) = (size_class(size), sufficient_class(size).expect("small"));
            assert!(class_of <= enough, "{size}");
            let (power, step) = enough;
            let least = (1_u64 << power) + ((step as u64) << (power - STEP_BITS as usize));
            assert!(least >= size, "{size}");
            assert_eq!(size_class(least), enough, "{size}");
        }
    }
}
