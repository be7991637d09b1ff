//! What it cost to serve the requests of a workload: by an online allocator, or from a plan, on simulated, host or
//! device memory. Times are in nanoseconds, memory is in bytes.

use std::fmt;

use serde::{Deserialize, Serialize};

/// What is done with the memory between a request and its free.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Work {
    /// Nothing: addresses alone.
    #[default]
    None,
    /// A byte of each page of 4 KiB is written.
    Pages,
    /// Every byte is written after the request and checked before the free.
    Pattern,
    /// On a device, one kernel writes the buffer after the request and one reads it before the free.
    Kernels,
    /// As `Kernels`, and the device is kept busy for as long as the recorded operations take.
    Operations,
}

impl Work {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::None, Self::Pages, Self::Pattern, Self::Kernels, Self::Operations];

    /// The name in files and on screen.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Pages => "pages",
            Self::Pattern => "pattern",
            Self::Kernels => "kernels",
            Self::Operations => "operations",
        }
    }

    /// Whether a processor of the host does it.
    #[must_use]
    pub const fn is_for_host(self) -> bool {
        matches!(self, Self::None | Self::Pages | Self::Pattern)
    }

    /// Whether a device does it.
    #[must_use]
    pub const fn is_for_device(self) -> bool {
        matches!(self, Self::None | Self::Kernels | Self::Operations)
    }
}

impl fmt::Display for Work {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// How it ended. Closed: every row has one of these.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum End {
    /// Every request was served.
    #[default]
    Complete,
    /// A request found no memory.
    OutOfMemory,
    /// Live memory was handed out again, or what was written was not there any more.
    Corrupt,
    /// The device or the contender is not there, or cannot do what was asked.
    Unavailable,
    /// The device failed, or the process that did it crashed, was killed or wrote nonsense.
    Failed,
}

impl End {
    /// The name in files and on screen.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Complete => "complete",
            Self::OutOfMemory => "out-of-memory",
            Self::Corrupt => "corrupt",
            Self::Unavailable => "unavailable",
            Self::Failed => "failed",
        }
    }
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Propagations that were timed together, or played.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sample {
    /// How many, of each thread: the times of short ones are taken together.
    pub propagations: u32,
    /// Wall time of all of them. Of several threads: until the last was done.
    pub wall_ns: u64,
    /// CPU time of all threads together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_ns: Option<u64>,
    /// On a device: the host's time until everything was enqueued. None without kernels, and where there is more than
    /// the driver's queue holds, so that the host waits for the device.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enqueue_ns: Option<u64>,
    /// On a device: from the first to the last of its work; none without kernels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device_ns: Option<u64>,
    /// What was reserved at its end, if that was looked at: over simulated memory before what is still live is freed,
    /// else after that, when a plan was made and what it replaces was given back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reserved: Option<u64>,
    /// The most that was reserved at once from its begin to its end, by the count of the memory below, if that was
    /// watched; of several threads the sum of each one's most. None of allocators that processes use, nor of a
    /// driver's pool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reserved_peak: Option<u64>,
    /// Plans made so far by all threads, if it plans.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plans: Option<u64>,
    /// The time that making them took so far; part of the wall time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub planning_ns: Option<u64>,
    /// Requests that a plan served so far, of all threads, if it plans.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub planned: Option<u64>,
    /// Requests that none served so far, likewise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missed: Option<u64>,
}

/// Requests to an allocator that plans which no plan served, by the reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Missed {
    /// The plan has no such request: there is no plan yet, it was never made before, or it comes at another place than
    /// the plan has it.
    pub unknown: u64,
    /// It is larger than planned.
    pub larger: u64,
    /// Its place is in use: by a block that lives longer than planned, or that lives at another time.
    pub taken: u64,
    /// It outlived the propagation that was recorded, and is not planned.
    pub outliving: u64,
    /// The device had no memory for the plan.
    pub no_memory: u64,
}

