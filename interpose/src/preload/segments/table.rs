//! Memory for plans: a table of segments in which any thread may look up an address.
//!
//! A segment is mapped once and never unmapped. A segment that no plan needs gives its pages back and waits for the
//! next plan. So an entry never changes once it is written, and a look-up takes no lock.

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, AtomicUsize, Ordering};

use super::check;
use super::entry::Entry;
use super::pages::{self, UNIT};
use crate::plans::Segment;
use crate::preload::settings::settings;
use crate::preload::system::{map, map_aligned, word};

/// The most segments of a process: their numbers from 1 on, and one more value, fit a byte.
pub(crate) const MOST: usize = 254;
/// A round with a smaller load gets no plan if this many segments are used: many threads with small plans would hold more memory
/// than the real allocator, which they share.
pub(crate) const SMALL: u64 = 1 << 20;
const MOST_FOR_SMALL: usize = 32;

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
pub(crate) fn is_outside(address: u64) -> bool {
    let is_beyond = address < LOWEST.load(Ordering::Relaxed) || address >= END.load(Ordering::Relaxed);
    is_beyond || place(address).load(Ordering::Relaxed) == 0
}

/// The segment of an address.
#[inline]
pub(crate) fn find(address: u64) -> Option<&'static Entry> {
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
    those.iter().find(|entry| entry.segment().contains_address(address))
}

/// The segments that have bytes between two addresses.
pub(crate) fn among(begin: u64, end: u64) -> impl Iterator<Item = &'static Entry> {
    let is_beyond = end <= LOWEST.load(Ordering::Relaxed) || begin >= END.load(Ordering::Relaxed);
    let entries = if is_beyond { &[] } else { all() };
    entries.iter().filter(move |entry| {
        let segment = entry.segment();
        begin < segment.base + segment.len && segment.base < end
    })
}

/// The segments so far.
pub(crate) fn all() -> &'static [Entry] {
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
pub(crate) fn reserve_small() -> bool {
    let used = all().iter().filter(|entry| entry.is_used.load(Ordering::Relaxed)).count();
    let is_reserved = RESERVED.fetch_add(1, Ordering::Relaxed) + used < MOST_FOR_SMALL;
    if !is_reserved {
        unreserve_small();
    }
    is_reserved
}

pub(crate) fn unreserve_small() {
    RESERVED.fetch_sub(1, Ordering::Relaxed);
}

/// A segment of at least `bytes` bytes for a thread: an unused one, or a new one.
pub(crate) fn acquire(owner: usize, bytes: u64, least_size: u64) -> Option<&'static Entry> {
    let take = |entry: &&Entry| entry.segment().len >= bytes && !entry.is_used.swap(true, Ordering::Acquire);
    let entry = match all().iter().find(take) {
        Some(entry) => entry,
        None => make(bytes, least_size)?,
    };
    entry.owner.store(owner, Ordering::Relaxed);
    if settings()?.checks {
        check::fill_free(entry.segment());
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
    let begin = map_aligned(word(len), word(UNIT)) as u64;
    if begin == 0 {
        return None;
    }
    let sizes = map(word(((len >> shift) + 1) * 8), libc::MAP_NORESERVE);
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
pub(crate) fn after_fork() {
    IS_MAKING.store(false, Ordering::Relaxed);
    RESERVED.store(0, Ordering::Relaxed);
    end_giving_back();
}

/// Called when the process that gave pages back has ended, or does not exist here.
pub(crate) fn end_giving_back() {
    all().iter().for_each(Entry::end_giving_back);
}

/// Releases a segment, in which nothing may be live, when its thread no longer needs it.
pub(crate) fn release(segment: Segment) {
    let Some(entry) = find(segment.base) else { return };
    // Nobody gives its pages back while the next thread uses it.
    entry.claim();
    pages::rest(segment);
    pages::use_small_pages(segment);
    entry.owner.store(0, Ordering::Relaxed);
    entry.is_used.store(false, Ordering::Release);
}
