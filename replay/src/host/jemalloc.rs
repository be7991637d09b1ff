//! jemalloc, beside the process's own allocator.
//!
//! Options hold for a whole process: `oversize_threshold` is set by the environment before the process starts (see
//! [`Malloc::environment`](super::Malloc::environment)) and read back here; a contender whose options are not in
//! force is not played.
//!
//! `jemalloc/one-arena` is the literal reading of "one arena without a thread cache, default decay": an arena of
//! its own for all requests, no thread cache, and no eager purge of large extents, which the option that the name
//! "oversize arena" stands for would bring with it.
//!
//! # References
//!
//! 1. jemalloc 5.3, *jemalloc(3)*: `opt.oversize_threshold`, `arenas.create`, `stats.arenas.<i>.mutexes`.
#![allow(unsafe_code, reason = "foreign functions")]

use std::ffi::{CStr, CString, c_int, c_void};
use std::ptr;
use std::sync::OnceLock;

use planlab_dsa::{AllocError, Bytes, NotLive, Usage};
use tikv_jemalloc_sys as sys;

use super::memory::Memory;
use crate::address::{pointer, word};

/// Threads wait for these locks of an arena.
const ARENA_LOCKS: [&str; 12] = [
    "large",
    "extent_avail",
    "extents_dirty",
    "extents_muzzy",
    "extents_retained",
    "decay_dirty",
    "decay_muzzy",
    "base",
    "tcache_list",
    "hpa_shard",
    "hpa_shard_grow",
    "hpa_sec",
];
/// What stands for all arenas together in the names of statistics.
const ALL_ARENAS: u32 = 4096;
/// Larger than any request: nothing is purged for its size.
const NEVER: usize = isize::MAX.cast_unsigned();

/// Plain numbers that jemalloc reads and writes.
trait Plain: Copy + Default {}
impl Plain for u32 {}
impl Plain for u64 {}
impl Plain for usize {}
impl Plain for isize {}

fn name(text: &str) -> CString {
    CString::new(text).expect("names hold no zero")
}

fn read<T: Plain>(text: &str) -> Option<T> {
    let (mut value, mut length) = (T::default(), size_of::<T>());
    let old = ptr::from_mut(&mut value).cast::<c_void>();
    // SAFETY: `old` has room for `length` bytes; jemalloc refuses where its value has another length.
    let code = unsafe { sys::mallctl(name(text).as_ptr(), old, &raw mut length, ptr::null_mut(), 0) };
    (code == 0 && length == size_of::<T>()).then_some(value)
}

fn write<T: Plain>(text: &str, mut value: T) -> Result<(), String> {
    let new = ptr::from_mut(&mut value).cast::<c_void>();
    // SAFETY: `new` holds a value of that length; jemalloc refuses where it wants another.
    let code =
        unsafe { sys::mallctl(name(text).as_ptr(), ptr::null_mut(), ptr::null_mut(), new, size_of::<T>()) };
    if code == 0 { Ok(()) } else { Err(format!("jemalloc: {text} cannot be set: error {code}")) }
}

/// Statistics are those of the last epoch.
fn advance() {
    // A build without statistics says so when they are read.
    let _ = write("epoch", 1_u64);
}

fn version() -> String {
    let (mut value, mut length) = (ptr::null::<std::ffi::c_char>(), size_of::<*const c_void>());
    let old = ptr::from_mut(&mut value).cast::<c_void>();
    // SAFETY: `old` has room for a pointer.
    let code = unsafe { sys::mallctl(c"version".as_ptr(), old, &raw mut length, ptr::null_mut(), 0) };
    if code != 0 || value.is_null() {
        return "jemalloc of an unknown version".to_owned();
    }
    // SAFETY: jemalloc gave a text that lives as long as the process.
    let text = unsafe { CStr::from_ptr(value) }.to_string_lossy().into_owned();
    format!("jemalloc {}", text.split('-').next().unwrap_or_default())
}

/// The options in force, if `oversize_threshold` is as wanted.
pub(super) fn options(oversize_threshold: usize) -> Result<String, String> {
    let found: Option<usize> = read("opt.oversize_threshold");
    let decay = |which: &str| read::<isize>(&format!("opt.{which}_decay_ms")).unwrap_or(-1);
    let arenas = read::<u32>("opt.narenas").unwrap_or_default();
    let text = format!(
        "{}, oversize_threshold:{}, dirty_decay_ms:{}, muzzy_decay_ms:{}, narenas:{arenas}",
        version(),
        found.map_or_else(|| "unknown".to_owned(), |bytes| bytes.to_string()),
        decay("dirty"),
        decay("muzzy"),
    );
    if found == Some(oversize_threshold) {
        Ok(text)
    } else {
        Err(format!("oversize_threshold should be {oversize_threshold}: {text}"))
    }
}

/// The bytes of mapped extents of all arenas.
fn mapped() -> Option<Usage> {
    advance();
    let reserved = Bytes::new(read::<usize>("stats.mapped")? as u64);
    Some(Usage { reserved, reserved_peak: reserved, ..Usage::default() })
}

