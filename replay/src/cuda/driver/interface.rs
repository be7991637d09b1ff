//! The interface of a device's driver, as a replay needs it.
//!
//! Everything runs on one stream, which belongs to the driver, so launches finish in order. Two events mark the begin
//! and the end of what is timed, and a few thousand counters collect the results of the kernels.
//!
//! An [`Address`] names memory. Nothing here checks that an address passed to a kernel belongs to the device, so
//! [`Driver::launch_kernel`] is `unsafe`. The module around it keeps track of what the driver handed out.

#![allow(unsafe_code, reason = "a launch is unsafe: nothing checks the addresses that it gets")]

use std::time::Duration;

use planlab_dsa::{Address, Bytes, DeviceMemory};
use serde::{Deserialize, Serialize};

/// The size of a kernel's words in bytes; blocks begin at multiples of it.
pub(crate) const WORD: u64 = 16;

/// Counters that kernels add to. Buffers share counters if there are more buffers than counters.
pub(crate) const SLOTS: usize = 1 << 14;

/// Devices give memory in multiples of this number of bytes.
pub(crate) const GRANULE: u64 = 2 << 20;

/// A driver or its simulation.
pub(crate) trait Driver: Send + Sync {
    /// The device's name and properties.
    fn info(&self) -> &DeviceInfo;

    /// Free and total memory of the device, for all its users.
    fn device_memory(&self) -> Result<DeviceMemory, DriverError>;

    /// Allocates memory at once; may wait for running work.
    fn malloc(&self, size: Bytes) -> Result<Address, DriverError>;

    /// Frees memory of [`malloc`](Self::malloc) after running work is done.
    fn free(&self, at: Address) -> Result<(), DriverError>;

    /// Allocates memory from the stream's pool, for later launches.
    fn malloc_async(&self, size: Bytes) -> Result<Address, DriverError>;

    /// Returns memory of [`malloc_async`](Self::malloc_async) to the pool, after earlier launches.
    fn free_async(&self, at: Address) -> Result<(), DriverError>;

    /// What the stream's pool holds.
    fn pool_memory(&self) -> Result<PoolMemory, DriverError>;

    /// Sets the unused bytes that the pool keeps at a synchronisation. Initially: 0.
    fn keep_in_pool(&self, threshold: Bytes) -> Result<(), DriverError>;

    /// Gives back the pool's unused memory and resets its peaks.
    fn reset_pool(&self) -> Result<(), DriverError>;

    /// Reserves addresses without memory; the size is a multiple of [`page_size`](Self::page_size).
    fn reserve(&self, size: Bytes) -> Result<Address, DriverError>;

    /// Gives reserved addresses back; none of them has memory.
    fn unreserve(&self, at: Address, size: Bytes) -> Result<(), DriverError>;

    /// Puts memory under one range of reserved addresses, in pieces of `piece` bytes, a multiple of
    /// [`page_size`](Self::page_size): all of it, or nothing.
    fn map(&self, at: Address, size: Bytes, piece: Bytes) -> Result<(), DriverError>;

    /// Unmaps whole pieces of [`map`](Self::map), named by their first addresses, after running work is done. If one
    /// fails, the others are unmapped nevertheless.
    fn unmap(&self, pieces: &[Address]) -> Result<(), DriverError>;

    /// The granularity of mapped memory, in bytes.
    fn page_size(&self) -> Bytes;

    /// Runs a kernel after earlier launches.
    ///
    /// # Safety
    ///
    /// The words that it names are memory of this driver and stay so until it has run. No call before the next
    /// [`synchronise`](Self::synchronise) takes them away, except calls that wait for running work.
    unsafe fn launch_kernel(&self, kernel: Kernel) -> Result<(), DriverError>;

    /// Sets all counters to 0, after earlier launches.
    fn clear_slots(&self) -> Result<(), DriverError>;

    /// Returns the counters once all work is done.
    fn read_slots(&self) -> Result<Vec<u64>, DriverError>;

    /// Records the time at which earlier launches are done.
    fn record_mark(&self, mark: Mark) -> Result<(), DriverError>;

    /// The device's time between the marks, once all work is done.
    fn between_marks(&self) -> Result<Duration, DriverError>;

    /// Waits until all work is done.
    fn synchronise(&self) -> Result<(), DriverError>;

    /// From now on, launches are recorded instead of run.
    fn begin_capture(&self) -> Result<(), DriverError>;

    /// Ends [`begin_capture`](Self::begin_capture); returns the recorded launches, ready to run.
    fn end_capture(&self) -> Result<Graph, DriverError>;

    /// Runs a whole graph after earlier launches.
    ///
    /// # Safety
    ///
    /// As for [`launch_kernel`](Self::launch_kernel), for each kernel in the graph.
    unsafe fn launch_graph(&self, graph: Graph) -> Result<(), DriverError>;

