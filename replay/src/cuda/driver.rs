//! What a replay needs of a device's driver.
//!
//! Everything runs on one stream, which belongs to the driver: what was launched earlier is done earlier. Two
//! events mark the begin and the end of what is timed, and a few thousand counters take what the kernels find.
//!
//! Memory is named by [`Address`]; nothing here checks that an address which a kernel gets is one of the device's,
//! which is why [`Driver::launch`] is `unsafe`. The module around it keeps track of what the driver handed out.

#![allow(unsafe_code, reason = "a launch is unsafe: nothing checks the addresses that it gets")]

use std::time::Duration;

use planlab_dsa::{Address, Bytes, DeviceMemory};
use serde::{Deserialize, Serialize};

/// Kernels work on words of so many bytes; blocks begin at multiples of it.
pub(super) const WORD: u64 = 16;

/// Counters that kernels add to. Those of buffers are shared where there are more buffers.
pub(super) const SLOTS: usize = 1 << 14;

/// A driver, or what stands for one.
pub(super) trait Driver: Send + Sync {
    /// What it calls itself.
    fn info(&self) -> &DeviceInfo;

    /// Free and total memory of the device, whoever holds it.
    fn memory(&self) -> Result<DeviceMemory, DriverError>;

    /// Memory, at once; what runs may be waited for.
    fn malloc(&self, size: Bytes) -> Result<Address, DriverError>;

    /// Gives memory of [`malloc`](Self::malloc) back after what runs is done.
    fn free(&self, at: Address) -> Result<(), DriverError>;

    /// Memory for what is launched afterwards, from the pool of the stream.
    fn malloc_async(&self, size: Bytes) -> Result<Address, DriverError>;

    /// Gives memory of [`malloc_async`](Self::malloc_async) back to the pool, after what was launched before.
    fn free_async(&self, at: Address) -> Result<(), DriverError>;

    /// What the pool of the stream holds.
    fn pool(&self) -> Result<PoolMemory, DriverError>;

    /// The bytes that the pool keeps at a synchronisation although they are not in use. At first: 0.
    fn keep_in_pool(&self, threshold: Bytes) -> Result<(), DriverError>;

    /// Gives back what is not in use in the pool, and forgets its peaks.
    fn reset_pool(&self) -> Result<(), DriverError>;

    /// Addresses without memory, a multiple of [`page`](Self::page).
    fn reserve(&self, size: Bytes) -> Result<Address, DriverError>;

    /// Gives addresses back; none of them has memory.
    fn unreserve(&self, at: Address, size: Bytes) -> Result<(), DriverError>;

    /// Puts memory under one range of reserved addresses, in pieces of so many bytes, which are multiples of
    /// [`page`](Self::page); all of it, or nothing.
    fn map(&self, at: Address, size: Bytes, piece: Bytes) -> Result<(), DriverError>;

    /// Takes whole pieces of [`map`](Self::map) away, after what runs is done, by their first addresses. What fails
    /// keeps none of the others from going.
    fn unmap(&self, pieces: &[Address]) -> Result<(), DriverError>;

    /// What mapped memory is a multiple of, in bytes.
    fn page(&self) -> Bytes;

    /// Runs a kernel after what was launched before.
    ///
    /// # Safety
    ///
    /// The words that it names are memory of this driver, and stay so until it has run: no call that comes before
    /// the next [`synchronise`](Self::synchronise) takes them away, but for those that wait for what runs.
    unsafe fn launch(&self, kernel: Kernel) -> Result<(), DriverError>;

    /// Sets all counters to 0, after what was launched before.
    fn clear_slots(&self) -> Result<(), DriverError>;

    /// The counters, once all is done.
    fn slots(&self) -> Result<Vec<u64>, DriverError>;

    /// Notes the time at which what was launched before is done.
    fn record(&self, mark: Mark) -> Result<(), DriverError>;

    /// The device's time between the marks, once all is done.
    fn between_marks(&self) -> Result<Duration, DriverError>;

    /// Waits until all is done.
    fn synchronise(&self) -> Result<(), DriverError>;

    /// From now on, what would run is noted.
    fn begin_capture(&self) -> Result<(), DriverError>;

    /// Ends [`begin_capture`](Self::begin_capture): what was noted, ready to run.
    fn end_capture(&self) -> Result<Graph, DriverError>;

    /// Runs all of a graph after what was launched before.
    ///
    /// # Safety
    ///
    /// As for [`launch`](Self::launch), of each kernel in the graph.
    unsafe fn launch_graph(&self, graph: Graph) -> Result<(), DriverError>;

