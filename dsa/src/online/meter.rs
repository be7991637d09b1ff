//! Measures the most memory held from a backing over a period.
//!
//! What an allocator holds after a propagation can mislead: it may release memory in between, or take it late, such as
//! a plan's segment. The most that it held during the propagation compares all allocators fairly.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::{Backing, DeviceMemory, Refused};
use crate::{Address, Bytes};

/// A backing with a [`Meter`]. It counts bytes as requested, before the backing rounds them. Reserved addresses without
/// memory do not count. For unmapped ranges, it counts the bytes that the backing reports as released.
///
/// ```
/// use planlab_dsa::{Backing, Bytes, Metered, Simulated};
///
/// let (mut memory, meter) = Metered::new(Simulated::new());
/// let segment = memory.acquire(Bytes::new(1 << 20))?;
/// memory.release(segment);
/// assert_eq!(meter.take_most(), Bytes::new(1 << 20));
/// assert_eq!(meter.take_most(), Bytes::ZERO);
/// # Ok::<(), planlab_dsa::Refused>(())
/// ```
#[derive(Debug)]
pub struct Metered<B> {
    backing: B,
    /// Bytes of whole segments, by their base.
    segments: BTreeMap<u64, u64>,
    meter: Arc<Meter>,
}

/// Counts the bytes held, and the most of them.
#[derive(Debug, Default)]
pub struct Meter {
    held: AtomicU64,
    most: AtomicU64,
}

impl Meter {
    /// Returns the most bytes held since the last call, or since the beginning. The next period starts with the bytes
    /// held now.
    #[must_use]
    pub fn take_most(&self) -> Bytes {
        Bytes::new(self.most.swap(self.held.load(Ordering::Relaxed), Ordering::Relaxed))
    }

    /// Adds bytes that are now held.
    pub fn add_held(&self, size: Bytes) {
        let held = self.held.fetch_add(size.get(), Ordering::Relaxed) + size.get();
        self.most.fetch_max(held, Ordering::Relaxed);
    }

    /// Subtracts bytes that were given back; never goes below 0.
    pub fn subtract_held(&self, size: Bytes) {
        self.held.update(Ordering::Relaxed, Ordering::Relaxed, |held| held.saturating_sub(size.get()));
    }
}

impl<B: Backing> Metered<B> {
    /// Wraps a backing that holds nothing so far; returns it with its meter.
    #[must_use]
    pub fn new(backing: B) -> (Self, Arc<Meter>) {
        let meter = Arc::<Meter>::default();
        (Self { backing, segments: BTreeMap::new(), meter: Arc::clone(&meter) }, meter)
    }
}

impl<B: Backing> Backing for Metered<B> {
    fn acquire(&mut self, size: Bytes) -> Result<Address, Refused> {
        let base = self.backing.acquire(size)?;
        self.segments.insert(base.get(), size.get());
        self.meter.add_held(size);
        Ok(base)
    }

    fn release(&mut self, base: Address) {
        self.backing.release(base);
        if let Some(size) = self.segments.remove(&base.get()) {
            self.meter.subtract_held(Bytes::new(size));
        }
    }

    fn reserve(&mut self, size: Bytes) -> Result<Address, Refused> {
        self.backing.reserve(size)
    }

    fn reserve_pages(&mut self, size: Bytes, page: Bytes) -> Result<Address, Refused> {
        self.backing.reserve_pages(size, page)
    }

    fn map(&mut self, at: Address, size: Bytes) -> Result<(), Refused> {
        self.backing.map(at, size)?;
        self.meter.add_held(size);
        Ok(())
    }

    fn unmap(&mut self, at: Address, size: Bytes) -> Bytes {
        let gone = self.backing.unmap(at, size);
        self.meter.subtract_held(gone);
        gone
    }

    fn page_size(&self) -> Bytes {
        self.backing.page_size()
    }

