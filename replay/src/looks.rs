//! Times in nanoseconds, and the clock's share in the times of single calls.

use std::time::{Duration, Instant};

/// How many looks at the clock are compared.
const LOOKS: usize = 101;

/// Whether looking at the clock took more than half of `all_ns`, the time of `runs` runs of calls, each between two
/// looks.
pub(crate) fn are_mostly_clock(runs: u64, all_ns: u64) -> bool {
    is_over_half(runs, between_looks_ns(), all_ns)
}

pub(crate) fn as_nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

fn is_over_half(runs: u64, look_ns: u64, all_ns: u64) -> bool {
    runs.saturating_mul(look_ns).saturating_mul(2) > all_ns
}

/// The median time from one look at the clock to the next, in nanoseconds.
fn between_looks_ns() -> u64 {
    let look = |_| as_nanoseconds(Instant::now().elapsed());
    let mut times: Vec<u64> = (0..LOOKS).map(look).collect();
    times.sort_unstable();
    times[LOOKS / 2]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_of_the_time_is_not_too_much() {
        assert!(!is_over_half(10, 25, 500) && is_over_half(10, 25, 499));
        assert!(!is_over_half(0, 25, 0) && is_over_half(u64::MAX, u64::MAX, 1));
    }

    #[test]
    fn a_second_is_no_look() {
        assert!(!are_mostly_clock(1, 1_000_000_000));
    }
}
