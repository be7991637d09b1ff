//! Segments for plans, and a pool for everything that no plan serves.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use planlab_dsa::{Address, AllocError, Backing, Bytes, OnlineAllocator, Stream, Usage};

use crate::online::Cupy4Pool;
use crate::online::blocks::Device;

/// A segment that holds the buffers of plans.
#[derive(Clone, Copy, Debug)]
struct Segment {
    size: u64,
    /// The number of its blocks in use.
    live: usize,
}

pub(super) struct Memory {
    pub(super) pool: Cupy4Pool,
    device: Device,
    /// By base. All but the current one wait until their last block is freed.
    segments: BTreeMap<u64, Segment>,
    /// The base of the segment for the current plans.
    current: Option<u64>,
    /// Whether the device had no memory for a segment in this propagation.
    is_refused: bool,
    used: u64,
    peak: u64,
}

impl Memory {
    pub(super) fn new(backing: Box<dyn Backing>) -> Self {
        let shared = Arc::new(Mutex::new(backing));
        Self {
            pool: Cupy4Pool::new(Box::new(Arc::clone(&shared))),
            device: Device::new(Box::new(shared)),
            segments: BTreeMap::new(),
            current: None,
            is_refused: false,
            used: 0,
            peak: 0,
        }
    }

    /// Begins a propagation: the device may be asked for a segment again.
    pub(super) fn begin(&mut self) {
        self.is_refused = false;
    }

    pub(super) fn current(&self) -> Option<u64> {
        self.current
    }

    fn current_segment(&self) -> Option<(u64, Segment)> {
        self.current.and_then(|base| Some((base, *self.segments.get(&base)?)))
    }

    pub(super) fn has_live(&self) -> bool {
        self.current_segment().is_some_and(|(_, segment)| segment.live > 0)
    }

    /// The start and the end address of the current segment, if none of its blocks is in use.
    pub(super) fn idle(&self) -> Option<(u64, u64)> {
        let (base, segment) = self.current_segment().filter(|(_, segment)| segment.live == 0)?;
        Some((base, base + segment.size))
    }

    /// The base of the segment for plans of a height; taken from the device at the first use.
    pub(super) fn segment(&mut self, height: impl FnOnce() -> Option<u64>) -> Option<u64> {
        if self.current.is_none() && !self.is_refused {
            let size = height().filter(|&height| height > 0)?;
            self.current = self.device.acquire_segment(size).ok();
            self.is_refused = self.current.is_none();
            self.peak = self.peak.max(self.reserved());
            self.segments.extend(self.current.map(|base| (base, Segment { size, live: 0 })));
        }
        self.current
    }

    /// Counts a block of a segment that is handed out.
    pub(super) fn occupy(&mut self, base: u64, bytes: u64) {
        if let Some(segment) = self.segments.get_mut(&base) {
            segment.live += 1;
        }
        self.used += bytes;
    }

    /// Counts a block of a segment that is freed.
    pub(super) fn vacate(&mut self, base: u64, bytes: u64) {
        self.used -= bytes;
        let Some(segment) = self.segments.get_mut(&base) else { return };
        segment.live -= 1;
        if segment.live == 0 && self.current != Some(base) {
            self.device.release_segment(base, segment.size);
            self.segments.remove(&base);
        }
    }

    /// The pool's answer to a request. If the device has no memory, gives an idle segment back and asks the pool again.
    pub(super) fn pooled(
        &mut self,
        served: Result<Address, AllocError>,
        size: Bytes,
        stream: Stream,
    ) -> Result<Address, AllocError> {
        let served = served.or_else(|_| {
            self.release_idle();
            self.pool.alloc(size, stream)
        });
        self.peak = self.peak.max(self.reserved());
        served.map_err(|_| self.out_of_memory(size))
    }

    pub(super) fn out_of_memory(&self, size: Bytes) -> AllocError {
        AllocError::OutOfMemory { size, reserved: Bytes::new(self.reserved()) }
    }

    fn release_idle(&mut self) {
        self.segments.retain(|&base, segment| {
            if segment.live == 0 {
                self.device.release_segment(base, segment.size);
            }
            segment.live > 0
        });
        self.current = self.current.filter(|base| self.segments.contains_key(base));
    }

    pub(super) fn release_cached(&mut self) {
        self.pool.release_cached();
        self.release_idle();
    }

    /// Gives the current segment back, now or with its last block.
    pub(super) fn retire(&mut self) {
        self.current = None;
        self.release_idle();
    }

    /// Prepares for new plans of a height.
    pub(super) fn renew(&mut self, height: u64) {
        // The pool blocks that served the recorded propagation are now idle.
        self.pool.release_cached();
        // A block that is still live would obstruct the new plan as it did the old one: its segment goes back with it.
        if self.idle().is_none_or(|(base, end)| height > end - base) {
            self.retire();
        }
    }

    fn reserved(&self) -> u64 {
        self.device.reserved_bytes() + self.pool.usage().reserved.get()
    }

    /// The usage of segments and pool, with further bytes in use in a segment.
    pub(super) fn usage(&self, used: u64, search_steps: u64) -> Usage {
        let (plan, pool) = (self.device.usage_with(self.used + used, search_steps), self.pool.usage());
        Usage {
            reserved: Bytes::new(self.reserved()),
            // The peaks of the two need not coincide in time.
            reserved_peak: Bytes::new(self.peak),
            used: Bytes::new(plan.used.get() + pool.used.get()),
            device_allocations: plan.device_allocations + pool.device_allocations,
            device_releases: plan.device_releases + pool.device_releases,
            search_steps: plan.search_steps + pool.search_steps,
        }
    }

    /// The number of segments.
    #[cfg(test)]
    pub(super) fn segments(&self) -> usize {
        self.segments.len()
    }
}
