//! Memory for plans: a table of segments in which any thread may look up an address.
//!
//! A segment is mapped once and never unmapped. A segment that no plan needs gives its pages back and waits for the
//! next plan. So an entry never changes once it is written, and a look-up takes no lock.
#![allow(unsafe_code, reason = "mappings, and links in freed blocks")]

use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering};

use super::marks::Marks;
use super::process::keeping_errno;
use super::settings::settings;
use super::{heap, idle, symbols};
use crate::course::Segment;
use crate::machine::PAGE;

/// The most segments of a process: their numbers from 1 on, and one more value, fit a byte.
pub(super) const MOST: usize = 254;
/// Segments are multiples of a huge page, in bytes.
const UNIT: u64 = 2 << 20;
/// Smaller segments get no huge pages.
const LEAST_HUGE: u64 = 8 * UNIT;
/// A round with a smaller load gets no plan if this many segments are used: many threads with small plans would hold more memory
/// than the real allocator, which they share.
pub(super) const SMALL: u64 = 1 << 20;
const MOST_FOR_SMALL: usize = 32;
/// Zeroed blocks with fewer whole pages are written, in bytes.
const LEAST_DISCARDED: u64 = 1 << 20;
/// The pages that are looked at to estimate how much memory a block holds; looking at all takes a tenth of writing to them.
const SAMPLES: u64 = 4;
/// If more memory than this would have to be written with zeros, the kernel provides new pages instead: glibc maps larger
/// blocks each time, too. Bytes.
const MOST_WRITTEN: u64 = 32 << 20;

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
    /// Whether it is claimed, and otherwise whether its pages hold memory.
    state: AtomicU8,
    claims: AtomicU32,
    /// The address of the last block that another thread freed; its first bytes hold the address of the one before.
    freed: AtomicU64,
    pub(super) marks: Marks,
}

/// The states of a segment: its thread uses it, or may use it.
const CLAIMED: u8 = 0;
/// Nothing is live in it.
const IDLE: u8 = 1;
/// Its pages are being given back.
const LEAVING: u8 = 2;
/// Its pages were given back since then.
const GIVEN_BACK: u8 = 3;

