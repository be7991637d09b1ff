//! Memory for plans: a table of segments that any thread may look an address up in.
//!
//! A segment is mapped once and never unmapped; one that no plan needs gives its pages back and waits for the next. So an
//! entry, once written, says the same for ever, and a look-up takes no lock.
#![allow(unsafe_code, reason = "mappings, and links in freed blocks")]

use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering};

use super::heap;
use super::settings::settings;
use crate::course::Segment;

/// Segments of a process, at most: their numbers from 1 on, and one more, are bytes.
const MOST: usize = 254;
/// Segments are multiples of it: a huge page.
const UNIT: u64 = 2 << 20;
/// Segments of fewer bytes get no huge pages: the last one may hold nothing but a few bytes.
const LEAST_HUGE: u64 = 8 * UNIT;

/// A segment, who plans in it, and what other threads have freed there.
pub(super) struct Entry {
    base: AtomicU64,
    len: AtomicU64,
    /// Bytes of the block that begins in each piece.
    sizes: AtomicPtr<AtomicU64>,
    shift: AtomicU32,
    /// The state of the thread that uses it, as a number; 0: nobody.
    owner: AtomicUsize,
    is_used: AtomicBool,
    /// The address of the last block that another thread freed; in its first bytes stands that of the one before.
    freed: AtomicU64,
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
        // SAFETY: there is one for each piece of the segment, and it is never unmapped.
        unsafe { &*self.sizes.load(Ordering::Relaxed).add(usize::try_from(piece).unwrap_or(0)) }
    }

    /// Bytes of the live block at an address.
    pub(super) fn size_of(&self, address: u64) -> u64 {
        self.size(address).load(Ordering::Relaxed)
    }

    /// A block of so many bytes lies there from now on.
    pub(super) fn set_size(&self, address: u64, bytes: u64) {
        self.size(address).store(bytes, Ordering::Relaxed);
    }

    /// Another thread than the owner frees a block of at least 8 bytes.
    pub(super) fn push_freed(&self, address: u64) {
        let block = ptr::with_exposed_provenance_mut::<u64>(word(address));
        let mut before = self.freed.load(Ordering::Relaxed);
        loop {
            // SAFETY: the block belongs to whoever frees it, and is as large and aligned.
            unsafe { block.write(before) };
            match self.freed.compare_exchange_weak(before, address, Ordering::Release, Ordering::Relaxed) {
                Ok(_) => return,
                Err(now) => before = now,
            }
        }
    }

    /// All blocks that others have freed: the last; 0 for none. [`before`] leads on.
    pub(super) fn take_freed(&self) -> u64 {
        if self.freed.load(Ordering::Relaxed) == 0 { 0 } else { self.freed.swap(0, Ordering::Acquire) }
    }
}

/// The block that was freed before this one, by [`Entry::push_freed`].
pub(super) fn before(freed: u64) -> u64 {
    // SAFETY: it was taken from a list of freed blocks, which nobody else has.
    unsafe { ptr::with_exposed_provenance::<u64>(word(freed)).read() }
}

/// An address as a word of this machine.
#[expect(clippy::cast_possible_truncation, reason = "addresses have 64 bits wherever this is of use")]
pub(super) const fn word(address: u64) -> usize {
    address as usize
}

static TABLE: [Entry; MOST] = [const { Entry::new() }; MOST];
/// Entries that are written or about to be.
static COUNT: AtomicUsize = AtomicUsize::new(0);
/// No segment lies below or above.
static LOWEST: AtomicU64 = AtomicU64::new(u64::MAX);
static END: AtomicU64 = AtomicU64::new(0);

/// Which segment the address may lie in whose number of huge pages ends with these bits: the segment's number from 1 on, 0
/// for none, [`SEVERAL`].
static INDEX: [AtomicU8; 1 << 16] = [const { AtomicU8::new(0) }; 1 << 16];
const SEVERAL: u8 = u8::MAX;

fn place(address: u64) -> &'static AtomicU8 {
    &INDEX[word(address / UNIT) % INDEX.len()]
}

/// Whether an address lies in no segment, as far as that can be told without looking at them.
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

/// Notes where a segment lies, which is written.
fn note(segment: Segment, number: usize) {
    let number = u8::try_from(number + 1).unwrap_or(SEVERAL);
    let units = segment.base / UNIT..(segment.base + segment.len).div_ceil(UNIT);
    for place in units.take(INDEX.len()).map(|unit| place(unit * UNIT)) {
        let is_alone = matches!(place.load(Ordering::Relaxed), before if before == 0 || before == number);
        place.store(if is_alone { number } else { SEVERAL }, Ordering::Release);
    }
}

/// A segment for a thread, of so many bytes at least: one that waits, or a new one.
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
    // Room for somewhat larger plans, so that the next need not move all; only addresses.
    let len = bytes.checked_add(bytes / 4)?.checked_next_multiple_of(UNIT)?;
    let shift = least_size.ilog2();
    let begin = map_aligned(len)?;
    let sizes = heap::map(word(((len >> shift) + 1) * 8), libc::MAP_NORESERVE);
    if sizes.is_null() {
        return None;
    }
    // An entry is whole before it is counted; whoever makes one at the same time waits for a few stores.
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

/// The child of a fork: whoever was making a segment is not here.
pub(super) fn after_fork() {
    IS_MAKING.store(false, Ordering::Relaxed);
}

/// Addresses for so many bytes, a multiple of the size of a huge page, from such a multiple on.
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
            // SAFETY: a part of the mapping that was just made and that nobody uses.
            unsafe { libc::munmap(ptr::with_exposed_provenance_mut(word(from)), word(to - from)) };
        }
    };
    unmap(first, begin);
    unmap(begin + len, first + whole);
    if len >= LEAST_HUGE && settings().is_some_and(|settings| settings.huge_pages) {
        let memory = ptr::with_exposed_provenance_mut(word(begin));
        // SAFETY: the mapping is ours.
        unsafe { libc::madvise(memory, word(len), libc::MADV_HUGEPAGE) };
    }
    Some(begin)
}

/// Nothing is live in the segment: its pages go back.
pub(super) fn rest(segment: Segment) {
    let memory = ptr::with_exposed_provenance_mut(word(segment.base));
    // SAFETY: nothing is live in it.
    unsafe { libc::madvise(memory, word(segment.len), libc::MADV_DONTNEED) };
    if settings().is_some_and(|settings| settings.checks) {
        super::check::fill_free(segment);
    }
}

/// Nothing is live in the segment that begins there, and its thread needs it no more.
pub(super) fn release(segment: Segment) {
    let Some(entry) = find(segment.base) else { return };
    rest(segment);
    entry.owner.store(0, Ordering::Relaxed);
    entry.is_used.store(false, Ordering::Release);
}
