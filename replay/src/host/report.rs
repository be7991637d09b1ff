//! What a replay came to.

use serde::{Deserialize, Serialize};

/// How a replay ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum End {
    /// Every request was served.
    #[default]
    Complete,
    /// A request found no memory.
    OutOfMemory,
    /// Live memory was handed out again, or what was written was not there any more.
    Corrupt,
    /// The contender is not there, or cannot do what was asked.
    Unavailable,
}

/// What a replay came to: times in nanoseconds, memory in bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// How it ended.
    pub end: End,
    /// What went wrong, in one line.
    pub reason: String,
    /// Bytes of addresses that a thread's allocator asked for at once and did not get, if memory ended for that.
    #[serde(default)]
    pub refused_range: Option<u64>,
    /// What the allocator says of its version and the options in force; empty where there is nothing to say.
    pub options: String,
    /// Whether every byte was written and looked for before anything was timed; else only addresses were checked.
    pub is_pattern_checked: bool,
    /// Propagations before the timed ones, those that were checked included.
    pub warm_up: u32,
    /// Whether the reserved bytes had stopped changing by then; without a warm-up, by the last sample.
    pub is_steady: bool,
    /// Timed propagations.
    pub samples: Vec<Sample>,
    /// Time for a request; none where more than half of it would be the clock's.
    pub alloc: Option<CallQuantiles>,
    /// Time for a free, likewise.
    pub free: Option<CallQuantiles>,
    /// The most bytes ever reserved; of several threads with a plan or pool each, the sum.
    pub reserved_peak: u64,
    /// The most bytes ever handed out at once, as the contender rounds them.
    pub used_peak: Option<u64>,
    /// The most bytes that became resident, if the blocks were touched.
    pub physical_peak: Option<u64>,
    /// Calls for memory to the system, where the contender counts them.
    pub device_allocations: u64,
    /// Entries of free lists that were looked at in one propagation, when steady; of all threads.
    pub search_steps: u64,
    /// Time that threads waited for locks while propagations were timed.
    pub lock_wait_ns: Option<u64>,
}

/// Propagations that were timed together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sample {
    /// How many, of each thread.
    pub propagations: u32,
    /// From when the first thread began to when the last had done.
    pub wall_ns: u64,
    /// CPU time of all threads together.
    pub cpu_ns: u64,
    /// Bytes reserved afterwards.
    pub reserved: u64,
    /// The most bytes that were held of the host's memory meanwhile, of several threads the sum of each one's most;
    /// none of allocators that processes use.
    #[serde(default)]
    pub reserved_peak: Option<u64>,
    /// Plans made so far by all threads, where the contender plans.
    pub plans: Option<u64>,
    /// The time that making them took so far; part of the times of the samples in which they were made.
    pub planning_ns: Option<u64>,
}

/// Quantiles of the time for one call, from batches of calls, in picoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallQuantiles {
    /// Half of the batches were faster.
    pub median_ps: u64,
    /// 99 of 100 batches were faster.
    pub p99_ps: u64,
    /// Batches.
    pub batches: u64,
}

impl CallQuantiles {
    /// The quantiles of these times; none of none.
    pub(super) fn of(mut times: Vec<u64>) -> Option<Self> {
        times.sort_unstable();
        let last = times.len().checked_sub(1)?;
        Some(Self {
            median_ps: times[last / 2],
            p99_ps: times[last - last / 100],
            batches: times.len() as u64,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_times_that_were_measured() {
        assert_eq!(CallQuantiles::of(Vec::new()), None);
        let of = |times: Vec<u64>| CallQuantiles::of(times).map(|found| (found.median_ps, found.p99_ps));
        assert_eq!(of(vec![7]), Some((7, 7)));
        assert_eq!(of((1..=200).rev().collect()), Some((100, 199)));
    }
}