fn lock_wait_ns() -> Option<u64> {
    advance();
    let of_arenas = ARENA_LOCKS
        .iter()
        .filter_map(|lock| read::<u64>(&format!("stats.arenas.{ALL_ARENAS}.mutexes.{lock}.total_wait_time")));
    let bins = read::<u32>("arenas.nbins")?;
    let of_bins = (0..bins).filter_map(|bin| {
        read::<u64>(&format!("stats.arenas.{ALL_ARENAS}.bins.{bin}.mutex.total_wait_time"))
    });
    let waits: Vec<u64> = of_arenas.chain(of_bins).collect();
    (!waits.is_empty()).then(|| waits.into_iter().sum())
}

fn answer(block: *mut c_void, size: u64) -> Result<u64, AllocError> {
    if block.is_null() {
        return Err(AllocError::OutOfMemory { size: Bytes::new(size), reserved: Bytes::ZERO });
    }
    Ok(block.expose_provenance() as u64)
}

/// `malloc` and `free` with thread caches and arenas as they come.
pub(super) struct Jemalloc;

// SAFETY: malloc hands out memory of at least that size that belongs to the caller until it is freed.
unsafe impl Memory for Jemalloc {
    #[inline]
    fn alloc(&mut self, size: u64) -> Result<u64, AllocError> {
        // SAFETY: malloc takes any size.
        answer(unsafe { sys::malloc(word(size)) }, size)
    }

    #[inline]
    unsafe fn free(&mut self, address: u64) -> Result<(), NotLive> {
        // SAFETY: the caller says that this malloc gave it and that it was not freed since.
        unsafe { sys::free(pointer(address)) };
        Ok(())
    }

    #[inline]
    fn backs(&self, address: u64, _: u64) -> bool {
        address != 0
    }

    unsafe fn usable(&self, address: u64) -> Option<u64> {
        // SAFETY: the caller says that this malloc gave it and that it was not freed since.
        Some(unsafe { sys::malloc_usable_size(pointer(address)) } as u64)
    }

    fn process_usage() -> Option<Usage> {
        mapped()
    }

    fn lock_wait_ns() -> Option<u64> {
        lock_wait_ns()
    }
}

/// One arena for all threads, without thread caches.
pub(super) struct OneArena {
    flags: c_int,
}

/// The arena of this process.
static ARENA: OnceLock<Result<u32, String>> = OnceLock::new();

impl OneArena {
    pub(super) fn new() -> Result<Self, String> {
        let arena = ARENA.get_or_init(create).clone()?;
        let flags = sys::MALLOCX_ARENA(arena as usize) | sys::MALLOCX_TCACHE_NONE;
        Ok(Self { flags })
    }

    /// The options in force, where they are those of the contender.
    pub(super) fn options() -> Result<String, String> {
        let arena = ARENA.get_or_init(create).clone()?;
        let usual = read::<isize>("opt.dirty_decay_ms");
        let decay = read::<isize>(&format!("arena.{arena}.dirty_decay_ms"));
        let threshold = read::<usize>(&format!("arena.{arena}.oversize_threshold"));
        let (decay_ms, text) = (decay.unwrap_or(-1), version());
        let text = format!("{text}, arena {arena} without thread caches, dirty_decay_ms:{decay_ms}");
        if decay.is_some() && decay == usual && threshold == Some(NEVER) {
            Ok(text)
        } else {
            Err(format!("{text}: not the default decay, or oversize_threshold is {threshold:?}"))
        }
    }
}

fn create() -> Result<u32, String> {
    let arena: u32 = read("arenas.create").ok_or("jemalloc: no arena can be created")?;
    write(&format!("arena.{arena}.oversize_threshold"), NEVER)?;
    Ok(arena)
}

// SAFETY: mallocx hands out memory of at least that size that belongs to the caller until it is freed.
unsafe impl Memory for OneArena {
    #[inline]
    fn alloc(&mut self, size: u64) -> Result<u64, AllocError> {
        // SAFETY: mallocx takes any size but 0.
        answer(unsafe { sys::mallocx(word(size).max(1), self.flags) }, size)
    }

    #[inline]
    unsafe fn free(&mut self, address: u64) -> Result<(), NotLive> {
        if address != 0 {
            // SAFETY: the caller says that this arena gave it and that it was not freed since.
            unsafe { sys::dallocx(pointer(address), sys::MALLOCX_TCACHE_NONE) };
        }
        Ok(())
    }

    #[inline]
    fn backs(&self, address: u64, _: u64) -> bool {
        address != 0
    }

    unsafe fn usable(&self, address: u64) -> Option<u64> {
        // SAFETY: the caller says that this arena gave it and that it was not freed since.
        Some(unsafe { sys::malloc_usable_size(pointer(address)) } as u64)
    }

    fn process_usage() -> Option<Usage> {
        mapped()
    }

    fn lock_wait_ns() -> Option<u64> {
        lock_wait_ns()
    }
}
