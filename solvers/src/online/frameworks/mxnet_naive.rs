//! `MXNet`'s default pool for devices, `Naive`: reuses freed blocks for requests of the same rounded size.
//!
//! Requests are rounded up to 4 KiB, and beyond 2 MiB up to 2 MiB. Nothing is split or joined.
//!
//! # References
//!
//! 1. Apache `MXNet` 1.x, `src/storage/pooled_storage_manager.h`, `GPUPooledStorageManager`.
//!
//! # Complexity
//!
//! O(log s) for a request and for a free, with s sizes.
//!
//! # Deviations from the original
//!
//! Releases before 1.0 used the exact size; this is the rounding of the last releases.

use crate::online::blocks::{ExactSize, exact_size_pool};

const PAGE: u64 = 4096;

/// Larger blocks are multiples of this.
const LARGE: u64 = 2 << 20;

/// One part in this many of the device's memory is left free: 5 %.
const RESERVE_PART: u64 = 20;

/// Exact size after rounding to pages; key `mxnet-naive`.
///
/// ```
/// use planlab_dsa::{Bytes, OnlineAllocator, Simulated, Stream};
/// use planlab_solvers::online::MxnetNaive;
///
/// let mut pool = MxnetNaive::new(Box::new(Simulated::new()));
/// let block = pool.alloc(Bytes::new(3 << 20), Stream::default())?;
/// assert_eq!(pool.usage().reserved, Bytes::new(4 << 20));
/// # Ok::<(), planlab_dsa::AllocError>(())
/// ```
pub struct MxnetNaive(ExactSize);

fn size_class(size: u64) -> Option<u64> {
    let pages = size.checked_next_multiple_of(PAGE)?;
    if pages > LARGE { pages.checked_next_multiple_of(LARGE) } else { Some(pages) }
}

/// Gives all cached blocks back if a block of `class` bytes would leave too little free on the device.
pub(super) fn keep_reserve(pool: &mut ExactSize, class: u64) {
    let Some(memory) = pool.device.device_memory() else { return };
    let (free, kept) = (memory.free.get(), memory.total.get() / RESERVE_PART);
    if free <= kept || class > free - kept {
        pool.release_cached();
    }
}

exact_size_pool!(MxnetNaive, size_class, keep_reserve);

#[cfg(test)]
mod tests {
    use planlab_dsa::{Bytes, OnlineAllocator, Simulated, Stream};

    use super::*;

    #[test]
    fn classes_are_pages_and_then_two_mebibytes() {
        for (size, expected) in
            [(1, PAGE), (PAGE, PAGE), (PAGE + 1, 2 * PAGE), (LARGE, LARGE), (LARGE + 1, 2 * LARGE)]
        {
            assert_eq!(size_class(size), Some(expected), "{size}");
        }
        assert_eq!(size_class(u64::MAX), None);
    }

    #[test]
    fn the_cache_goes_back_before_the_device_is_nearly_full() {
        let mut pool = MxnetNaive::new(Box::new(Simulated::with_capacity(Bytes::new(100 * PAGE))));
        let mut alloc = |pages: u64| {
            let block = pool.alloc(Bytes::new(pages * PAGE), Stream::default()).expect("room");
            pool.free(block).expect("live");
            pool.usage().reserved.get() / PAGE
        };
        // 45 more would fit, but leave less than 5.
        assert_eq!([alloc(50), alloc(45), alloc(1)], [50, 95, 1]);
        assert_eq!([alloc(60), alloc(36)], [61, 36]);
    }
}
