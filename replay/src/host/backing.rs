//! The host's memory as a backing: each segment is an anonymous mapping of its own.
//!
//! A segment is mapped when it is acquired and unmapped when it is released; the kernel puts pages under it at the
//! first touch. A reserved range is mapped without access. A piece gets access when it is mapped; unmapping returns
//! its pages to the kernel (`madvise`) and removes the access.
#![allow(unsafe_code, reason = "memory is mapped")]

use std::collections::BTreeMap;
#[cfg(not(miri))]
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use planlab_dsa::{Address, Backing, Bytes, DeviceMemory, Ranges, Refused};
use rustix::mm::{Advice, MprotectFlags, ProtFlags, madvise, mprotect};
#[cfg(not(miri))]
use rustix::mm::{MapFlags, mmap_anonymous, munmap};

use crate::address::pointer_to;
use crate::pattern::PAGE;

/// Private memory of this process.
///
/// ```
/// use planlab_dsa::{Backing, Bytes};
/// use planlab_replay::host::HostBacking;
///
/// let mut memory = HostBacking::new();
/// let segment = memory.acquire(Bytes::new(1 << 20))?;
/// assert!(segment.get() % 4096 == 0);
/// memory.release(segment);
/// # Ok::<(), planlab_dsa::Refused>(())
/// ```
#[derive(Debug, Default)]
pub struct HostBacking {
    book: Arc<Book>,
    capacity: Option<u64>,
}

/// What is mapped; the backing and its observers share it.
#[derive(Debug, Default)]
pub(super) struct Book {
    held: Mutex<HeldMappings>,
    /// The number of releases.
    releases: AtomicU64,
}

#[derive(Debug, Default)]
struct HeldMappings {
    /// Base and size of each whole segment.
    segments: BTreeMap<u64, u64>,
    /// First address and end of each range without memory of its own.
    reserved: BTreeMap<u64, u64>,
    /// The parts of ranges that have memory.
    pieces: Ranges,
    /// Bytes of segments and mapped pieces.
    bytes: u64,
    /// Bytes of the last refused range, if no range was granted since.
    refused_range: Option<u64>,
}

impl HostBacking {
    /// Memory limited only by the machine.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// At most `capacity` bytes at once, counted as requested. Default: no limit.
    #[must_use]
    pub fn with_capacity(capacity: Bytes) -> Self {
        Self { book: Arc::default(), capacity: Some(capacity.get()) }
    }

    /// The book of what is mapped.
    pub(super) fn shared_book(&self) -> Arc<Book> {
        Arc::clone(&self.book)
    }

    /// Counts bytes as held; refuses no bytes and more than the capacity.
    fn count_held(&self, held: &mut HeldMappings, size: u64) -> Result<(), Refused> {
        let bytes = held.bytes.checked_add(size).ok_or(Refused)?;
        if size == 0 || self.capacity.is_some_and(|capacity| bytes > capacity) {
            return Err(Refused);
        }
        held.bytes = bytes;
        Ok(())
    }
}

impl Book {
    fn lock_held(&self) -> MutexGuard<'_, HeldMappings> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether all of these bytes may be read and written now.
    pub(super) fn is_backed(&self, at: u64, size: u64) -> bool {
        let Some(end) = at.checked_add(size) else { return false };
        let held = self.lock_held();
        let segment = held.segments.range(..=at).next_back().map(|(&base, &size)| base + size);
        let piece = held.pieces.range_around(at).map(|(_, stop)| stop);
        segment.max(piece).is_some_and(|stop| end <= stop)
    }

    /// Bytes of the last refused range of addresses, if no range was granted since.
    pub(super) fn refused_range(&self) -> Option<u64> {
        self.lock_held().refused_range
    }

    /// The number of releases. While it does not change, memory that was backed still is.
    pub(super) fn release_count(&self) -> u64 {
        self.releases.load(Ordering::Relaxed)
    }
}

impl HeldMappings {
    fn is_reserved(&self, at: u64, end: u64) -> bool {
        self.reserved.range(..=at).next_back().is_some_and(|(_, &stop)| end <= stop)
    }
}

/// `size` bytes, rounded up to whole pages.
fn round_to_pages(size: u64) -> Result<usize, Refused> {
    let rounded = size.checked_next_multiple_of(PAGE).ok_or(Refused)?;
    usize::try_from(rounded).map_err(|_| Refused)
}

/// Maps `size` bytes anywhere; returns the base.
#[cfg(not(miri))]
fn map_anywhere(size: u64, access: ProtFlags) -> Result<u64, Refused> {
    let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
    // SAFETY: a new private mapping at a place of the kernel's choice touches no existing memory.
    let base = unsafe { mmap_anonymous(ptr::null_mut(), round_to_pages(size)?, access, flags) };
    Ok(base.map_err(|_| Refused)?.expose_provenance() as u64)
}

