//! `malloc` and its kin, as C and C++ programs call them. The operators of C++ use them.
//!
//! # Safety
//!
//! A symbol has the contract of the function of its name in C, POSIX or the C library.
#![allow(unsafe_code, reason = "the interface of C")]
#![allow(unreachable_pub, reason = "symbols are seen by the linker, not by other modules")]

use std::ffi::{c_int, c_void};
use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use crate::machine::RequestAnswer;
use crate::preload::record;
use crate::preload::segments::entry::Entry;
use crate::preload::segments::{attributes, pages, table};
use crate::preload::settings::settings;
use crate::preload::system::{is_frozen, real, word};
use crate::preload::threads::process::Process;
use crate::preload::threads::thread::{Inner, Inside};

/// One in this many calls of each thread is timed; not its first, which sets things up.
const TIMED: u64 = 64;
/// A timed call counts with at most this many nanoseconds, because the thread may have waited for a processor.
const MOST_TIME: u64 = 100_000;
/// The alignment that `malloc` promises, in bytes.
const USUAL_ALIGN: usize = 16;

/// Requests of at least this many bytes are large; no request is large before the library is set up.
static LEAST: AtomicUsize = AtomicUsize::new(usize::MAX);

#[inline]
fn least() -> usize {
    LEAST.load(Ordering::Relaxed)
}

/// Whether any request is large. If not, nothing may be asked of the real allocator: a sanitizer's is not ready before
/// its own constructor.
#[inline]
fn is_open() -> bool {
    least() != usize::MAX
}

/// From now on requests of at least this many bytes are large.
pub(crate) fn open(least_size: u64) {
    real::set_large(word(least_size));
    LEAST.store(word(least_size), Ordering::Release);
}

/// Whether requests are recorded instead of planned.
fn is_recorded() -> bool {
    settings().is_some_and(|settings| settings.record.is_some())
}

fn address(block: *mut c_void) -> u64 {
    block.expose_provenance() as u64
}

/// The block of a large request: a plan's, or the real allocator's. Never inlined, so that a small request saves no
/// register.
#[inline(never)]
fn large(size: usize, align: usize, zeroed: bool, real: impl Fn() -> *mut c_void) -> *mut c_void {
    if is_frozen() {
        return large_frozen(size, align, zeroed, real);
    }
    let Some(mut inside) = Inside::enter() else { return real() };
    if is_recorded() {
        let block = real();
        if !block.is_null() {
            record::request(address(block), size as u64, align as u64);
        }
        return block;
    }
    timed(&mut inside, |inner| serve(inner, size, align, zeroed, real))
}

/// As `large`, without learning anything or making a system call.
#[cold]
fn large_frozen(size: usize, align: usize, zeroed: bool, real: impl Fn() -> *mut c_void) -> *mut c_void {
    let Some(mut inside) = Inside::enter_known() else { return real() };
    let Inner { machine, process } = inside.get();
    match machine.request_frozen(size as u64, align as u64, process) {
        Some(at) => hand_out(process, at, size, zeroed),
        None => real(),
    }
}

fn timed<T>(inside: &mut Inside, work: impl FnOnce(&mut Inner) -> T) -> T {
    let is_timed = inside.tally().requests.get() % TIMED == TIMED - 1;
    let begin = is_timed.then(Instant::now);
    let result = work(inside.get());
    if let Some(begin) = begin {
        let took = u64::try_from(begin.elapsed().as_nanos()).map_or(MOST_TIME, |took| took.min(MOST_TIME));
        inside.tally().nanoseconds.add(took * TIMED);
    }
    result
}

fn serve(
    inner: &mut Inner,
    size: usize,
    align: usize,
    zeroed: bool,
    real: impl Fn() -> *mut c_void,
) -> *mut c_void {
    let Inner { machine, process } = inner;
    match machine.handle_request(size as u64, align as u64, process) {
        RequestAnswer::Planned(at) => hand_out(process, at, size, zeroed),
        RequestAnswer::HandThrough(number) => {
            let block = real();
            if !block.is_null() {
                machine.record_placement(number, address(block));
            }
            block
        }
        RequestAnswer::Foreign => real(),
    }
}

