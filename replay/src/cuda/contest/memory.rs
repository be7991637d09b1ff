//! The device's memory as a backing: each segment is a call of `cudaMalloc`, ranges use the virtual memory calls.
//!
//! A book beside it records what is held, so that no kernel gets an address that is not the contender's. Segments,
//! like addresses, are rounded up to 512 bytes.
//!
//! A device can unmap a mapping only as a whole. Ranges are therefore filled in pieces, and the allocator states their
//! size when it reserves the range: the least that it will ever take away. `pytorch-caching/expandable` grows by pages
//! of 2 or 20 MiB, often several at once, but when memory is short it gives back any single free page between pages in
//! use. A single piece for several pages could not go then. So a growth of n pages consists of n pieces, which one
//! call makes accessible, as in the original. The allocators of one region cut their memory anywhere; their pieces are
//! the device's own pages. Pieces that are given back together need only one wait.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use planlab_dsa::{Address, Backing, Bytes, DeviceMemory, Ranges, Refused};

use crate::cuda::driver::{Driver, DriverError, Faults};

/// Segments are multiples of this number of bytes.
const UNIT: u64 = 512;

/// Memory of a device for one contender.
pub(super) struct Segments {
    driver: Arc<dyn Driver>,
    book: Arc<Book>,
    /// Reserved ranges, by first address.
    reserved: BTreeMap<u64, Reserved>,
}

/// Addresses that may be mapped.
#[derive(Clone, Copy)]
struct Reserved {
    end: u64,
    /// Bytes that are mapped and unmapped as a whole.
    piece: u64,
}

/// What a contender holds of the device.
#[derive(Debug, Default)]
pub(super) struct Book {
    held: Mutex<Held>,
    releases: AtomicU64,
}

#[derive(Debug, Default)]
struct Held {
    /// First address and end of each segment.
    segments: BTreeMap<u64, u64>,
    /// First address and end of each mapped piece.
    pieces: BTreeMap<u64, u64>,
    /// The ranges that adjacent pieces form.
    joined: Ranges,
    /// How often the device had no room.
    refusals: u64,
    /// Other failures.
    faults: Faults,
}

impl Book {
    fn lock_held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// First address and end of the memory held around an address; both equal the address if none is held.
    pub(super) fn range_around(&self, at: u64) -> (u64, u64) {
        let held = self.lock_held();
        let segment = held.segments.range(..=at).next_back().filter(|&(_, &end)| at < end);
        if let Some((&start, &end)) = segment {
            return (start, end);
        }
        held.joined.range_around(at).unwrap_or((at, at))
    }

    /// Removes all pieces that lie completely within a range, and returns their first addresses and ends. A piece that
    /// lies there only in part stays, because it can only go as a whole.
    fn forget_pieces(&self, at: u64, end: u64) -> Vec<(u64, u64)> {
        let mut held = self.lock_held();
        let within = held.pieces.range(at..end).filter(|&(_, &stop)| stop <= end);
        let gone: Vec<(u64, u64)> = within.map(|(&start, &stop)| (start, stop)).collect();
        for &(start, stop) in &gone {
            held.pieces.remove(&start);
            held.joined.take_part(start, stop);
        }
        gone
    }

    /// Records pieces of `piece` bytes from `at` to `end`.
    fn note_pieces(&self, at: u64, end: u64, piece: u64) {
        let mut held = self.lock_held();
        let starts = (0..(end - at) / piece).map(|index| at + index * piece);
        held.pieces.extend(starts.map(|start| (start, start + piece)));
        held.joined.add_range(at, end);
    }

    /// The number of releases. While it does not change, memory that was held still is.
    #[inline]
    pub(super) fn release_count(&self) -> u64 {
        self.releases.load(Ordering::Relaxed)
    }

    /// How often the device had no room.
    pub(super) fn refusal_count(&self) -> u64 {
        self.lock_held().refusals
    }

    /// The other failures, as one error.
    pub(super) fn fault(&self) -> Option<DriverError> {
        self.lock_held().faults.joined_error()
    }

    /// The same failures, which are then forgotten.
    pub(super) fn take_fault(&self) -> Option<DriverError> {
        std::mem::take(&mut self.lock_held().faults).joined_error()
    }

    /// Records why a call failed.
    pub(super) fn record_refusal(&self, error: DriverError) -> Refused {
        let mut held = self.lock_held();
        match error {
            DriverError::OutOfMemory { .. } => held.refusals += 1,
            other => held.faults.note_end(Err(other)),
        }
        Refused
    }

