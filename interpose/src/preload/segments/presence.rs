//! Whether a process watches this memory: see `idle`.

use std::sync::atomic::{AtomicI32, Ordering};

/// Its number while it uses this memory; the kernel clears it, however the process ends.
pub(super) static ALIVE: AtomicI32 = AtomicI32::new(0);

/// Whether no watching process uses this memory. Makes no system call.
pub(super) fn has_ended() -> bool {
    ALIVE.load(Ordering::Acquire) == 0
}