impl Entry {
    const fn new() -> Self {
        Self {
            base: AtomicU64::new(0),
            len: AtomicU64::new(0),
            sizes: AtomicPtr::new(ptr::null_mut()),
            shift: AtomicU32::new(0),
            owner: AtomicUsize::new(0),
            is_used: AtomicBool::new(false),
            state: AtomicU8::new(CLAIMED),
            claims: AtomicU32::new(0),
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

    /// Called before its thread uses it: its pages stay from now on. Returns whether they were given back.
    #[inline]
    pub(super) fn claim(&self) -> bool {
        self.claims.store(self.claims().wrapping_add(1), Ordering::Relaxed);
        loop {
            let before = self.state.load(Ordering::Acquire);
            if before == LEAVING {
                self.wait();
            } else if self.change(before, CLAIMED) {
                return before == GIVEN_BACK;
            }
        }
    }

    /// Lets the process go on that gives its pages back, unless that process has been ended in the middle of it. In a
    /// frozen process without a system call.
    #[cold]
    fn wait(&self) {
        if idle::has_ended() {
            self.change(LEAVING, GIVEN_BACK);
        } else if symbols::is_frozen() {
            std::hint::spin_loop();
        } else {
            std::thread::yield_now();
        }
    }

    /// Called when nothing is live in it any more.
    #[inline]
    pub(super) fn unclaim(&self) {
        self.state.store(IDLE, Ordering::Release);
    }

    /// How often it was claimed.
    pub(super) fn claims(&self) -> u32 {
        self.claims.load(Ordering::Relaxed)
    }

    pub(super) fn is_idle(&self) -> bool {
        self.state.load(Ordering::Relaxed) == IDLE
    }

    /// Whether it may hold pages now, or could give some back later.
    pub(super) fn holds_pages(&self) -> bool {
        self.is_used.load(Ordering::Relaxed) && self.state.load(Ordering::Relaxed) != GIVEN_BACK
    }

    /// Gives its pages back, unless it is claimed. Any task that shares the memory may call this.
    pub(super) fn give_back_idle(&self, discard: impl Fn(Segment)) {
        if self.change(IDLE, LEAVING) {
            discard(self.segment());
            self.state.store(GIVEN_BACK, Ordering::Release);
        }
    }

    fn change(&self, from: u8, to: u8) -> bool {
        self.state.compare_exchange(from, to, Ordering::Acquire, Ordering::Relaxed).is_ok()
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
    let entries = if is_beyond { &[] } else { all() };
    entries.iter().filter(move |entry| {
        let segment = entry.segment();
        begin < segment.base + segment.len && segment.base < end
    })
}

/// The segments so far.
pub(super) fn all() -> &'static [Entry] {
    TABLE.get(..COUNT.load(Ordering::Acquire)).unwrap_or(&TABLE)
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

/// Segments that small plans in the making will need.
static RESERVED: AtomicUsize = AtomicUsize::new(0);

/// Reserves a segment for a small plan; `false` if there are enough.
pub(super) fn reserve_small() -> bool {
    let used = all().iter().filter(|entry| entry.is_used.load(Ordering::Relaxed)).count();
    let is_reserved = RESERVED.fetch_add(1, Ordering::Relaxed) + used < MOST_FOR_SMALL;
    if !is_reserved {
        unreserve_small();
    }
    is_reserved
}

pub(super) fn unreserve_small() {
    RESERVED.fetch_sub(1, Ordering::Relaxed);
}

/// A segment of at least `bytes` bytes for a thread: an unused one, or a new one.
pub(super) fn acquire(owner: usize, bytes: u64, least_size: u64) -> Option<&'static Entry> {
    let take = |entry: &&Entry| entry.segment().len >= bytes && !entry.is_used.swap(true, Ordering::Acquire);
    let entry = match all().iter().find(take) {
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
    RESERVED.store(0, Ordering::Relaxed);
    end_giving_back();
}

/// Called when the process that gave pages back has ended, or does not exist here.
pub(super) fn end_giving_back() {
    all().iter().for_each(|entry| {
        entry.change(LEAVING, GIVEN_BACK);
    });
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
    Some(begin)
}

/// Advises the kernel on whole pages of segments; whether it took the advice.
///
/// # Safety
///
/// If the advice loses the contents, nobody needs them.
unsafe fn advise(address: u64, bytes: u64, advice: i32) -> bool {
    let memory = ptr::with_exposed_provenance_mut(word(address));
    // SAFETY: as the caller promises.
    unsafe { libc::madvise(memory, word(bytes), advice) == 0 }
}

/// An entry for each page from an address on, which is odd if the page holds memory. Pages that were swapped out count
/// as if they held none.
pub(super) fn resident_pages(address: u64, bytes: u64) -> Option<Vec<u8>> {
    let mut pages = vec![0; word(bytes.div_ceil(PAGE))];
    let memory = ptr::with_exposed_provenance_mut(word(address));
    // SAFETY: it writes an entry for each page of the range.
    unsafe { libc::mincore(memory, word(bytes), pages.as_mut_ptr()) == 0 }.then_some(pages)
}

/// Whether a page holds memory.
fn is_resident(page: u64) -> bool {
    let (memory, mut state) = (ptr::with_exposed_provenance_mut(word(page)), 0);
    // SAFETY: it writes an entry for the page.
    unsafe { libc::mincore(memory, word(PAGE), &raw mut state) == 0 && state & 1 == 1 }
}

/// Takes huge pages for those units of a segment that a round wrote to as a whole, and notes which have them. Their
/// pages are given back; nothing may be live in the segment.
pub(super) fn use_huge_pages(segment: Segment, pages: &[u8], huge: &mut Vec<bool>) {
    if segment.len < LEAST_HUGE {
        return;
    }
    let units = pages.chunks_exact(word(UNIT / PAGE));
    huge.resize(units.len().max(huge.len()), false);
    for (unit, (pages, is_huge)) in (0..).zip(units.zip(huge)) {
        let held = pages.iter().filter(|&page| page & 1 == 1).count();
        if *is_huge || held < pages.len() - pages.len() / 8 {
            continue;
        }
        let at = segment.base + unit * UNIT;
        // SAFETY: nothing is live in the segment.
        *is_huge = unsafe { advise(at, UNIT, libc::MADV_HUGEPAGE) && advise(at, UNIT, libc::MADV_DONTNEED) };
    }
}

/// Writes zeros to a planned block of this many bytes, or lets the kernel provide new pages as the program writes to
/// them: if it wrote to few the last time, or if there are many.
pub(super) fn clear(address: u64, bytes: u64) {
    let (begin, end) = (address.next_multiple_of(PAGE), (address + bytes) / PAGE * PAGE);
    if end < begin + LEAST_DISCARDED || !is_discarded(begin, end - begin) {
        // SAFETY: the caller's plan has this many bytes there, and nobody else uses them.
        return unsafe { zero(address, bytes) };
    }
    // SAFETY: as above; these are the parts of the block outside of the whole pages.
    unsafe {
        zero(address, begin - address);
        zero(end, address + bytes - end);
    }
}

/// Discards the contents of whole pages if that is cheaper than writing zeros; whether it did. In a frozen process it is
/// not possible.
fn is_discarded(begin: u64, bytes: u64) -> bool {
    !symbols::is_frozen()
        && keeping_errno(|| {
            let samples = (0..SAMPLES).map(|sample| begin + bytes / SAMPLES * sample / PAGE * PAGE);
            let held = bytes / SAMPLES * samples.filter(|&page| is_resident(page)).count() as u64;
            // Pages that were only read count as if they held memory, so huge pages could be much larger than what is used.
            // SAFETY: the block is new, and needs no contents.
            (held < bytes / 2 || held > MOST_WRITTEN)
                && unsafe {
                    advise(begin, bytes, libc::MADV_NOHUGEPAGE);
                    advise(begin, bytes, libc::MADV_DONTNEED)
                }
        })
}

/// # Safety
///
/// The bytes belong to the caller.
unsafe fn zero(address: u64, bytes: u64) {
    // SAFETY: as the caller promises.
    unsafe { ptr::write_bytes(ptr::with_exposed_provenance_mut::<u8>(word(address)), 0, word(bytes)) };
}

/// Gives the pages of a segment back. Nothing may be live in it.
pub(super) fn rest(segment: Segment) {
    // SAFETY: nothing is live in the segment.
    unsafe { advise(segment.base, segment.len, libc::MADV_DONTNEED) };
    if settings().is_some_and(|settings| settings.checks) {
        super::check::fill_free(segment);
    }
}

/// Releases a segment, in which nothing may be live, when its thread no longer needs it.
pub(super) fn release(segment: Segment) {
    let Some(entry) = find(segment.base) else { return };
    // Nobody gives its pages back while the next thread uses it.
    entry.claim();
    rest(segment);
    if segment.len >= LEAST_HUGE {
        // SAFETY: this advice keeps all contents.
        unsafe { advise(segment.base, segment.len, libc::MADV_NOHUGEPAGE) };
    }
    entry.owner.store(0, Ordering::Relaxed);
    entry.is_used.store(false, Ordering::Release);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn claim_after_a_watcher_was_killed_ends() {
        let entry = Entry::new();
        // No watching process exists here; one was killed while it gave the pages back.
        entry.state.store(LEAVING, Ordering::Relaxed);
        assert!(entry.claim());
        assert!(!entry.claim(), "it was claimed before");
    }
}
