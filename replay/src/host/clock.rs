//! Clocks, and the kernel's figures on this process's memory.

use std::fs;

use rustix::time::{ClockId, clock_gettime};

/// Nanoseconds of a clock that runs whatever the process does; `CLOCK_MONOTONIC`.
#[inline]
pub(super) fn monotonic_ns() -> u64 {
    clock_nanoseconds(ClockId::Monotonic)
}

/// Nanoseconds that this thread spent on a core, including in the kernel; `CLOCK_THREAD_CPUTIME_ID`.
pub(super) fn thread_cpu_ns() -> u64 {
    clock_nanoseconds(ClockId::ThreadCPUTime)
}

#[inline]
#[expect(clippy::cast_sign_loss, reason = "these clocks count from 0")]
fn clock_nanoseconds(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Watches the resident memory of this process.
pub(super) struct Resident {
    /// Resident bytes when the watch began; `None` if the kernel cannot forget an earlier peak.
    before: Option<u64>,
}

impl Resident {
    /// Makes the kernel forget the highest resident size so far.
    pub(super) fn watch_peak() -> Self {
        let is_reset = fs::write("/proc/self/clear_refs", "5").is_ok();
        Self { before: bytes_of("/proc/self/status", "VmRSS:").filter(|_| is_reset) }
    }

    /// The peak of resident bytes since the watch began, above the bytes resident then.
    pub(super) fn peak_growth(&self) -> Option<u64> {
        Some(bytes_of("/proc/self/status", "VmHWM:")?.saturating_sub(self.before?))
    }
}

/// Bytes of memory that the machine can still provide.
pub(super) fn available_memory() -> Option<u64> {
    bytes_of("/proc/meminfo", "MemAvailable:")
}

fn bytes_of(file: &str, key: &str) -> Option<u64> {
    let text = fs::read_to_string(file).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(key))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_do_not_go_back() {
        let (wall, cpu) = (monotonic_ns(), thread_cpu_ns());
        let sum: u64 = std::hint::black_box((0..100_000).map(std::hint::black_box).sum());
        assert!(sum > 0 && monotonic_ns() > wall && thread_cpu_ns() >= cpu);
    }

    #[test]
    fn memory_that_is_touched_is_seen() {
        let watch = Resident::watch_peak();
        let Some(before) = watch.peak_growth() else { return };
        let block = std::hint::black_box(vec![1_u8; 32 << 20]);
        let after = watch.peak_growth().expect("it was known before");
        assert!(after >= before && after >= 24 << 20, "{before} {after}");
        drop(block);
        assert!(available_memory().is_none_or(|bytes| bytes > 0));
    }
}
