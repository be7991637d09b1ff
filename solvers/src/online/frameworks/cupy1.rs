//! The pool of `CuPy` 1 (Chainer 2): reuses freed blocks for requests of exactly their size.
//!
//! Requests are rounded up to 512 bytes. Blocks are never split or joined, so a size that occurs once stays reserved
//! for ever. For each size, it reserves the most blocks in use at one time.
//!
//! # References
//!
//! 1. `CuPy` 1.0, `cupy/cuda/memory.pyx` (2017).
//!
//! # Complexity
//!
//! O(log s) for a request and for a free, to look up the size among s sizes; the rest is O(1).
//!
//! # Deviations from the original
//!
//! If the device has no memory, the pool gives its cached blocks back and asks again; the original also runs Python's
//! cycle collector and asks a third time.

use crate::online::blocks::{ExactSize, UNIT, exact_size_pool};

/// The exact-size pool; key `cupy1-pool`.
///
/// ```
/// use planlab_dsa::{Bytes, OnlineAllocator, Simulated, Stream};
/// use planlab_solvers::online::Cupy1Pool;
///
/// let mut pool = Cupy1Pool::new(Box::new(Simulated::new()));
/// let block = pool.alloc(Bytes::new(1000), Stream::default())?;
/// pool.free(block)?;
/// let other = pool.alloc(Bytes::new(1), Stream::default())?;
/// assert_ne!(block, other); // 1024 bytes lie idle, but a block of 512 was asked for
/// assert_eq!(pool.usage().reserved, Bytes::new(1536));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Cupy1Pool(ExactSize);

fn size_class(size: u64) -> Option<u64> {
    size.checked_next_multiple_of(UNIT)
}

exact_size_pool!(Cupy1Pool, size_class, |_, _| {});
