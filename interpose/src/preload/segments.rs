//! Memory for plans: a table of segments in which any thread may look up an address.
//!
//! A segment is mapped once and never unmapped. A segment that no plan needs gives its pages back and waits for the
//! next plan. So an entry never changes once it is written, and a look-up takes no lock.
#![allow(unsafe_code, reason = "mappings, and links in freed blocks")]

use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering};

use super::heap;
use super::marks::Marks;
use super::settings::settings;
use crate::course::Segment;

/// The most segments of a process: their numbers from 1 on, and one more value, fit a byte.
const MOST: usize = 254;
/// Segments are multiples of a huge page, in bytes.
const UNIT: u64 = 2 << 20;
/// Smaller segments get no huge pages, because the last page may hold only a few bytes.
const LEAST_HUGE: u64 = 8 * UNIT;

/// A segment, the thread that plans in it, and the blocks that other threads have freed there.
pub(super) struct Entry {
    base: AtomicU64,
    len: AtomicU64,
    /// The size of the block that begins in each piece.
    sizes: AtomicPtr<AtomicU64>,
    shift: AtomicU32,
    /// The number of the state of the thread that uses it; 0: no thread.
    owner: AtomicUsize,
    is_used: AtomicBool,
    /// The address of the last block that another thread freed; its first bytes hold the address of the one before.
    freed: AtomicU64,
    pub(super) marks: Marks,
}

impl Entry {
    const fn new() -> Self {
        Self {
            base: AtomicU64::new(0),
            len: AtomicU64::new(0),
            sizes: AtomicPtr::new(ptr::null_mut()),
            shift: AtomicU32::new(0),
            owner: AtomicUsize::new(0),
            is_used: AtomicBool::new(false),
            freed: AtomicU64::new(0),
            marks: Marks::new(),
        }
    }

    pub(super) fn segment(&self) -> Segment {
        Segment { base: self.base.load(Ordering::Relaxed), len: self.len.load(Ordering::Relaxed) }
    }

    pub(super) fn owner(&self) -> usize {
        self.owner.load(Ordering::Relaxed)
    }

    fn size(&self, address: u64) -> &AtomicU64 {
        let segment = self.segment();
        assert!(segment.contains(address), "an address of another segment");
        let piece = (address - segment.base) >> self.shift.load(Ordering::Relaxed);
        // SAFETY: there is an entry for each piece of the segment, and the array is never unmapped.
        unsafe { &*self.sizes.load(Ordering::Relaxed).add(usize::try_from(piece).unwrap_or(0)) }
    }

    /// The size of the live block at an address, in bytes.
    pub(super) fn size_of(&self, address: u64) -> u64 {
        self.size(address).load(Ordering::Relaxed)
    }

    /// Records the size of a block that lies there from now on.
    pub(super) fn set_size(&self, address: u64, bytes: u64) {
        self.size(address).store(bytes, Ordering::Relaxed);
    }

    /// Frees a block of at least 8 bytes that belongs to another thread's plan.
    pub(super) fn push_freed(&self, address: u64) {
        let block = ptr::with_exposed_provenance_mut::<u64>(word(address));
        let mut before = self.freed.load(Ordering::Relaxed);
        loop {
            // SAFETY: the block belongs to the thread that frees it, and is large enough and aligned for a word.
            unsafe { block.write(before) };
            match self.freed.compare_exchange_weak(before, address, Ordering::Release, Ordering::Relaxed) {
                Ok(_) => return,
                Err(now) => before = now,
            }
        }
    }

    /// Takes all blocks that other threads have freed; returns the last, or 0 if there is no block. [`before`] leads
    /// on.
    pub(super) fn take_freed(&self) -> u64 {
        if self.freed.load(Ordering::Relaxed) == 0 { 0 } else { self.freed.swap(0, Ordering::Acquire) }
    }
}

/// The block that was freed before this one by [`Entry::push_freed`].
pub(super) fn before(freed: u64) -> u64 {
    // SAFETY: the block was taken from a list of freed blocks, and no other thread has it.
    unsafe { ptr::with_exposed_provenance::<u64>(word(freed)).read() }
}

/// An address as a word of this machine.
#[expect(clippy::cast_possible_truncation, reason = "addresses have 64 bits on every supported machine")]
pub(super) const fn word(address: u64) -> usize {
    address as usize
}

static TABLE: [Entry; MOST] = [const { Entry::new() }; MOST];
/// The number of entries that are written or being written.
static COUNT: AtomicUsize = AtomicUsize::new(0);
/// All segments lie between these addresses.
static LOWEST: AtomicU64 = AtomicU64::new(u64::MAX);
static END: AtomicU64 = AtomicU64::new(0);

/// For the low bits of an address's huge-page number: the number (from 1 on) of the only segment there, 0 if there is
/// no segment, or [`SEVERAL`].
static INDEX: [AtomicU8; 1 << 16] = [const { AtomicU8::new(0) }; 1 << 16];
const SEVERAL: u8 = u8::MAX;

fn place(address: u64) -> &'static AtomicU8 {
    &INDEX[word(address / UNIT) % INDEX.len()]
}

/// Whether an address lies in no segment, as far as the index shows.
#[inline]
pub(super) fn is_outside(address: u64) -> bool {
    let is_beyond = address < LOWEST.load(Ordering::Relaxed) || address >= END.load(Ordering::Relaxed);
    is_beyond || place(address).load(Ordering::Relaxed) == 0
}

/// The segment of an address.
#[inline]
pub(super) fn find(address: u64) -> Option<&'static Entry> {
    if is_outside(address) {
        return None;
    }
    let number = place(address).load(Ordering::Acquire);
    let count = COUNT.load(Ordering::Acquire).min(MOST);
    let those = match usize::from(number) {
        0 => return None,
        number if number <= MOST => TABLE.get(number - 1..number)?,
        _ => &TABLE[..count],
    };
    those.iter().find(|entry| entry.segment().contains(address))
}

