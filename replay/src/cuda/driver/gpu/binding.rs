//! Makes the right driver's context current on the calling thread.
//!
//! The driver's library keeps a current context for each thread, and most calls refer to it. Any thread may use a
//! [`Device`], as with allocators and their backings, so every call first makes the context of its own driver current.
//! That calls the library only if this thread last called for another driver or for none; otherwise it is one
//! comparison.
//!
//! [`Device`]: crate::cuda::Device

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::cuda::driver::interface::DriverError;

thread_local! {
    /// The number of the binding in force.
    static IN_FORCE: Cell<u64> = const { Cell::new(0) };
}

/// Stands for a driver's context by a unique number; addresses of contexts may recur.
#[derive(Debug)]
pub(super) struct Binding(u64);

impl Binding {
    pub(super) fn new() -> Self {
        static LAST: AtomicU64 = AtomicU64::new(0);
        Self(LAST.fetch_add(1, Ordering::Relaxed) + 1)
    }

    /// Makes the context current with `set`, if it is not.
    #[inline]
    pub(super) fn ensure_current(
        &self,
        set: impl FnOnce() -> Result<(), DriverError>,
    ) -> Result<(), DriverError> {
        if IN_FORCE.get() != self.0 {
            set()?;
            IN_FORCE.set(self.0);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_library_is_asked_once_for_each_thread_and_change() {
        let asked = AtomicU64::new(0);
        let set = || {
            asked.fetch_add(1, Ordering::Relaxed);
            Ok(())
        };
        let count = || asked.load(Ordering::Relaxed);
        let [first, second] = [Binding::new(), Binding::new()];
        (0..3).for_each(|_| first.ensure_current(set).expect("set"));
        assert_eq!(count(), 1);
        std::thread::scope(|scope| {
            scope.spawn(|| (0..3).for_each(|_| first.ensure_current(set).expect("set")));
        });
        assert_eq!(count(), 2, "a thread of its own");
        first.ensure_current(set).expect("set");
        assert_eq!(count(), 2, "what other threads do does not matter");
        [&second, &second, &first].into_iter().for_each(|binding| binding.ensure_current(set).expect("set"));
        assert_eq!(count(), 4);
    }

    #[test]
    fn a_refusal_is_no_binding() {
        let binding = Binding::new();
        let refused = Err(DriverError::from_failure("cuCtxSetCurrent", "lost"));
        assert_eq!(binding.ensure_current(|| refused.clone()), refused);
        let mut is_asked = false;
        let again = binding.ensure_current(|| {
            is_asked = true;
            Ok(())
        });
        assert_eq!((again, is_asked), (Ok(()), true));
    }
}