/// The planned block at an address.
#[inline]
fn hand_out(process: &mut Process, at: u64, size: usize, zeroed: bool) -> *mut c_void {
    if let Some(checker) = &mut process.checker {
        checker.claim(at, size as u64);
    }
    if let Some(entry) = table::find(at) {
        entry.set_size(at, size as u64);
    }
    let block: *mut c_void = ptr::with_exposed_provenance_mut(word(at));
    if zeroed {
        pages::clear(at, size as u64);
    }
    block
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn malloc(size: usize) -> *mut c_void {
    if size < least() { real::malloc(size) } else { large(size, USUAL_ALIGN, false, || real::malloc(size)) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn calloc(count: usize, size: usize) -> *mut c_void {
    match count.checked_mul(size) {
        Some(bytes) if bytes >= least() => large(bytes, USUAL_ALIGN, true, || real::calloc(count, size)),
        _ => real::calloc(count, size),
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn memalign(align: usize, size: usize) -> *mut c_void {
    large_aligned(align, size, || real::aligned(&real::MEMALIGN, align, size))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn aligned_alloc(align: usize, size: usize) -> *mut c_void {
    large_aligned(align, size, || real::aligned(&real::ALIGNED_ALLOC, align, size))
}

/// The real allocator serves alignments above a huge page, and invalid ones.
fn large_aligned(align: usize, size: usize, real: impl Fn() -> *mut c_void) -> *mut c_void {
    if size < least() || !align.is_power_of_two() || align > 2 << 20 {
        return real();
    }
    large(size, align.max(USUAL_ALIGN), false, real)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn posix_memalign(out: *mut *mut c_void, align: usize, size: usize) -> c_int {
    let is_valid = align.is_power_of_two() && align.is_multiple_of(size_of::<usize>());
    if size < least() || !is_valid || align > 2 << 20 {
        // SAFETY: the caller guarantees it.
        return unsafe { real::posix_memalign(out, align, size) };
    }
    let block = large(size, align.max(USUAL_ALIGN), false, || real::aligned(&real::MEMALIGN, align, size));
    if block.is_null() {
        return libc::ENOMEM;
    }
    // SAFETY: the caller guarantees that `out` may be written.
    unsafe { out.write(block) };
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn valloc(size: usize) -> *mut c_void {
    large_aligned(4096, size, || real::paged(&real::VALLOC, size))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn pvalloc(size: usize) -> *mut c_void {
    let whole = size.checked_next_multiple_of(4096).unwrap_or(size);
    large_aligned(4096, whole, || real::paged(&real::PVALLOC, size))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn free(block: *mut c_void) {
    if block.is_null() {
        return;
    }
    // SAFETY: outside of all segments the block is the real allocator's; the caller guarantees that it is live.
    unsafe {
        if table::is_outside(block.addr() as u64) && real::is_small(block) {
            real::free(block);
        } else {
            free_other(block);
        }
    }
}

/// # Safety
///
/// As `free` of C, of a block that is not null.
#[inline(never)]
unsafe fn free_other(block: *mut c_void) {
    let at = block.expose_provenance() as u64;
    if let Some(entry) = table::find(at) {
        return free_planned(entry, at);
    }
    // SAFETY: the block is the real allocator's; the caller guarantees that it is live.
    unsafe {
        if is_open() && !is_frozen() && real::usable(block) >= least() {
            forget(at);
        }
        real::free(block);
    }
}

/// Notifies the machine of a block of the real allocator that is about to be freed.
fn forget(at: u64) {
    if is_recorded() {
        // A thread that never requested a block may free those of others.
        if let Some(_inside) = Inside::enter() {
            record::free(at);
        }
        return;
    }
    let Some(mut inside) = Inside::enter_known() else { return };
    let Inner { machine, process } = inside.get();
    machine.record_free(at, process);
}

/// Frees a planned block, in a frozen process without a system call.
fn free_planned(entry: &Entry, at: u64) {
    let is_frozen = is_frozen();
    if !is_frozen {
        attributes::undo(entry, at);
    } else if attributes::has_any(entry, at) {
        // It is never used again.
        return;
    }
    match Inside::enter_known() {
        Some(mut inside) if inside.number() == entry.owner() => {
            let Inner { machine, process } = inside.get();
            if let Some(checker) = &mut process.checker {
                checker.release(at);
            }
            if is_frozen {
                machine.free_frozen(at, process);
            } else {
                machine.free_planned(at, process);
            }
        }
        _ => entry.push_freed(at),
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn realloc(block: *mut c_void, size: usize) -> *mut c_void {
    if block.is_null() {
        // SAFETY: `malloc` takes any size.
        return unsafe { malloc(size) };
    }
    let at = block.expose_provenance() as u64;
    if let Some(entry) = table::find(at) {
        // SAFETY: the caller guarantees that the block is live.
        return unsafe { resize_planned(entry, block, size) };
    }
    // SAFETY: outside of all segments the block is the real allocator's; the caller guarantees that it is live.
    unsafe {
        if size < least() && (real::is_small(block) || !is_open() || real::usable(block) < least()) {
            real::realloc(block, size)
        } else {
            resize(block, at, size)
        }
    }
}

/// Resizes a block of the real allocator, in place or elsewhere, and notifies the machine.
///
/// # Safety
///
/// As `realloc` of a block of the real allocator.
unsafe fn resize(block: *mut c_void, at: u64, size: usize) -> *mut c_void {
    let inside = match (is_frozen(), is_recorded()) {
        (true, _) => None,
        (_, true) => Inside::enter(),
        _ => Inside::enter_known(),
    };
    let Some(mut inside) = inside else {
        // SAFETY: the caller guarantees a live block of the real allocator.
        return unsafe { real::realloc(block, size) };
    };
    if is_recorded() {
        record::free(at);
        // SAFETY: the caller guarantees a live block of the real allocator.
        let moved = unsafe { real::realloc(block, size) };
        if !moved.is_null() && size >= least() {
            record::request(address(moved), size as u64, USUAL_ALIGN as u64);
        }
        return moved;
    }
    let Inner { machine, process } = inside.get();
    let number = machine.record_resize(at, process);
    // SAFETY: the caller guarantees a live block of the real allocator.
    let moved = unsafe { real::realloc(block, size) };
    // If there was no memory, the block stays; if the new size is 0, it is gone.
    let lies = if moved.is_null() && size > 0 { block } else { moved };
    if let Some(number) = number
        && !lies.is_null()
    {
        machine.record_placement(number, address(lies));
    }
    moved
}

/// A planned block keeps its place as long as it does not grow, and at least half of it is used.
///
/// # Safety
///
/// As `realloc` of a planned block.
unsafe fn resize_planned(entry: &Entry, block: *mut c_void, size: usize) -> *mut c_void {
    let before = word(entry.size_of(block.addr() as u64));
    if size <= before && size > before / 2 {
        return block;
    }
    // SAFETY: `malloc` takes any size; the blocks do not overlap and have at least this many bytes; the old one is not
    // used afterwards.
    unsafe {
        let moved = if size > 0 { malloc(size) } else { ptr::null_mut() };
        if size > 0 {
            if moved.is_null() {
                return moved;
            }
            ptr::copy_nonoverlapping(block.cast::<u8>(), moved.cast(), before.min(size));
        }
        free(block);
        moved
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn malloc_usable_size(block: *mut c_void) -> usize {
    if block.is_null() {
        return 0;
    }
    match table::find(block.addr() as u64) {
        Some(entry) => word(entry.size_of(block.addr() as u64)),
        // SAFETY: the block is the real allocator's; the caller guarantees that it is live.
        None => unsafe { real::usable(block) },
    }
}

/// Ends a round of the calling thread and begins the next, also on all streams of GPUs. Has an effect only with
/// `PLANLAB_MARKS=1`.
#[unsafe(no_mangle)]
pub extern "C" fn planlab_step() {
    if let Some(mut inside) = Inside::enter() {
        let Inner { machine, process } = inside.get();
        machine.mark_round(process);
    }
    #[cfg(feature = "cuda")]
    crate::preload::devices::mark();
}