/// Unmaps what [`map_anywhere`] mapped.
#[cfg(not(miri))]
fn unmap_whole(base: u64, size: u64) {
    let length = round_to_pages(size).expect("it was mapped");
    // SAFETY: the mapping is whole and belongs to this backing; according to the book nobody may use it any more.
    unsafe { munmap(pointer_to(base), length) }.expect("a mapping of this process can be unmapped");
}

#[cfg(miri)]
use heap::{map_anywhere, unmap_whole};

/// Under Miri, which has no kernel: memory of the heap; it cannot be mapped without access.
#[cfg(miri)]
mod heap {
    use std::alloc::{Layout, alloc_zeroed, dealloc};

    use super::{PAGE, ProtFlags, Refused, pointer_to, round_to_pages};

    fn heap_layout(size: u64) -> Result<Layout, Refused> {
        Layout::from_size_align(round_to_pages(size)?, PAGE as usize).map_err(|_| Refused)
    }

    pub(super) fn map_anywhere(size: u64, access: ProtFlags) -> Result<u64, Refused> {
        let layout = heap_layout(size)?;
        if access.is_empty() || layout.size() == 0 {
            return Err(Refused);
        }
        // SAFETY: the layout is not empty.
        let base = unsafe { alloc_zeroed(layout) };
        if base.is_null() { Err(Refused) } else { Ok(base.expose_provenance() as u64) }
    }

    pub(super) fn unmap_whole(base: u64, size: u64) {
        // SAFETY: it was made by `alloc_zeroed` with this layout; according to the book nobody may use it any more.
        unsafe { dealloc(pointer_to(base), heap_layout(size).expect("it was made")) };
    }
}

impl Backing for HostBacking {
    fn acquire(&mut self, size: Bytes) -> Result<Address, Refused> {
        let mut held = self.book.lock_held();
        self.count_held(&mut held, size.get())?;
        let Ok(base) = map_anywhere(size.get(), ProtFlags::READ | ProtFlags::WRITE) else {
            held.bytes -= size.get();
            return Err(Refused);
        };
        held.segments.insert(base, size.get());
        Ok(Address::new(base))
    }

    /// # Panics
    ///
    /// If no segment begins at `base`: then the allocator above is wrong.
    fn release(&mut self, base: Address) {
        let mut held = self.book.lock_held();
        let size = held.segments.remove(&base.get()).expect("a segment that is held");
        held.bytes -= size;
        self.book.releases.fetch_add(1, Ordering::Relaxed);
        unmap_whole(base.get(), size);
    }

    fn reserve(&mut self, size: Bytes) -> Result<Address, Refused> {
        let base = map_anywhere(size.get(), ProtFlags::empty());
        let mut held = self.book.lock_held();
        held.refused_range = base.is_err().then_some(size.get());
        let base = base?;
        held.reserved.insert(base, base + size.get());
        Ok(Address::new(base))
    }

    /// # Panics
    ///
    /// If the range is not reserved, part of it is mapped, or it is not whole pages: then the allocator above is
    /// wrong.
    fn map(&mut self, at: Address, size: Bytes) -> Result<(), Refused> {
        let end = at.get().checked_add(size.get()).ok_or(Refused)?;
        let length = round_to_pages(size.get())?;
        let mut held = self.book.lock_held();
        assert!(held.is_reserved(at.get(), end), "{at} is not reserved");
        assert!(held.pieces.is_bare(at.get(), end), "{at} is mapped twice");
        assert!(at.get().is_multiple_of(PAGE) && size.get().is_multiple_of(PAGE), "{at} is not whole pages");
        self.count_held(&mut held, size.get())?;
        // SAFETY: the pages belong to a range of this backing, and nobody uses them yet.
        if unsafe { mprotect(pointer_to(at.get()), length, MprotectFlags::READ | MprotectFlags::WRITE) }
            .is_err()
        {
            held.bytes -= size.get();
            return Err(Refused);
        }
        held.pieces.add_range(at.get(), end);
        Ok(())
    }

    /// # Panics
    ///
    /// If part of the range is not mapped, or belongs to a segment: then the allocator above is wrong.
    fn unmap(&mut self, at: Address, size: Bytes) -> Bytes {
        let (start, end) = (at.get(), at.get() + size.get());
        let length = round_to_pages(size.get()).expect("it was mapped");
        let mut held = self.book.lock_held();
        assert!(held.is_reserved(start, end), "{at} is not reserved");
        held.pieces.take_part(start, end);
        held.bytes -= size.get();
        self.book.releases.fetch_add(1, Ordering::Relaxed);
        let part = pointer_to(start);
        // SAFETY: the pages belong to a range of this backing; according to the book nobody may use them any more.
        let given = unsafe {
            madvise(part, length, Advice::LinuxDontNeed)
                .and_then(|()| mprotect(part, length, MprotectFlags::empty()))
        };
        given.expect("pages of this process can be given back");
        size
    }

