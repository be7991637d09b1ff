//! The system's jemalloc, loaded beside the process's own allocator.
//!
//! It keeps its data of each thread in static TLS. glibc leaves too little of that to libraries loaded late, so a
//! process that plays jemalloc starts with more (see [`Malloc::start_environment`](crate::host::Malloc::start_environment)).
//!
//! Options hold for a whole process. The environment sets `oversize_threshold` before the process starts (see
//! [`Malloc::start_environment`](crate::host::Malloc::start_environment)), and it is read back here. A contender whose options are not
//! in force is not played.
//!
//! `jemalloc/one-arena` follows the literal words "one arena without a thread cache, default decay": one arena of its
//! own for all requests, and no thread cache. It does not purge large extents eagerly, as the option behind the name
//! "oversize arena" would.
//!
//! # References
//!
//! 1. jemalloc 5.3, *jemalloc(3)*: `opt.oversize_threshold`, `arenas.create`, `stats.arenas.<i>.mutexes`.
//! 2. glibc, *Dynamic Linking Tunables*: `glibc.rtld.optional_static_tls`.
#![allow(unsafe_code, reason = "foreign functions")]

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::mem::ManuallyDrop;
use std::ptr;
use std::sync::OnceLock;

use libloading::os::unix;
use planlab_dsa::{AllocError, Bytes, NotLive, Usage};

use crate::address::{as_word, pointer_to};
use crate::host::memory::{Memory, block};

/// The file name that its ABI has everywhere.
const FILE: &str = "libjemalloc.so.2";
/// `MALLOCX_TCACHE_NONE`.
const WITHOUT_THREAD_CACHE: c_int = 1 << 8;
/// The locks of an arena that threads wait for.
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
/// Stands for all arenas together in the names of statistics.
const ALL_ARENAS: u32 = 4096;
/// Larger than any request, so nothing is purged for its size.
const NEVER: usize = isize::MAX.cast_unsigned();

/// The functions of jemalloc that are called.
#[derive(Clone, Copy)]
struct Library {
    malloc: unsafe extern "C" fn(usize) -> *mut c_void,
    free: unsafe extern "C" fn(*mut c_void),
    mallocx: unsafe extern "C" fn(usize, c_int) -> *mut c_void,
    dallocx: unsafe extern "C" fn(*mut c_void, c_int),
    usable_size: unsafe extern "C" fn(*const c_void) -> usize,
    control: unsafe extern "C" fn(*const c_char, *mut c_void, *mut usize, *mut c_void, usize) -> c_int,
}

impl Library {
    /// The library of this process, loaded at the first call.
    fn loaded_library() -> Result<&'static Self, String> {
        static LIBRARY: OnceLock<Result<Library, String>> = OnceLock::new();
        LIBRARY.get_or_init(Self::load_library).as_ref().map_err(Clone::clone)
    }

    fn load_library() -> Result<Self, String> {
        let refused =
            |error| format!("jemalloc cannot be loaded (Debian's package is libjemalloc2): {error}");
        // SAFETY: the library's initialisers only set jemalloc up, and with `RTLD_LOCAL` its names stay private, so it
        // replaces nobody else's `malloc`.
        let file = unsafe { unix::Library::open(Some(FILE), unix::RTLD_NOW | unix::RTLD_LOCAL) };
        // It is never unloaded: its blocks and the ends of its threads need it.
        let file = ManuallyDrop::new(file.map_err(refused)?);
        // SAFETY: the types match those in jemalloc(3).
        let library = || unsafe {
            Ok(Self {
                malloc: *file.get(b"malloc\0")?,
                free: *file.get(b"free\0")?,
                mallocx: *file.get(b"mallocx\0")?,
                dallocx: *file.get(b"dallocx\0")?,
                usable_size: *file.get(b"malloc_usable_size\0")?,
                control: *file.get(b"mallctl\0")?,
            })
        };
        library().map_err(refused)
    }
}

/// Plain numbers that jemalloc reads and writes.
trait Plain: Copy + Default {}
impl Plain for u32 {}
impl Plain for u64 {}
impl Plain for usize {}
impl Plain for isize {}