    /// Drops a graph, and gives back what graphs do not use any more. A graph that is not there is left alone.
    fn drop_graph(&self, graph: Graph) -> Result<(), DriverError>;

    /// The most bytes that graphs held since [`drop_graph`](Self::drop_graph).
    fn graph_memory(&self) -> Result<PoolMemory, DriverError>;

    /// Fails in every call from now on, where that is only simulated.
    fn break_down(&self) {}

    /// Gives back all that it holds itself; says what was not taken back. Nothing can be done afterwards.
    fn close(&mut self) -> Result<(), DriverError>;
}

/// A device and its driver.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceInfo {
    /// What rows call it: `cuda:0`, `simulated-cuda`.
    pub key: String,
    /// The device's name, its driver and what its kernels were compiled by.
    pub name: String,
    /// Whether there is no device at all.
    pub is_simulated: bool,
    /// Bytes of its L2 cache, where it says so. What fits in there is not bound by the memory behind it.
    pub l2_bytes: Option<u64>,
}

/// Bytes of a pool that a driver keeps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct PoolMemory {
    pub(super) reserved: u64,
    pub(super) reserved_peak: u64,
    pub(super) used: u64,
    pub(super) used_peak: u64,
}

/// What runs on the device. Words have [`WORD`] bytes; `slot` is a counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kernel {
    /// Writes the pattern of a seed.
    Fill { at: Address, words: u64, seed: u64 },
    /// Reads all words and adds them, in halves of 64 bits, to a counter.
    Sum { at: Address, words: u64, slot: u32 },
    /// Counts the words that are not as the pattern of a seed has them.
    Verify { at: Address, words: u64, seed: u64, slot: u32 },
    /// Keeps the device busy for so many nanoseconds.
    Spin { nanoseconds: u64 },
}

/// What is timed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mark {
    Begin,
    End,
}

/// The number of a graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Graph(pub(super) u64);

/// Why a device did not do what it was asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DriverError {
    /// There is no driver, no device or not what the replay needs of it.
    #[error("no device: {reason}")]
    Unavailable {
        /// What is missing.
        reason: String,
    },
    /// The device has no room.
    #[error("the device has no room for {size} bytes")]
    OutOfMemory {
        /// What was asked for.
        size: Bytes,
    },
    /// Several calls failed of which nobody waits for the answer: those that give something back.
    #[error("{first} (the first of {count} calls that failed)")]
    Several {
        /// The first.
        first: Box<DriverError>,
        /// How many; 2 at least.
        count: u64,
    },
    /// A call failed.
    #[error("{call}: {reason}")]
    Failed {
        /// The call.
        call: &'static str,
        /// What the driver says.
        reason: String,
    },
}

impl DriverError {
    pub(super) fn failed(call: &'static str, reason: impl Into<String>) -> Self {
        Self::Failed { call, reason: reason.into() }
    }

    pub(super) fn unavailable(reason: impl Into<String>) -> Self {
        Self::Unavailable { reason: reason.into() }
    }
}

/// Calls that failed of which nobody waits for the answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Faults {
    first: Option<DriverError>,
    count: u64,
}

impl Faults {
    /// Counts a call that failed.
    pub(super) fn note(&mut self, end: Result<(), DriverError>) {
        if let Err(error) = end {
            self.count += 1;
            self.first.get_or_insert(error);
        }
    }

    /// All of them as one.
    pub(super) fn error(&self) -> Option<DriverError> {
        let first = self.first.clone()?;
        Some(match self.count {
            1 => first,
            count => DriverError::Several { first: Box::new(first), count },
        })
    }

    /// The same where none is a success.
    pub(super) fn end(&self) -> Result<(), DriverError> {
        self.error().map_or(Ok(()), Err)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_of_several_faults_is_named_and_all_are_counted() {
        let mut faults = Faults::default();
        faults.note(Ok(()));
        assert_eq!((faults.error(), faults.end()), (None, Ok(())));
        faults.note(Err(DriverError::failed("cuMemFree", "lost")));
        assert_eq!(faults.error(), Some(DriverError::failed("cuMemFree", "lost")));
        faults.note(Err(DriverError::failed("cuMemUnmap", "gone")));
        let says = faults.end().map_err(|error| error.to_string());
        assert_eq!(says, Err("cuMemFree: lost (the first of 2 calls that failed)".to_owned()));
    }
}