/// The segments that have bytes between two addresses.
pub(super) fn among(begin: u64, end: u64) -> impl Iterator<Item = &'static Entry> {
    let is_beyond = end <= LOWEST.load(Ordering::Relaxed) || begin >= END.load(Ordering::Relaxed);
    let count = if is_beyond { 0 } else { COUNT.load(Ordering::Acquire).min(MOST) };
    TABLE[..count].iter().filter(move |entry| {
        let segment = entry.segment();
        begin < segment.base + segment.len && segment.base < end
    })
}

/// Enters a written segment in the index.
fn note(segment: Segment, number: usize) {
    let number = u8::try_from(number + 1).unwrap_or(SEVERAL);
    let units = segment.base / UNIT..(segment.base + segment.len).div_ceil(UNIT);
    for place in units.take(INDEX.len()).map(|unit| place(unit * UNIT)) {
        let is_alone = matches!(place.load(Ordering::Relaxed), before if before == 0 || before == number);
        place.store(if is_alone { number } else { SEVERAL }, Ordering::Release);
    }
}

/// A segment of at least `bytes` bytes for a thread: an unused one, or a new one.
pub(super) fn acquire(owner: usize, bytes: u64, least_size: u64) -> Option<&'static Entry> {
    let count = COUNT.load(Ordering::Acquire).min(MOST);
    let take = |entry: &&Entry| entry.segment().len >= bytes && !entry.is_used.swap(true, Ordering::Acquire);
    let entry = match TABLE[..count].iter().find(take) {
        Some(entry) => entry,
        None => make(bytes, least_size)?,
    };
    entry.owner.store(owner, Ordering::Relaxed);
    if settings()?.checks {
        super::check::fill_free(entry.segment());
    }
    Some(entry)
}

fn make(bytes: u64, least_size: u64) -> Option<&'static Entry> {
    if COUNT.load(Ordering::Relaxed) >= MOST {
        return None;
    }
    // Leaves room for somewhat larger plans, so that the next one need not move all; costs only addresses.
    let len = bytes.checked_add(bytes / 4)?.checked_next_multiple_of(UNIT)?;
    let shift = least_size.ilog2();
    let begin = map_aligned(len)?;
    let sizes = heap::map(word(((len >> shift) + 1) * 8), libc::MAP_NORESERVE);
    if sizes.is_null() {
        return None;
    }
    // An entry is complete before it is counted. A thread that makes one at the same time waits for a few stores.
    while IS_MAKING.swap(true, Ordering::Acquire) {
        std::hint::spin_loop();
    }
    let number = COUNT.load(Ordering::Relaxed);
    let entry = TABLE.get(number);
    if let Some(entry) = entry {
        entry.is_used.store(true, Ordering::Relaxed);
        entry.sizes.store(sizes.cast(), Ordering::Relaxed);
        entry.shift.store(shift, Ordering::Relaxed);
        entry.base.store(begin, Ordering::Relaxed);
        entry.len.store(len, Ordering::Relaxed);
        LOWEST.fetch_min(begin, Ordering::Relaxed);
        END.fetch_max(begin + len, Ordering::Relaxed);
        note(entry.segment(), number);
        COUNT.store(number + 1, Ordering::Release);
    }
    IS_MAKING.store(false, Ordering::Release);
    entry
}

static IS_MAKING: AtomicBool = AtomicBool::new(false);

/// In the child of a fork: a thread that was making a segment does not exist here.
pub(super) fn after_fork() {
    IS_MAKING.store(false, Ordering::Relaxed);
}

/// Maps addresses for `len` bytes, a multiple of the size of a huge page, aligned to that size.
fn map_aligned(len: u64) -> Option<u64> {
    let whole = len.checked_add(UNIT)?;
    let at = heap::map(word(whole), libc::MAP_NORESERVE);
    if at.is_null() {
        return None;
    }
    let first = at.expose_provenance() as u64;
    let begin = first.next_multiple_of(UNIT);
    let unmap = |from: u64, to: u64| {
        if to > from {
            // SAFETY: it is a part of the mapping that was just made, and nobody uses it.
            unsafe { libc::munmap(ptr::with_exposed_provenance_mut(word(from)), word(to - from)) };
        }
    };
    unmap(first, begin);
    unmap(begin + len, first + whole);
    advise_huge_pages(begin, len, len);
    Some(begin)
}

/// Asks the kernel for huge pages in a part of a segment, if the segment is large enough.
pub(super) fn advise_huge_pages(at: u64, bytes: u64, segment_len: u64) {
    if segment_len >= LEAST_HUGE && settings().is_some_and(|settings| settings.huge_pages) {
        let memory = ptr::with_exposed_provenance_mut(word(at));
        // SAFETY: the mapping is ours.
        unsafe { libc::madvise(memory, word(bytes), libc::MADV_HUGEPAGE) };
    }
}

/// Gives the pages of a segment back. Nothing may be live in it.
pub(super) fn rest(segment: Segment) {
    let memory = ptr::with_exposed_provenance_mut(word(segment.base));
    // SAFETY: nothing is live in the segment.
    unsafe { libc::madvise(memory, word(segment.len), libc::MADV_DONTNEED) };
    if settings().is_some_and(|settings| settings.checks) {
        super::check::fill_free(segment);
    }
}

/// Releases a segment, in which nothing may be live, when its thread no longer needs it.
pub(super) fn release(segment: Segment) {
    let Some(entry) = find(segment.base) else { return };
    rest(segment);
    entry.owner.store(0, Ordering::Relaxed);
    entry.is_used.store(false, Ordering::Release);
}
