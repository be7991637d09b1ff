//! Whether the library makes no system call any more, because the program has forbidden them to itself.

use std::sync::atomic::{AtomicBool, Ordering};

static IS_FROZEN: AtomicBool = AtomicBool::new(false);

#[inline]
pub(crate) fn is_frozen() -> bool {
    IS_FROZEN.load(Ordering::Relaxed)
}

/// Makes the library frozen; whether it was so before.
pub(crate) fn freeze() -> bool {
    IS_FROZEN.swap(true, Ordering::Relaxed)
}