fn c_name(text: &str) -> CString {
    CString::new(text).expect("names hold no zero")
}

fn read_control<T: Plain>(text: &str) -> Option<T> {
    let jemalloc = Library::loaded_library().ok()?;
    let (mut value, mut length) = (T::default(), size_of::<T>());
    let old = ptr::from_mut(&mut value).cast::<c_void>();
    // SAFETY: `old` has room for `length` bytes; jemalloc refuses if its value has another length.
    let code = unsafe { (jemalloc.control)(c_name(text).as_ptr(), old, &raw mut length, ptr::null_mut(), 0) };
    (code == 0 && length == size_of::<T>()).then_some(value)
}

fn write_control<T: Plain>(text: &str, mut value: T) -> Result<(), String> {
    let jemalloc = Library::loaded_library()?;
    let new = ptr::from_mut(&mut value).cast::<c_void>();
    let unasked = ptr::null_mut();
    // SAFETY: `new` holds a value of that length; jemalloc refuses if it expects another.
    let code =
        unsafe { (jemalloc.control)(c_name(text).as_ptr(), unasked, ptr::null_mut(), new, size_of::<T>()) };
    if code == 0 { Ok(()) } else { Err(format!("jemalloc: {text} cannot be set: error {code}")) }
}

/// Refreshes the statistics, which are those of the last epoch.
fn refresh_epoch() {
    // A build without statistics reports that when they are read.
    let _ = write_control("epoch", 1_u64);
}

fn library_version(jemalloc: &Library) -> String {
    let (mut value, mut length) = (ptr::null::<c_char>(), size_of::<*const c_void>());
    let old = ptr::from_mut(&mut value).cast::<c_void>();
    // SAFETY: `old` has room for a pointer.
    let code = unsafe { (jemalloc.control)(c"version".as_ptr(), old, &raw mut length, ptr::null_mut(), 0) };
    if code != 0 || value.is_null() {
        return "jemalloc of an unknown version".to_owned();
    }
    // SAFETY: jemalloc returned a text that lives as long as the process.
    let text = unsafe { CStr::from_ptr(value) }.to_string_lossy().into_owned();
    format!("jemalloc {}", text.split('-').next().unwrap_or_default())
}

