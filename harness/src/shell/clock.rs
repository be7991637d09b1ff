//! Clocks: the date, a monotonic clock that all processes share, and CPU time.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::time::{ClockId, clock_gettime};

use super::quantity::as_nanoseconds;

/// Nanoseconds since 1970.
pub(crate) fn now_ns() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, as_nanoseconds)
}

/// The time on a clock that all processes share and nobody can set.
pub(crate) fn monotonic_time() -> Duration {
    read_clock(ClockId::Monotonic)
}

/// CPU time of this process, of all its threads together.
pub(crate) fn process_cpu_time() -> Duration {
    read_clock(ClockId::ProcessCPUTime)
}

/// CPU time of this thread.
pub(crate) fn thread_cpu_time() -> Duration {
    read_clock(ClockId::ThreadCPUTime)
}

fn read_clock(clock: ClockId) -> Duration {
    Duration::try_from(clock_gettime(clock)).unwrap_or_default()
}
