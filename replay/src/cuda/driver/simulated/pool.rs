//! The pool of a simulated device: segments, cut by best fit.

use std::collections::BTreeMap;

use planlab_dsa::Bytes;

use super::memory::Memory;
use crate::cuda::driver::interface::{DriverError, GRANULE, PoolMemory};

/// Segments of the pool have at least this many bytes.
pub(super) const SEGMENT: u64 = 32 << 20;

/// Blocks of the pool are multiples of this number of bytes.
const UNIT: u64 = 512;

/// Segments, cut by best fit.
#[derive(Default)]
pub(super) struct Pool {
    /// Base and bytes.
    pub(super) segments: BTreeMap<u64, u64>,
    /// First address and bytes of the free blocks, joined within a segment.
    free: BTreeMap<u64, u64>,
    /// First address and bytes of the blocks in use.
    pub(super) live: BTreeMap<u64, u64>,
    pub(super) figures: PoolMemory,
}

impl Pool {
    pub(super) fn alloc(&mut self, memory: &mut Memory, size: u64) -> Result<u64, DriverError> {
        let refused = DriverError::OutOfMemory { size: Bytes::new(size) };
        let rounded = size.max(1).checked_next_multiple_of(UNIT).ok_or(refused)?;
        let best = self.free.iter().filter(|(_, bytes)| **bytes >= rounded).min_by_key(|(_, bytes)| **bytes);
        let (base, bytes) = match best.map(|(&base, &bytes)| (base, bytes)) {
            Some(found) => found,
            None => self.grow_pool(memory, rounded)?,
        };
        self.free.remove(&base);
        if bytes > rounded {
            self.free.insert(base + rounded, bytes - rounded);
        }
        self.live.insert(base, rounded);
        self.figures.used += rounded;
        self.figures.used_peak = self.figures.used_peak.max(self.figures.used);
        Ok(base)
    }

    fn grow_pool(&mut self, memory: &mut Memory, size: u64) -> Result<(u64, u64), DriverError> {
        let size = size.max(SEGMENT).checked_next_multiple_of(GRANULE);
        let size = size.ok_or(DriverError::OutOfMemory { size: Bytes::new(u64::MAX) })?;
        let base = memory.acquire(size).or_else(|error| {
            self.trim_idle(memory, 0)?;
            memory.acquire(size).map_err(|_| error)
        })?;
        self.segments.insert(base, size);
        self.figures.reserved += size;
        self.figures.reserved_peak = self.figures.reserved_peak.max(self.figures.reserved);
        Ok((base, size))
    }

    pub(super) fn free(&mut self, at: u64) -> Result<(), DriverError> {
        let bytes = self.live.remove(&at);
        let bytes =
            bytes.ok_or_else(|| DriverError::from_failure("free_async", format!("{at} is not in use")))?;
        self.figures.used -= bytes;
        let (mut start, mut end) = (at, at + bytes);
        let before = self.free.range(..at).next_back().map(|(&base, &bytes)| (base, base + bytes));
        if let Some((base, _)) = before.filter(|&(_, stop)| stop == at && !self.segments.contains_key(&at)) {
            self.free.remove(&base);
            start = base;
        }
        if !self.segments.contains_key(&end) {
            end += self.free.remove(&end).unwrap_or(0);
        }
        self.free.insert(start, end - start);
        Ok(())
    }

    /// Gives idle segments back until at most `keep` bytes are held.
    pub(super) fn trim_idle(&mut self, memory: &mut Memory, keep: u64) -> Result<(), DriverError> {
        let idle: Vec<u64> = self.free.keys().filter(|base| self.is_idle(**base)).copied().collect();
        for base in idle {
            if self.figures.reserved <= keep {
                break;
            }
            let bytes = self.segments.remove(&base).unwrap_or(0);
            self.free.remove(&base);
            self.figures.reserved -= bytes;
            memory.release(base, "trim")?;
        }
        Ok(())
    }

    /// Whether a segment begins at `base` and is completely free.
    fn is_idle(&self, base: u64) -> bool {
        self.segments.get(&base).is_some_and(|bytes| self.free.get(&base) == Some(bytes))
    }
}