    fn device_memory(&self) -> Option<DeviceMemory> {
        self.backing.device_memory()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;
    use crate::Simulated;

    fn bytes(size: u64) -> Bytes {
        Bytes::new(size)
    }

    #[test]
    fn what_was_held_in_between_counts_and_what_was_held_before_does_not() {
        let (mut memory, meter) = Metered::new(Simulated::new());
        let [first, second] = [700, 300].map(|size| memory.acquire(bytes(size)).expect("no limit"));
        memory.release(first);
        assert_eq!(meter.take_most(), bytes(1000));
        let third = memory.acquire(bytes(50)).expect("no limit");
        memory.release(third);
        memory.release(second);
        assert_eq!((meter.take_most(), meter.take_most()), (bytes(350), Bytes::ZERO));
    }

    #[test]
    fn of_a_range_its_mapped_parts_count() {
        let (mut memory, meter) = Metered::new(Simulated::new());
        let range = memory.reserve(bytes(1 << 30)).expect("addresses");
        assert_eq!(meter.take_most(), Bytes::ZERO);
        memory.map(range, bytes(4096)).expect("no limit");
        assert_eq!(memory.unmap(range, bytes(1024)), bytes(1024));
        assert_eq!((meter.take_most(), meter.take_most()), (bytes(4096), bytes(3072)));
    }

    /// Records which calls reach it. When unmapping, it keeps whatever is not a whole page of 1024 bytes.
    #[derive(Default)]
    struct Noted(Mutex<Vec<&'static str>>);

    impl Noted {
        fn note(&self, call: &'static str) {
            self.0.lock().expect("nobody panics").push(call);
        }
    }

    impl Backing for Noted {
        fn acquire(&mut self, _: Bytes) -> Result<Address, Refused> {
            self.note("acquire");
            Ok(Address::new(512))
        }

        fn release(&mut self, _: Address) {
            self.note("release");
        }

        fn reserve(&mut self, _: Bytes) -> Result<Address, Refused> {
            self.note("reserve");
            Ok(Address::new(1 << 20))
        }

        fn reserve_pages(&mut self, _: Bytes, page: Bytes) -> Result<Address, Refused> {
            assert_eq!(page, bytes(1024));
            self.note("reserve_pages");
            Ok(Address::new(1 << 21))
        }

        fn map(&mut self, _: Address, _: Bytes) -> Result<(), Refused> {
            self.note("map");
            Ok(())
        }

        fn unmap(&mut self, _: Address, size: Bytes) -> Bytes {
            self.note("unmap");
            bytes(size.get() / 1024 * 1024)
        }

        fn page_size(&self) -> Bytes {
            self.note("page");
            bytes(1024)
        }

        fn device_memory(&self) -> Option<DeviceMemory> {
            self.note("memory");
            None
        }
    }

    #[test]
    fn every_call_reaches_the_backing() {
        let (mut memory, _) = Metered::new(Noted::default());
        let base = memory.acquire(bytes(1)).expect("always");
        memory.release(base);
        memory.reserve(bytes(4096)).expect("always");
        let range = memory.reserve_pages(bytes(4096), bytes(1024)).expect("always");
        memory.map(range, bytes(2048)).expect("always");
        memory.unmap(range, bytes(2048));
        assert_eq!((memory.page_size(), memory.device_memory()), (bytes(1024), None));
        let calls = memory.backing.0.into_inner().expect("nobody panics");
        let expected = ["acquire", "release", "reserve", "reserve_pages", "map", "unmap", "page", "memory"];
        assert_eq!(calls, expected);
    }

    #[test]
    fn what_a_backing_keeps_is_held() {
        let (mut memory, meter) = Metered::new(Noted::default());
        let range = memory.reserve_pages(bytes(4096), bytes(1024)).expect("always");
        memory.map(range, bytes(4096)).expect("always");
        assert_eq!(memory.unmap(range, bytes(1000)), Bytes::ZERO);
        assert_eq!(memory.unmap(range, bytes(2000)), bytes(1024));
        assert_eq!((meter.take_most(), meter.take_most()), (bytes(4096), bytes(3072)));
    }

    #[test]
    fn no_more_goes_than_is_held() {
        let meter = Meter::default();
        meter.add_held(bytes(5));
        meter.subtract_held(bytes(6));
        assert_eq!((meter.take_most(), meter.take_most()), (bytes(5), Bytes::ZERO));
        meter.add_held(bytes(2));
        assert_eq!(meter.take_most(), bytes(2));
    }

    #[test]
    fn what_is_refused_is_not_held() {
        let (mut memory, meter) = Metered::new(Simulated::with_capacity(bytes(100)));
        assert_eq!(memory.acquire(bytes(101)), Err(Refused));
        assert_eq!(meter.take_most(), Bytes::ZERO);
    }
}