    /// Drops a graph, and gives back memory that graphs no longer use. Does nothing if there is no such graph.
    fn drop_graph(&self, graph: Graph) -> Result<(), DriverError>;

    /// The most bytes that graphs held since [`drop_graph`](Self::drop_graph).
    fn graph_memory(&self) -> Result<PoolMemory, DriverError>;

    /// Makes every further call fail, if the device is simulated.
    fn break_down(&self) {}

    /// Gives back the driver's own resources; the error reports what failed. Nothing can be called afterwards.
    fn close(&mut self) -> Result<(), DriverError>;
}

/// A device and its driver.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceInfo {
    /// The device's key in the rows: `cuda:0`, `simulated-cuda`.
    pub key: String,
    /// The name of the device, its driver and the compiler of its kernels.
    pub name: String,
    /// Whether the device is simulated.
    pub is_simulated: bool,
    /// Bytes of its L2 cache, if reported. Data that fits in there is not limited by the memory's bandwidth.
    pub l2_bytes: Option<u64>,
}

/// Bytes of a driver's pool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PoolMemory {
    pub(crate) reserved: u64,
    pub(crate) reserved_peak: u64,
    pub(crate) used: u64,
    pub(crate) used_peak: u64,
}

/// Work on the device. Words have [`WORD`] bytes; `slot` is a counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kernel {
    /// Writes the pattern of a seed.
    Fill { at: Address, words: u64, seed: u64 },
    /// Adds up all words, in halves of 64 bits, in a counter.
    Sum { at: Address, words: u64, slot: u32 },
    /// Counts the words that differ from the pattern of a seed.
    Verify { at: Address, words: u64, seed: u64, slot: u32 },
    /// Keeps the device busy for this many nanoseconds.
    Spin { nanoseconds: u64 },
}

/// A mark in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mark {
    Begin,
    End,
}

/// The number of a graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Graph(pub(crate) u64);

/// Why a device did not do what was asked.
#[expect(missing_docs, reason = "the fields are named in the messages")]
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DriverError {
    /// There is no driver or device, or it lacks something that the replay needs.
    #[error("no device: {reason}")]
    Unavailable { reason: String },
    /// The device has no room for a request of this size.
    #[error("the device has no room for {size} bytes")]
    OutOfMemory { size: Bytes },
    /// Several calls, at least 2, failed whose result nobody waits for, such as calls that give memory back.
    #[error("{first} (the first of {count} calls that failed)")]
    Several { first: Box<DriverError>, count: u64 },
    /// A call failed, for the driver's reason.
    #[error("{call}: {reason}")]
    Failed { call: &'static str, reason: String },
}

impl DriverError {
    pub(crate) fn from_failure(call: &'static str, reason: impl Into<String>) -> Self {
        Self::Failed { call, reason: reason.into() }
    }

    pub(crate) fn from_absence(reason: impl Into<String>) -> Self {
        Self::Unavailable { reason: reason.into() }
    }

    #[cfg(not(feature = "cuda"))]
    pub(crate) fn without_cuda() -> Self {
        Self::from_absence("built without the feature `cuda`")
    }
}

/// Failed calls whose result nobody waits for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Faults {
    first: Option<DriverError>,
    count: u64,
}

impl Faults {
    /// Records a call if it failed.
    pub(crate) fn note_end(&mut self, end: Result<(), DriverError>) {
        if let Err(error) = end {
            self.count += 1;
            self.first.get_or_insert(error);
        }
    }

    /// All failures as one error.
    pub(crate) fn joined_error(&self) -> Option<DriverError> {
        let first = self.first.clone()?;
        Some(match self.count {
            1 => first,
            count => DriverError::Several { first: Box::new(first), count },
        })
    }

    /// The same as a result: `Ok` if nothing failed.
    pub(crate) fn as_result(&self) -> Result<(), DriverError> {
        self.joined_error().map_or(Ok(()), Err)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_of_several_faults_is_named_and_all_are_counted() {
        let mut faults = Faults::default();
        faults.note_end(Ok(()));
        assert_eq!((faults.joined_error(), faults.as_result()), (None, Ok(())));
        faults.note_end(Err(DriverError::from_failure("cuMemFree", "lost")));
        assert_eq!(faults.joined_error(), Some(DriverError::from_failure("cuMemFree", "lost")));
        faults.note_end(Err(DriverError::from_failure("cuMemUnmap", "gone")));
        let says = faults.as_result().map_err(|error| error.to_string());
        assert_eq!(says, Err("cuMemFree: lost (the first of 2 calls that failed)".to_owned()));
    }
}