impl Missed {
    /// All of them.
    #[must_use]
    pub const fn total(self) -> u64 {
        self.unknown + self.larger + self.taken + self.outliving + self.no_memory
    }

    /// Of two allocators together.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self {
            unknown: self.unknown + other.unknown,
            larger: self.larger + other.larger,
            taken: self.taken + other.taken,
            outliving: self.outliving + other.outliving,
            no_memory: self.no_memory + other.no_memory,
        }
    }
}

/// Quantiles of the time for one call, from batches of calls, in picoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallTime {
    /// Half of the batches were faster.
    pub median_ps: u64,
    /// 99 of 100 batches were faster.
    pub p99_ps: u64,
    /// Batches.
    pub batches: u64,
}

impl CallTime {
    /// The quantiles of these times, picoseconds; none of none.
    #[must_use]
    pub fn of(mut times: Vec<u64>) -> Option<Self> {
        times.sort_unstable();
        let last = times.len().checked_sub(1)?;
        let (median_ps, p99_ps) = (times[last / 2], times[last - last / 100]);
        Some(Self { median_ps, p99_ps, batches: times.len() as u64 })
    }
}

/// What a contender came to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Performance {
    /// How it ended.
    pub status: End,
    /// What went wrong, in one line; empty where nothing did.
    pub reason: String,
    /// Propagations before the timed ones: on the host with those whose bytes were checked, on a device those of the
    /// longest round.
    pub warm_up: u32,
    /// Whether the reserved bytes had stopped changing when the warm-up ended, on a device in every round; without a
    /// warm-up, whether they had by the last sample.
    pub is_steady: bool,
    /// Timed propagations in their order.
    pub samples: Vec<Sample>,
    /// Time for a request; none where more than half of it would be the clock's.
    pub alloc: Option<CallTime>,
    /// Time for a free, likewise.
    pub free: Option<CallTime>,
    /// The most bytes ever reserved; of several threads with a plan or pool each, the sum.
    pub reserved_peak: u64,
    /// The most bytes ever handed out at once, as the contender rounds them.
    pub used_peak: Option<u64>,
    /// The most bytes that the process or the device had more than before, by their own counters.
    pub physical_peak: Option<u64>,
    /// Calls for memory to the device or the system, warm-up included, where the contender counts them.
    pub device_allocations: u64,
    /// Entries of free lists that were looked at in one propagation, when steady; of all threads.
    pub search_steps: u64,
    /// Time that threads waited for locks while propagations were timed, where the contender says so.
    pub lock_wait_ns: Option<u64>,
    /// How often the device had no room, of contenders that then gave something back and asked again, or failed.
    #[serde(default)]
    pub refusals: Option<u64>,
    /// Requests of all propagations, the warm-up included, that no plan served, of contenders that plan by themselves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missed: Option<Missed>,
}

impl Performance {
    /// Of a contender that came to nothing.
    #[must_use]
    pub fn failed(status: End, reason: String) -> Self {
        Self { status, reason, ..Self::default() }
    }

    /// Propagations that its samples are of, without the warm-up.
    #[must_use]
    pub fn propagations(&self) -> u64 {
        self.samples.iter().map(|sample| u64::from(sample.propagations)).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_times_that_were_measured() {
        assert_eq!(CallTime::of(Vec::new()), None);
        let of = |times: Vec<u64>| CallTime::of(times).map(|of| (of.median_ps, of.p99_ps, of.batches));
        assert_eq!(of(vec![7]), Some((7, 7, 1)));
        assert_eq!(of((1..=200).rev().collect()), Some((100, 199, 200)));
    }

    #[test]
    fn names_are_those_in_files() {
        for work in Work::ALL {
            assert_eq!(serde_json::to_value(work).expect("a name"), work.name());
            assert!(work.is_for_host() || work.is_for_device());
        }
        for end in [End::Complete, End::OutOfMemory, End::Corrupt, End::Unavailable, End::Failed] {
            assert_eq!(serde_json::to_value(end).expect("a name"), end.name());
        }
    }
}