/// The options in force, if `oversize_threshold` has the wanted value.
pub(super) fn options_in_force(oversize_threshold: usize) -> Result<String, String> {
    let jemalloc = Library::loaded_library()?;
    let found: Option<usize> = read_control("opt.oversize_threshold");
    let decay = |which: &str| read_control::<isize>(&format!("opt.{which}_decay_ms")).unwrap_or(-1);
    let arenas = read_control::<u32>("opt.narenas").unwrap_or_default();
    let text = format!(
        "{}, oversize_threshold:{}, dirty_decay_ms:{}, muzzy_decay_ms:{}, narenas:{arenas}",
        library_version(jemalloc),
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
fn mapped_usage() -> Option<Usage> {
    refresh_epoch();
    let reserved = Bytes::new(read_control::<usize>("stats.mapped")? as u64);
    Some(Usage { reserved, reserved_peak: reserved, ..Usage::default() })
}

fn lock_wait_ns() -> Option<u64> {
    refresh_epoch();
    let of_arenas = ARENA_LOCKS.iter().filter_map(|lock| {
        read_control::<u64>(&format!("stats.arenas.{ALL_ARENAS}.mutexes.{lock}.total_wait_time"))
    });
    let bins = read_control::<u32>("arenas.nbins")?;
    let of_bins = (0..bins).filter_map(|bin| {
        read_control::<u64>(&format!("stats.arenas.{ALL_ARENAS}.bins.{bin}.mutex.total_wait_time"))
    });
    let waits: Vec<u64> = of_arenas.chain(of_bins).collect();
    (!waits.is_empty()).then(|| waits.into_iter().sum())
}

/// `malloc` and `free` with the default thread caches and arenas.
pub(super) struct Jemalloc(Library);

impl Jemalloc {
    pub(super) fn new() -> Result<Self, String> {
        Library::loaded_library().copied().map(Self)
    }
}

// SAFETY: malloc returns memory of at least that size that belongs to the caller until it is freed.
unsafe impl Memory for Jemalloc {
    #[inline]
    fn alloc(&mut self, size: u64) -> Result<u64, AllocError> {
        // SAFETY: malloc takes any size.
        block(unsafe { (self.0.malloc)(as_word(size)) }, size)
    }

    #[inline]
    unsafe fn free(&mut self, address: u64) -> Result<(), NotLive> {
        // SAFETY: the caller guarantees that this malloc returned it and that it was not freed since.
        unsafe { (self.0.free)(pointer_to(address)) };
        Ok(())
    }

    unsafe fn usable_bytes(&self, address: u64) -> Option<u64> {
        // SAFETY: the caller guarantees that this malloc returned it and that it was not freed since.
        Some(unsafe { (self.0.usable_size)(pointer_to(address)) } as u64)
    }

    fn process_usage() -> Option<Usage> {
        mapped_usage()
    }

    fn lock_wait_ns() -> Option<u64> {
        lock_wait_ns()
    }
}

/// One arena for all threads, without thread caches.
pub(super) struct OneArena {
    jemalloc: Library,
    flags: c_int,
}

/// The arena of this process.
static ARENA: OnceLock<Result<u32, String>> = OnceLock::new();

impl OneArena {
    pub(super) fn new() -> Result<Self, String> {
        let arena = ARENA.get_or_init(create_arena).clone()?;
        let arena = c_int::try_from(arena).map_err(|_| format!("jemalloc: arena {arena}"))?;
        // `MALLOCX_ARENA`: 0 means no arena.
        let flags = (arena + 1) << 20 | WITHOUT_THREAD_CACHE;
        Ok(Self { jemalloc: *Library::loaded_library()?, flags })
    }

    /// The options in force, if they are the contender's.
    pub(super) fn options_in_force() -> Result<String, String> {
        let arena = ARENA.get_or_init(create_arena).clone()?;
        let usual = read_control::<isize>("opt.dirty_decay_ms");
        let decay = read_control::<isize>(&format!("arena.{arena}.dirty_decay_ms"));
        let threshold = read_control::<usize>(&format!("arena.{arena}.oversize_threshold"));
        let (decay_ms, text) = (decay.unwrap_or(-1), library_version(Library::loaded_library()?));
        let text = format!("{text}, arena {arena} without thread caches, dirty_decay_ms:{decay_ms}");
        if decay.is_some() && decay == usual && threshold == Some(NEVER) {
            Ok(text)
        } else {
            Err(format!("{text}: not the default decay, or oversize_threshold is {threshold:?}"))
        }
    }
}

fn create_arena() -> Result<u32, String> {
    Library::loaded_library()?;
    let arena: u32 = read_control("arenas.create").ok_or("jemalloc: no arena can be created")?;
    write_control(&format!("arena.{arena}.oversize_threshold"), NEVER)?;
    Ok(arena)
}

// SAFETY: mallocx returns memory of at least that size that belongs to the caller until it is freed.
unsafe impl Memory for OneArena {
    #[inline]
    fn alloc(&mut self, size: u64) -> Result<u64, AllocError> {
        // SAFETY: mallocx takes any size but 0.
        block(unsafe { (self.jemalloc.mallocx)(as_word(size).max(1), self.flags) }, size)
    }

    #[inline]
    unsafe fn free(&mut self, address: u64) -> Result<(), NotLive> {
        if address != 0 {
            // SAFETY: the caller guarantees that this arena returned it and that it was not freed since.
            unsafe { (self.jemalloc.dallocx)(pointer_to(address), WITHOUT_THREAD_CACHE) };
        }
        Ok(())
    }

    unsafe fn usable_bytes(&self, address: u64) -> Option<u64> {
        // SAFETY: the caller guarantees that this arena returned it and that it was not freed since.
        Some(unsafe { (self.jemalloc.usable_size)(pointer_to(address)) } as u64)
    }

    fn process_usage() -> Option<Usage> {
        mapped_usage()
    }

    fn lock_wait_ns() -> Option<u64> {
        lock_wait_ns()
    }
}
