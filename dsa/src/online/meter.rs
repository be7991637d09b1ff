//! How much is held of a backing at most while something lasts.
//!
//! What an allocator holds when a propagation is over says little where it gives memory back in between, or takes it
//! late: a plan's segment, say. The most that it held in the meantime is the same question to all of them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::{Backing, DeviceMemory, Refused};
use crate::{Address, Bytes};

/// A backing with a [`Meter`]. Bytes count as they are asked for, whatever the backing rounds them to; addresses
/// without memory under them do not count.
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

/// Counts what is held, and the most of it.
#[derive(Debug, Default)]
pub struct Meter {
    held: AtomicU64,
    most: AtomicU64,
}

impl Meter {
    /// The most bytes held since this was last asked, or since the beginning. What is held now is held from now on.
    #[must_use]
    pub fn take_most(&self) -> Bytes {
        Bytes::new(self.most.swap(self.held.load(Ordering::Relaxed), Ordering::Relaxed))
    }

    /// Notes that more bytes are held.
    pub fn took(&self, size: Bytes) {
        let held = self.held.fetch_add(size.get(), Ordering::Relaxed) + size.get();
        self.most.fetch_max(held, Ordering::Relaxed);
    }

    /// Notes that bytes went back that were held.
    pub fn gave(&self, size: Bytes) {
        self.held.fetch_sub(size.get(), Ordering::Relaxed);
    }
}

impl<B: Backing> Metered<B> {
    /// A backing of which nothing is held so far, and its meter.
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
        self.meter.took(size);
        Ok(base)
    }

    fn release(&mut self, base: Address) {
        self.backing.release(base);
        if let Some(size) = self.segments.remove(&base.get()) {
            self.meter.gave(Bytes::new(size));
        }
    }

    fn reserve(&mut self, size: Bytes) -> Result<Address, Refused> {
        self.backing.reserve(size)
    }

    fn map(&mut self, at: Address, size: Bytes) -> Result<(), Refused> {
        self.backing.map(at, size)?;
        self.meter.took(size);
        Ok(())
    }

    fn unmap(&mut self, at: Address, size: Bytes) {
        self.backing.unmap(at, size);
        self.meter.gave(size);
    }

    fn page(&self) -> Bytes {
        self.backing.page()
    }

    fn memory(&self) -> Option<DeviceMemory> {
        self.backing.memory()
    }
}

#[cfg(test)]
mod tests {
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
        memory.unmap(range, bytes(1024));
        assert_eq!((meter.take_most(), meter.take_most()), (bytes(4096), bytes(3072)));
    }

    #[test]
    fn what_is_refused_is_not_held() {
        let (mut memory, meter) = Metered::new(Simulated::with_capacity(bytes(100)));
        assert_eq!(memory.acquire(bytes(101)), Err(Refused));
        assert_eq!(meter.take_most(), Bytes::ZERO);
    }
}
