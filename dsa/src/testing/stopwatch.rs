//! Time that a busy machine does not lengthen.

use std::fs;
use std::time::{Duration, Instant};

/// Measures the time since its start without that for which this thread could run but no core was free. A test that
/// must distinguish a quick step from one of minutes may run beside any number of others.
#[derive(Clone, Copy, Debug)]
pub struct Stopwatch {
    begin: Instant,
    /// The time that this thread has waited for a core until then.
    waited: Duration,
}

impl Stopwatch {
    /// Starts for this thread.
    #[must_use]
    pub fn start() -> Self {
        Self { begin: Instant::now(), waited: time_waited() }
    }

    /// The time since the start; read by the thread that started it.
    #[must_use]
    pub fn elapsed(&self) -> Duration {
        self.begin.elapsed().saturating_sub(time_waited().saturating_sub(self.waited))
    }

    /// Panics if more than `limit` has elapsed.
    pub fn assert_within(&self, limit: Duration) {
        let elapsed = self.elapsed();
        assert!(elapsed <= limit, "took {elapsed:?}, more than {limit:?}");
    }
}

/// The time that this thread was ready to run and did not; 0 if the kernel does not say.
fn time_waited() -> Duration {
    let text = fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanoseconds = text.split_ascii_whitespace().nth(1).and_then(|field| field.parse().ok());
    Duration::from_nanos(nanoseconds.unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sleep_counts_and_a_limit_is_held() {
        let stopwatch = Stopwatch::start();
        std::thread::sleep(Duration::from_millis(20));
        assert!(stopwatch.elapsed() >= Duration::from_millis(20));
        stopwatch.assert_within(Duration::from_secs(3600));
        let late = std::panic::catch_unwind(|| stopwatch.assert_within(Duration::from_millis(20)));
        assert!(late.is_err());
    }
}
