//! The pool of `CuPy` 1 (Chainer 2): freed blocks are used again for requests of exactly their size.
//!
//! Requests are rounded up to 512 bytes. Nothing is split or joined, so that a size which comes once stays
//! reserved for ever: what is reserved is, over the sizes, the most blocks of that size at one time.
//!
//! # References
//!
//! 1. `CuPy` 1.0, `cupy/cuda/memory.pyx` (2017).
//!
//! # Complexity
//!
//! O(1) for a request and for a free, but for the look-up of the size among s sizes: O(log s).
//!
//! # Deviations from the original
//!
//! Where the device has no memory, the cached blocks are given back and it is asked again; the original also
//! runs Python's collector of cycles and asks a third time.

use super::UNIT;
use super::exact_size::{ExactSize, exact_size_pool};

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

/// The class of a request, in bytes; `None` past 2^64 - 1.
fn class(size: u64) -> Option<u64> {
    size.checked_next_multiple_of(UNIT)
}

exact_size_pool!(Cupy1Pool, class, |_, _| {});