    /// Records the end of a call that returns no result.
    pub(super) fn note_end(&self, end: Result<(), DriverError>) {
        if let Err(error) = end {
            self.record_refusal(error);
        }
    }
}

impl Segments {
    /// Empty segments of a device.
    pub(super) fn new(driver: Arc<dyn Driver>) -> Self {
        Self { driver, book: Arc::default(), reserved: BTreeMap::new() }
    }

    /// The book of what is held.
    pub(super) fn shared_book(&self) -> Arc<Book> {
        Arc::clone(&self.book)
    }
}

impl Backing for Segments {
    fn acquire(&mut self, size: Bytes) -> Result<Address, Refused> {
        let rounded =
            size.get().checked_next_multiple_of(UNIT).filter(|&rounded| rounded > 0).ok_or(Refused)?;
        let at = self.driver.malloc(Bytes::new(rounded)).map_err(|error| self.book.record_refusal(error))?;
        self.book.lock_held().segments.insert(at.get(), at.get() + rounded);
        Ok(at)
    }

    fn release(&mut self, base: Address) {
        if self.book.lock_held().segments.remove(&base.get()).is_some() {
            self.book.releases.fetch_add(1, Ordering::Relaxed);
            self.book.note_end(self.driver.synchronise());
            self.book.note_end(self.driver.free(base));
        }
    }

    fn reserve(&mut self, size: Bytes) -> Result<Address, Refused> {
        self.reserve_pages(size, self.page_size())
    }

    fn reserve_pages(&mut self, size: Bytes, page: Bytes) -> Result<Address, Refused> {
        let granule = self.page_size().get();
        // For other page sizes, what does not fit the pieces is refused when it is mapped.
        let is_whole = page > Bytes::ZERO && page.get().is_multiple_of(granule);
        let piece = if is_whole { page.get() } else { granule };
        let rounded = size.get().checked_next_multiple_of(piece).ok_or(Refused)?;
        let at = self.driver.reserve(Bytes::new(rounded)).map_err(|error| self.book.record_refusal(error))?;
        self.reserved.insert(at.get(), Reserved { end: at.get() + rounded, piece });
        Ok(at)
    }

    fn map(&mut self, at: Address, size: Bytes) -> Result<(), Refused> {
        let end = at.get().checked_add(size.get()).filter(|&end| end > at.get()).ok_or(Refused)?;
        let (start, range) = self.reserved.range(..=at.get()).next_back().ok_or(Refused)?;
        let piece = range.piece;
        let is_whole = (at.get() - start).is_multiple_of(piece) && size.get().is_multiple_of(piece);
        if end > range.end || !is_whole || !self.book.lock_held().joined.is_bare(at.get(), end) {
            return Err(Refused);
        }
        self.driver.map(at, size, Bytes::new(piece)).map_err(|error| self.book.record_refusal(error))?;
        self.book.note_pieces(at.get(), end, piece);
        Ok(())
    }

    fn unmap(&mut self, at: Address, size: Bytes) -> Bytes {
        let Some(end) = at.get().checked_add(size.get()) else { return Bytes::ZERO };
        let gone = self.book.forget_pieces(at.get(), end);
        if !gone.is_empty() {
            let starts: Vec<Address> = gone.iter().map(|&(start, _)| Address::new(start)).collect();
            self.book.releases.fetch_add(1, Ordering::Relaxed);
            self.book.note_end(self.driver.unmap(&starts));
        }
        Bytes::new(gone.into_iter().map(|(start, stop)| stop - start).sum())
    }

    fn page_size(&self) -> Bytes {
        self.driver.page_size()
    }

    fn device_memory(&self) -> Option<DeviceMemory> {
        self.driver.device_memory().ok()
    }
}