    fn page_size(&self) -> Bytes {
        Bytes::new(PAGE)
    }

    fn device_memory(&self) -> Option<DeviceMemory> {
        let total = self.capacity?;
        Some(DeviceMemory { free: Bytes::new(total - self.book.lock_held().bytes), total: Bytes::new(total) })
    }
}

impl Drop for HostBacking {
    fn drop(&mut self) {
        let mut held = std::mem::take(&mut *self.book.lock_held());
        self.book.releases.fetch_add(1, Ordering::Relaxed);
        let ranges = std::mem::take(&mut held.reserved).into_iter().map(|(base, end)| (base, end - base));
        held.segments.into_iter().chain(ranges).for_each(|(base, size)| unmap_whole(base, size));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pattern::{block_key, fill_block, first_wrong};

    const MIB: u64 = 1 << 20;

    fn bytes(size: u64) -> Bytes {
        Bytes::new(size)
    }

    fn works(at: u64, size: u64) {
        // SAFETY: callers pass memory that the backing under test has mapped.
        unsafe {
            fill_block(at, size, block_key(at));
            assert_eq!(first_wrong(at, size, block_key(at)), None);
        }
    }

    #[test]
    fn a_segment_holds_what_is_written() {
        let mut memory = HostBacking::new();
        let book = memory.shared_book();
        let segments = [1, 5000, MIB].map(|size| (memory.acquire(bytes(size)).expect("room").get(), size));
        for (base, size) in segments {
            works(base, size);
            assert!(
                book.is_backed(base, size) && !book.is_backed(base, size + 1) && !book.is_backed(base - 1, 2)
            );
        }
        assert_eq!(book.lock_held().bytes, MIB + 5001);
        let before = book.release_count();
        memory.release(Address::new(segments[1].0));
        assert!(!book.is_backed(segments[1].0, 1) && book.is_backed(segments[2].0, MIB));
        assert_eq!(book.release_count(), before + 1);
        drop(memory);
        assert!(!book.is_backed(segments[2].0, 1));
    }

    #[test]
    fn pieces_of_a_range_come_and_go_and_come_back_empty() {
        let mut memory = HostBacking::new();
        let book = memory.shared_book();
        let base = memory.reserve(bytes(1 << 40)).expect("addresses").get();
        let at = |page: u64| Address::new(base + page * PAGE);
        memory.map(at(0), bytes(4 * PAGE)).expect("room");
        memory.map(at(4), bytes(4 * PAGE)).expect("room");
        works(base, 8 * PAGE);
        assert_eq!(memory.unmap(at(2), bytes(4 * PAGE)), bytes(4 * PAGE));
        assert!(book.is_backed(base, 2 * PAGE) && book.is_backed(base + 6 * PAGE, 2 * PAGE));
        assert!(!book.is_backed(base, 2 * PAGE + 1) && !book.is_backed(base + 5 * PAGE, 1));
        memory.map(at(2), bytes(4 * PAGE)).expect("room");
        assert!(book.is_backed(base, 8 * PAGE));
        // SAFETY: the page is mapped again; the kernel fills it with zeros.
        assert_eq!(unsafe { pointer_to::<u64>(at(3).get()).read() }, 0);
    }

    #[test]
    fn a_capacity_holds_and_nothing_is_lost_by_a_refusal() {
        let mut memory = HostBacking::with_capacity(bytes(3 * MIB));
        let range = memory.reserve(bytes(64 * MIB)).expect("addresses");
        memory.map(range, bytes(2 * MIB)).expect("room");
        assert_eq!(memory.acquire(bytes(MIB + 1)), Err(Refused));
        assert_eq!(memory.device_memory().map(|memory| memory.free), Some(bytes(MIB)));
        assert!(memory.acquire(bytes(MIB)).is_ok());
    }

    #[test]
    fn what_cannot_be_mapped_is_refused() {
        let mut memory = HostBacking::new();
        for size in [0, 1 << 60, u64::MAX - 1, u64::MAX] {
            assert_eq!(memory.acquire(bytes(size)), Err(Refused), "{size}");
        }
        assert_eq!(memory.shared_book().lock_held().bytes, 0);
    }

    #[test]
    fn addresses_that_are_not_to_be_had_are_noted_until_some_are() {
        let mut memory = HostBacking::new();
        assert_eq!(memory.reserve(bytes(1 << 60)), Err(Refused));
        assert_eq!(memory.shared_book().refused_range(), Some(1 << 60));
        assert!(memory.reserve(bytes(PAGE)).is_ok());
        assert_eq!(memory.shared_book().refused_range(), None);
    }
}
