//! The cost of serving a workload's requests, by an online allocator or from a plan, on simulated, host or device
//! memory. Times are in nanoseconds, memory in bytes.

use serde::{Deserialize, Serialize};

crate::named_enum! {
    /// What is done with the memory between a request and its free.
    #[derive(Default, PartialOrd, Ord)]
    pub enum Work {
        /// Nothing; only addresses are used.
        #[default]
        None = "none",
        /// Write one byte of each 4 KiB page.
        Pages = "pages",
        /// Write every byte after the request and check it before the free.
        Pattern = "pattern",
        /// On a device: one kernel writes the buffer after the request and one reads it before the free.
        Kernels = "kernels",
        /// Like `Kernels`, and keep the device busy for as long as the recorded operations take.
        Operations = "operations",
    }
}

impl Work {
    /// Whether a processor of the host does the work.
    #[must_use]
    pub const fn is_for_host(self) -> bool {
        matches!(self, Self::None | Self::Pages | Self::Pattern)
    }

    /// Whether a device does the work.
    #[must_use]
    pub const fn is_for_device(self) -> bool {
        matches!(self, Self::None | Self::Kernels | Self::Operations)
    }
}

crate::named_enum! {
    /// How a measurement ended; every row has exactly one of these.
    #[derive(Default, PartialOrd, Ord)]
    pub enum End {
        /// Every request was served.
        #[default]
        Complete = "complete",
        /// The allocator had no memory for a request.
        OutOfMemory = "out-of-memory",
        /// Live memory was handed out again, or a check found other bytes than were written.
        Corrupt = "corrupt",
        /// The device or the contender is missing or lacks a required feature.
        Unavailable = "unavailable",
        /// The device failed, or the worker process crashed, was killed or wrote invalid output.
        Failed = "failed",
    }
}

/// Propagations that were played or timed together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sample {
    /// The number of propagations per thread; short ones are timed together.
    pub propagations: u32,
    /// Wall time of all of them; with several threads, until the last one ended.
    pub wall_ns: u64,
    /// CPU time of all threads together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_ns: Option<u64>,
    /// On a device: the host's time until all work was enqueued. `None` without kernels, or if the work overfills the
    /// driver's queue, so that the host waits for the device.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enqueue_ns: Option<u64>,
    /// On a device: from the beginning of its first work to the end of its last; `None` without kernels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device_ns: Option<u64>,
    /// Reserved bytes at the end, if measured. On simulated memory: before the remaining live blocks are freed.
    /// Otherwise: after that, once a new plan was made and the memory of the old one given back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reserved: Option<u64>,
    /// The most bytes reserved at once during the sample, as counted by the memory below, if measured; the sum over
    /// threads. `None` for allocators that processes use and for a driver's pool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reserved_peak: Option<u64>,
    /// Plans made so far by all threads, if the allocator plans.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plans: Option<u64>,
    /// Time spent making them so far; part of the wall time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub planning_ns: Option<u64>,
    /// Requests served from a plan so far, by all threads, if the allocator plans.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub planned: Option<u64>,
    /// Requests not served from a plan so far, likewise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missed: Option<u64>,
}

/// Requests that a planning allocator did not serve from its plan, by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Missed {
    /// The plan does not contain the request: there is no plan yet, or the request is new or comes at another position.
    pub unknown: u64,
    /// The request is larger than planned.
    pub larger: u64,
    /// Its place is in use, by a block that lives longer than planned or at another time.
    pub taken: u64,
    /// The request outlived the recorded propagation and is not planned.
    pub outliving: u64,
    /// The device had no memory for the plan.
    pub no_memory: u64,
}

impl Missed {
    /// The total over all reasons.
    #[must_use]
    pub const fn total(self) -> u64 {
        self.unknown + self.larger + self.taken + self.outliving + self.no_memory
    }

    /// The sum for two allocators.
    #[must_use]
    pub const fn combined_with(self, other: Self) -> Self {
        Self {
            unknown: self.unknown + other.unknown,
            larger: self.larger + other.larger,
            taken: self.taken + other.taken,
            outliving: self.outliving + other.outliving,
            no_memory: self.no_memory + other.no_memory,
        }
    }
}

/// Quantiles of the time per call, over batches of calls, in picoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallTime {
    /// Half of the batches were faster.
    pub median_ps: u64,
    /// 99 of 100 batches were faster.
    pub p99_ps: u64,
    /// The number of batches.
    pub batches: u64,
}

impl CallTime {
    /// The quantiles of these times in picoseconds; `None` if there are no times.
    #[must_use]
    pub fn from_times(mut times: Vec<u64>) -> Option<Self> {
        times.sort_unstable();
        let last = times.len().checked_sub(1)?;
        let (median_ps, p99_ps) = (times[last / 2], times[last - last / 100]);
        Some(Self { median_ps, p99_ps, batches: times.len() as u64 })
    }
}

/// The measurements of one contender.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Performance {
    /// How it ended.
    pub status: End,
    /// What went wrong, in one line; empty if nothing did.
    pub reason: String,
    /// Propagations before the timed ones. On the host this includes those whose bytes were checked; on a device it is
    /// the number in the longest round.
    pub warm_up: u32,
    /// Whether the reserved bytes were stable when the warm-up ended, on a device in every round. Without a warm-up:
    /// whether they were stable by the last sample.
    pub is_steady: bool,
    /// The timed propagations in order.
    pub samples: Vec<Sample>,
    /// Time per request; `None` if the clock itself would take more than half of it.
    pub alloc: Option<CallTime>,
    /// Time per free, likewise.
    pub free: Option<CallTime>,
    /// The most bytes ever reserved; the sum over threads if each has its own plan or pool.
    pub reserved_peak: u64,
    /// The most bytes ever handed out at once, after the contender's rounding.
    pub used_peak: Option<u64>,
    /// The largest increase of memory of the process or device, by their own counters.
    pub physical_peak: Option<u64>,
    /// Memory requests to the device or the system, including the warm-up, if the contender counts them.
    pub device_allocations: u64,
    /// Free list entries inspected in one steady propagation, by all threads.
    pub search_steps: u64,
    /// Time that threads waited for locks during timed propagations, if the contender reports it.
    pub lock_wait_ns: Option<u64>,
    /// How often the device had no room, for contenders that then released memory and tried again, or failed.
    pub refusals: Option<u64>,
    /// Requests not served from a plan, over all propagations including the warm-up, for contenders that plan by
    /// themselves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missed: Option<Missed>,
}

impl Performance {
    /// A contender without measurements.
    #[must_use]
    pub fn without_measurements(status: End, reason: String) -> Self {
        Self { status, reason, ..Self::default() }
    }

    /// The number of timed propagations.
    #[must_use]
    pub fn timed_propagations(&self) -> u64 {
        self.samples.iter().map(|sample| u64::from(sample.propagations)).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_times_that_were_measured() {
        assert_eq!(CallTime::from_times(Vec::new()), None);
        let of =
            |times: Vec<u64>| CallTime::from_times(times).map(|of| (of.median_ps, of.p99_ps, of.batches));
        assert_eq!(of(vec![7]), Some((7, 7, 1)));
        assert_eq!(of((1..=200).rev().collect()), Some((100, 199, 200)));
    }
}
