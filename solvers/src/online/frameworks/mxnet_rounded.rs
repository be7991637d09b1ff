//! `MXNet`'s pool `Round`: requests become powers of two, and above 16 MiB multiples of 16 MiB.
//!
//! # References
//!
//! 1. Apache `MXNet` 1.x, `src/storage/pooled_storage_manager.h`, `GPUPooledRoundedStorageManager`.
//!
//! # Complexity
//!
//! O(log s) for a request and for a free, with s sizes.
//!
//! # Deviations from the original
//!
//! The original miscounts used bytes above 2 GiB (a size in 32 bits); this one does not.

use super::mxnet_naive::keep_reserve;
use crate::online::blocks::{ExactSize, exact_size_pool};

/// The smallest block, as a power of two.
const LEAST: u32 = 12;

/// Blocks are powers of two up to this power.
const CUTOFF: u32 = 24;

/// Exact size after rounding to powers of two; key `mxnet-rounded`.
///
/// ```
/// use planlab_dsa::{Bytes, OnlineAllocator, Simulated, Stream};
/// use planlab_solvers::online::MxnetRounded;
///
/// let mut pool = MxnetRounded::new(Box::new(Simulated::new()));
/// let block = pool.alloc(Bytes::new(5000), Stream::default())?;
/// pool.free(block)?;
/// assert_eq!(pool.alloc(Bytes::new(8000), Stream::default())?, block);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct MxnetRounded(ExactSize);

fn size_class(size: u64) -> Option<u64> {
    if size <= 1 << CUTOFF {
        Some(size.next_power_of_two().max(1 << LEAST))
    } else {
        size.checked_next_multiple_of(1 << CUTOFF)
    }
}

exact_size_pool!(MxnetRounded, size_class, keep_reserve);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_are_powers_of_two_up_to_the_cutoff() {
        let cutoff = 1 << CUTOFF;
        for (size, expected) in [
            (1, 4096),
            (4097, 8192),
            (cutoff, cutoff),
            (cutoff + 1, 2 * cutoff),
            (5 * cutoff / 2, 3 * cutoff),
        ] {
            assert_eq!(size_class(size), Some(expected), "{size}");
        }
    }
}
