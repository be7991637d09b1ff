//! The clock of a run; tests can replace it.

use std::fmt;
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

static ORIGIN: LazyLock<Instant> = LazyLock::new(Instant::now);

/// A clock that never goes backwards: the machine's, or one that a test provides.
///
/// ```
/// use std::sync::atomic::{AtomicU64, Ordering};
/// use std::time::Duration;
///
/// use planlab_dsa::Clock;
///
/// let seconds = AtomicU64::new(0);
/// let fast = Clock::new(move || Duration::from_secs(seconds.fetch_add(1, Ordering::Relaxed)));
/// assert_eq!((fast.now(), fast.now()), (Duration::ZERO, Duration::from_secs(1)));
/// let machine = Clock::default();
/// assert!(machine.now() <= machine.now());
/// ```
#[derive(Clone, Default)]
pub struct Clock(Option<Arc<dyn Fn() -> Duration + Send + Sync>>);

impl Clock {
    /// A clock that shows what `read` returns: the time since any fixed moment, never less than before.
    #[must_use]
    pub fn new(read: impl Fn() -> Duration + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(read)))
    }

    /// The time since the clock's fixed moment.
    #[must_use]
    pub fn now(&self) -> Duration {
        match &self.0 {
            Some(read) => read(),
            None => ORIGIN.elapsed(),
        }
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Clock(of a test)" } else { "Clock(of the machine)" })
    }
}
