//! CPU time and memory that processes have used.

use std::fs;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::shell::clock::process_cpu_time;
use crate::shell::quantity::as_nanoseconds;

/// What an act of this process used.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct ProcessUsage {
    pub(crate) cpu_ns: u64,
    pub(crate) peak_rss_bytes: Option<u64>,
}

/// Returns the result of an act and what this process and the children that it waited for used meanwhile.
pub(crate) fn measured<T>(act: impl FnOnce() -> T) -> (T, ProcessUsage) {
    reset_peak_rss();
    let before = cpu_time();
    let value = act();
    let cpu_ns = as_nanoseconds(cpu_time().saturating_sub(before));
    (value, ProcessUsage { cpu_ns, peak_rss_bytes: peak_rss_of(std::process::id()) })
}

/// CPU time of this process and of its children that have ended.
fn cpu_time() -> Duration {
    process_cpu_time() + children_cpu_time().unwrap_or_default()
}

/// Measured in the kernel's ticks, usually a hundred per second.
fn children_cpu_time() -> Option<Duration> {
    let stat = fs::read_to_string("/proc/self/stat").ok()?;
    // The name may contain anything; the fields after it are plain numbers.
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_ascii_whitespace().collect();
    let ticks: u64 = fields.get(13)?.parse::<u64>().ok()? + fields.get(14)?.parse::<u64>().ok()?;
    let per_second = rustix::param::clock_ticks_per_second();
    Some(Duration::from_nanos(ticks.saturating_mul(1_000_000_000) / per_second.max(1)))
}

/// Resets the kernel's record of the highest resident size of this process.
fn reset_peak_rss() {
    // Not every kernel supports this; the peak is then that of the whole process.
    let _ = fs::write("/proc/self/clear_refs", "5");
}

/// The most resident memory of a process so far, in bytes.
pub(crate) fn peak_rss_of(pid: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024)
}