impl Drop for Segments {
    fn drop(&mut self) {
        let segments: Vec<u64> = self.book.lock_held().segments.keys().copied().collect();
        segments.into_iter().for_each(|base| self.release(Address::new(base)));
        for (start, Reserved { end, .. }) in std::mem::take(&mut self.reserved) {
            self.unmap(Address::new(start), Bytes::new(end - start));
            self.book.note_end(self.driver.unreserve(Address::new(start), Bytes::new(end - start)));
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;
    use crate::cuda::driver::SimulatedDriver;
    use crate::cuda::driver::{Kernel, WORD};

    const PAGE: u64 = 2 << 20;

    fn device(bytes: u64) -> (Arc<dyn Driver>, Segments) {
        let driver: Arc<dyn Driver> = Arc::new(SimulatedDriver::new(Bytes::new(bytes)));
        let segments = Segments::new(Arc::clone(&driver));
        (driver, segments)
    }

    fn free(driver: &Arc<dyn Driver>) -> u64 {
        driver.device_memory().expect("no fault").free.get()
    }

    #[test]
    fn segments_are_known_to_their_last_byte_and_go_back() {
        let (driver, mut segments) = device(64 << 20);
        let book = segments.shared_book();
        let base = segments.acquire(Bytes::new(1000)).expect("room").get();
        assert_eq!(book.range_around(base + 1023), (base, base + 1024));
        assert_eq!(book.range_around(base + 1024), (base + 1024, base + 1024));
        segments.release(Address::new(base));
        // A segment that is not held is not given back.
        segments.release(Address::new(base));
        assert_eq!((book.range_around(base), book.release_count()), ((base, base), 1));
        segments.acquire(Bytes::new(5)).expect("room");
        drop(segments);
        assert_eq!((free(&driver), book.fault()), (64 << 20, None));
    }

    #[test]
    fn a_growth_has_pieces_of_the_allocators_pages_and_a_release_waits_once() {
        let driver = Arc::new(SimulatedDriver::new(Bytes::new(64 << 20)));
        let mut segments = Segments::new(Arc::clone(&driver) as Arc<dyn Driver>);
        let book = segments.shared_book();
        let page = Bytes::new(5 * PAGE);
        let base = segments.reserve_pages(Bytes::new(50 << 20), page).expect("addresses").get();
        let at = |pages: u64| Address::new(base + pages * PAGE);
        for (from, pages) in [(0, 4), (1, 5), (5, 6), (0, 0), (0, 30)] {
            assert_eq!(segments.map(at(from), Bytes::new(pages * PAGE)), Err(Refused), "{from} {pages}");
        }
        segments.map(at(0), Bytes::new(15 * PAGE)).expect("room");
        assert_eq!(driver.mapped_pieces(), [0, 5, 10].map(|page| (base + page * PAGE, 5 * PAGE)));
        // Only the middle piece lies completely inside.
        let before = driver.wait_count();
        assert_eq!(segments.unmap(at(4), Bytes::new(7 * PAGE)), Bytes::new(5 * PAGE));
        assert_eq!(book.range_around(base), (base, base + 5 * PAGE));
        assert_eq!(book.range_around(base + 10 * PAGE), (base + 10 * PAGE, base + 15 * PAGE));
        assert_eq!((driver.mapped_pieces().len(), driver.wait_count() - before), (2, 1));
        segments.map(at(5), Bytes::new(5 * PAGE)).expect("the hole is filled again");
        let (before, releases) = (driver.wait_count(), book.release_count());
        assert_eq!(segments.unmap(at(0), Bytes::new(15 * PAGE)), Bytes::new(15 * PAGE));
        assert_eq!((driver.mapped_pieces().len(), driver.wait_count() - before), (0, 1), "all of it at once");
        assert_eq!(book.release_count() - releases, 1);
        assert_eq!(segments.unmap(at(0), Bytes::new(15 * PAGE)), Bytes::ZERO);
        assert_eq!(driver.wait_count() - before, 1, "nothing is there");
        drop(segments);
        assert_eq!((driver.device_memory().expect("no fault").free.get(), book.fault()), (64 << 20, None));
    }

    #[test]
    fn what_fails_when_all_is_given_back_is_counted() {
        let (driver, mut segments) = device(16 << 20);
        let book = segments.shared_book();
        let held = [1, 2, 3].map(|_| segments.acquire(Bytes::new(PAGE)).expect("room"));
        for at in &held[..2] {
            driver.free(*at).expect("behind the back of the segments");
        }
        drop(segments);
        let says = book.fault().map(|fault| fault.to_string()).unwrap_or_default();
        assert!(says.starts_with("free: ") && says.ends_with("(the first of 2 calls that failed)"), "{says}");
        assert!(book.take_fault().is_some() && book.take_fault().is_none());
    }

    #[test]
    fn ranges_are_mapped_page_by_page() {
        let (driver, mut segments) = device(8 << 20);
        let book = segments.shared_book();
        let base = segments.reserve(Bytes::new(1 << 30)).expect("addresses").get();
        let at = |page: u64| Address::new(base + page * PAGE);
        segments.map(at(0), Bytes::new(3 * PAGE)).expect("room");
        assert_eq!(book.range_around(base + 5), (base, base + 3 * PAGE));
        // Only one page is left, so none of the two is mapped.
        assert_eq!(segments.map(at(3), Bytes::new(2 * PAGE)), Err(Refused));
        assert_eq!((free(&driver), book.refusal_count()), (PAGE, 1));
        segments.unmap(at(1), Bytes::new(PAGE));
        assert_eq!(book.range_around(base).1, base + PAGE);
        for (from, size) in [(at(1), 5), (Address::new(base + 7), PAGE), (at(600), PAGE)] {
            assert_eq!(segments.map(from, Bytes::new(size)), Err(Refused));
        }
        drop(segments);
        assert_eq!((free(&driver), book.fault()), (8 << 20, None));
    }

    /// What an allocator above may do. Indices are taken modulo the number of entries.
    #[derive(Clone, Copy, Debug)]
    enum Act {
        Acquire(u64),
        Release(usize),
        ReleaseStranger(u64),
        Map(u64, u64),
        Unmap(u64, u64),
    }

    fn acts() -> impl Strategy<Value = Vec<Act>> {
        let pages = || (0_u64..7, 1_u64..4);
        let act = prop_oneof![
            4 => (0_u64..9 * PAGE).prop_map(Act::Acquire),
            3 => any::<usize>().prop_map(Act::Release),
            1 => any::<u64>().prop_map(Act::ReleaseStranger),
            3 => pages().prop_map(|(page, count)| Act::Map(page * PAGE, count * PAGE)),
            3 => pages().prop_map(|(page, count)| Act::Unmap(page * PAGE, count * PAGE)),
            1 => (0_u64..8 * PAGE, 0_u64..2 * PAGE).prop_map(|(at, size)| Act::Map(at, size)),
            1 => any::<(u64, u64)>().prop_map(|(at, size)| Act::Unmap(at, size)),
        ];
        vec(act, 1..40)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        /// Whatever an allocator does with segments and ranges, the device has no fault, all memory in the book can be
        /// written, and in the end everything is given back.
        #[test]
        fn the_book_is_what_the_device_has(acts in acts()) {
            let (driver, mut segments) = device(16 << 20);
            let book = segments.shared_book();
            let range = segments.reserve(Bytes::new(8 * PAGE)).expect("addresses").get();
            let mut held = Vec::new();
            for act in acts {
                let place = |at: u64| Address::new(range.wrapping_add(at));
                match act {
                    Act::Acquire(size) => held.extend(segments.acquire(Bytes::new(size))),
                    Act::Release(index) if !held.is_empty() => {
                        let base = held.swap_remove(index % held.len());
                        segments.release(base);
                        prop_assert_eq!(book.range_around(base.get()), (base.get(), base.get()));
                    }
                    Act::Release(_) => {}
                    Act::ReleaseStranger(base) => segments.release(Address::new(base | 1)),
                    Act::Map(at, size) => drop(segments.map(place(at), Bytes::new(size))),
                    Act::Unmap(at, size) => {
                        let before = free(&driver);
                        let gone = segments.unmap(place(at), Bytes::new(size)).get();
                        prop_assert_eq!(free(&driver) - before, gone);
                        prop_assert!(gone <= size);
                    }
                }
                for at in held.iter().map(|base| base.get()).chain((0..8).map(|page| range + page * PAGE)) {
                    let (start, end) = book.range_around(at);
                    let kernel = Kernel::Fill { at: Address::new(start), words: (end - start) / WORD, seed: at };
                    write(&driver, kernel);
                }
                prop_assert!(driver.synchronise().is_ok());
            }
            drop(segments);
            prop_assert_eq!((free(&driver), book.fault()), (16 << 20, None));
        }
    }

    #[allow(unsafe_code, reason = "kernels are launched")]
    fn write(driver: &Arc<dyn Driver>, kernel: Kernel) {
        // SAFETY: a simulated device checks every access.
        unsafe { driver.launch_kernel(kernel) }.expect("no fault so far");
    }

    #[test]
    fn no_room_is_counted_and_no_fault() {
        let (_, mut segments) = device(4 << 20);
        for size in [0, 5 << 20, u64::MAX] {
            assert_eq!(segments.acquire(Bytes::new(size)), Err(Refused), "{size}");
        }
        assert_eq!((segments.shared_book().refusal_count(), segments.shared_book().fault()), (1, None));
    }
}
