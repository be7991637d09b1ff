//! Simulated memory: addresses and counts only.

use std::collections::BTreeMap;

use super::{Backing, DeviceMemory, Ranges, Refused};
use crate::{Address, Alignment, Bytes};

/// Segments begin at multiples of this many bytes, as on a device. A gap of the same size between segments prevents
/// anyone from taking two for one.
const GRANULE: u64 = 2 << 20;

/// A device without memory: it hands out ascending addresses, each once, and counts bytes.
///
/// ```
/// use planlab_dsa::{Backing, Bytes, Simulated};
///
/// let mut device = Simulated::with_capacity(Bytes::new(1 << 20));
/// let segment = device.acquire(Bytes::new(1 << 19))?;
/// assert!(device.acquire(Bytes::new(1 << 20)).is_err());
/// device.release(segment);
/// assert!(device.acquire(Bytes::new(1 << 20)).is_ok());
/// # Ok::<(), planlab_dsa::Refused>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Simulated {
    capacity: Option<u64>,
    /// The least address at which the next range may begin.
    next: u64,
    /// Base and size of whole segments.
    segments: BTreeMap<u64, u64>,
    /// First address and end of ranges without memory of their own.
    reserved: BTreeMap<u64, u64>,
    /// The ranges that have memory.
    backed: Ranges,
    bytes: u64,
}

impl Simulated {
    /// A device with as much memory as there are addresses.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A device with `capacity` bytes.
    #[must_use]
    pub fn with_capacity(capacity: Bytes) -> Self {
        Self { capacity: Some(capacity.get()), ..Self::default() }
    }

    /// Bytes held now.
    #[must_use]
    pub const fn held_bytes(&self) -> Bytes {
        Bytes::new(self.bytes)
    }

    /// Whether all of these bytes have memory.
    #[must_use]
    pub fn is_backed(&self, at: Address, size: Bytes) -> bool {
        let Some(end) = at.get().checked_add(size.get()) else { return false };
        size == Bytes::ZERO || self.backed.range_around(at.get()).is_some_and(|(_, stop)| end <= stop)
    }

    /// New addresses for `size` bytes.
    fn reserve_range(&mut self, size: u64) -> Result<u64, Refused> {
        let granule = Alignment::new(GRANULE).ok_or(Refused)?;
        // No memory lies at address 0.
        let base = self.next.max(GRANULE);
        let end = base.checked_add(size).and_then(|end| end.checked_add(GRANULE));
        self.next = end.and_then(|end| granule.round_up(end)).ok_or(Refused)?;
        Ok(base)
    }

    fn take_bytes(&mut self, size: u64) -> Result<(), Refused> {
        let bytes = self.bytes.checked_add(size).ok_or(Refused)?;
        if size == 0 || self.capacity.is_some_and(|capacity| bytes > capacity) {
            return Err(Refused);
        }
        self.bytes = bytes;
        Ok(())
    }

    fn is_reserved(&self, at: u64, end: u64) -> bool {
        self.reserved.range(..=at).next_back().is_some_and(|(_, &stop)| end <= stop)
    }
}

impl Backing for Simulated {
    fn acquire(&mut self, size: Bytes) -> Result<Address, Refused> {
        self.take_bytes(size.get())?;
        let Ok(base) = self.reserve_range(size.get()) else {
            self.bytes -= size.get();
            return Err(Refused);
        };
        self.segments.insert(base, size.get());
        self.backed.add_range(base, base + size.get());
        Ok(Address::new(base))
    }

    /// # Panics
    ///
    /// If no segment begins there: a bug in the allocator above.
    fn release(&mut self, base: Address) {
        let size = self.segments.remove(&base.get()).expect("a segment that is held");
        self.backed.take_part(base.get(), base.get() + size);
        self.bytes -= size;
    }

    fn reserve(&mut self, size: Bytes) -> Result<Address, Refused> {
        let base = self.reserve_range(size.get())?;
        self.reserved.insert(base, base + size.get());
        Ok(Address::new(base))
    }

    /// # Panics
    ///
    /// If the range is not reserved, or part of it has memory already: a bug in the allocator above.
    fn map(&mut self, at: Address, size: Bytes) -> Result<(), Refused> {
        let end = at.get().checked_add(size.get()).ok_or(Refused)?;
        assert!(self.is_reserved(at.get(), end), "{at} is not reserved");
        assert!(self.backed.is_bare(at.get(), end), "{at} is mapped twice");
        self.take_bytes(size.get())?;
        self.backed.add_range(at.get(), end);
        Ok(())
    }

    /// # Panics
    ///
    /// If part of the range has no memory, or belongs to a segment: a bug in the allocator above.
    fn unmap(&mut self, at: Address, size: Bytes) -> Bytes {
        let end = at.get() + size.get();
        assert!(self.is_reserved(at.get(), end) && self.is_backed(at, size), "{at} is not mapped");
        if size > Bytes::ZERO {
            self.backed.take_part(at.get(), end);
        }
        self.bytes -= size.get();
        size
    }

    fn device_memory(&self) -> Option<DeviceMemory> {
        let total = self.capacity?;
        Some(DeviceMemory { free: Bytes::new(total - self.bytes), total: Bytes::new(total) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn bytes(size: u64) -> Bytes {
        Bytes::new(size)
    }

    #[test]
    fn segments_do_not_touch() {
        let mut device = Simulated::new();
        let (a, b) = (device.acquire(bytes(GRANULE)), device.acquire(bytes(1)));
        let (a, b) = (a.expect("room"), b.expect("room"));
        assert!(a.get() + GRANULE < b.get());
        assert!(device.is_backed(a, bytes(GRANULE)) && !device.is_backed(a, bytes(GRANULE + 1)));
        device.release(a);
        assert_eq!(device.held_bytes(), bytes(1));
        assert!(!device.is_backed(a, bytes(1)));
    }

    #[test]
    fn a_capacity_holds_for_segments_and_mapped_pieces_together() {
        let mut device = Simulated::with_capacity(bytes(100));
        let range = device.reserve(bytes(1 << 40)).expect("addresses");
        device.map(range, bytes(60)).expect("room");
        assert_eq!(device.acquire(bytes(41)), Err(Refused));
        assert!(device.acquire(bytes(40)).is_ok());
        let memory = device.device_memory().expect("limited");
        assert_eq!((memory.free, memory.total), (bytes(0), bytes(100)));
    }

    #[test]
    fn pieces_are_unmapped_across_and_inside_what_was_mapped() {
        let mut device = Simulated::new();
        let base = device.reserve(bytes(100)).expect("addresses").get();
        let at = |offset: u64| Address::new(base + offset);
        device.map(at(0), bytes(30)).expect("room");
        device.map(at(30), bytes(30)).expect("room");
        assert_eq!((device.unmap(at(10), bytes(40)), device.held_bytes()), (bytes(40), bytes(20)));
        assert!(device.is_backed(at(0), bytes(10)) && device.is_backed(at(50), bytes(10)));
        assert!(!device.is_backed(at(0), bytes(11)) && !device.is_backed(at(49), bytes(2)));
        device.map(at(10), bytes(40)).expect("room");
        assert!(device.is_backed(at(0), bytes(60)));
    }

    #[test]
    fn what_cannot_be_addressed_is_refused() {
        let mut device = Simulated::new();
        for size in [0, u64::MAX, u64::MAX - GRANULE] {
            assert_eq!(device.acquire(bytes(size)), Err(Refused), "{size}");
        }
        assert_eq!(device.held_bytes(), bytes(0));
    }
}
