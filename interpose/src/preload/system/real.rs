//! Calls the allocator below this one, whichever it is.
//!
//! `dlsym(RTLD_NEXT)` looks the functions up, not glibc's `__libc_malloc`. So a program that is linked with jemalloc
//! keeps it, and other C libraries work too. Requests of `dlsym` itself are served from a small arena that is never
//! given back.
#![allow(unsafe_code, reason = "foreign functions, and memory of the bootstrap arena")]

use std::cell::UnsafeCell;
use std::ffi::{c_int, c_void};
use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::next::{Lazy, lookups};

const ARENA: usize = 64 << 10;

#[repr(align(64))]
struct Arena(UnsafeCell<[u8; ARENA]>);

// SAFETY: each part of the arena is handed out once, to one caller.
unsafe impl Sync for Arena {}

static BOOTSTRAP: Arena = Arena(UnsafeCell::new([0; ARENA]));
static TAKEN: AtomicUsize = AtomicUsize::new(0);

/// Zeroed memory for requests before the real functions are known; the size is stored before the block.
fn bootstrap(size: usize, align: usize) -> *mut c_void {
    let align = align.max(16);
    let whole = size.saturating_add(align + 16);
    let at = TAKEN.fetch_add(whole.saturating_add(15) & !15, Ordering::Relaxed);
    if at.saturating_add(whole) > ARENA {
        return ptr::null_mut();
    }
    let begin = BOOTSTRAP.0.get().cast::<u8>();
    let block = (begin as usize + at + 16).next_multiple_of(align) - begin as usize;
    // SAFETY: `block - 16` and the bytes after it lie in the part that was just taken, at a multiple of 16.
    unsafe {
        begin.add(block - 16).cast::<usize>().write(size);
        begin.add(block).cast()
    }
}

#[inline]
fn is_bootstrap(block: *mut c_void) -> bool {
    (block as usize).wrapping_sub(BOOTSTRAP.0.get() as usize) < ARENA
}

/// Bytes of a block of the bootstrap arena.
///
/// # Safety
///
/// [`bootstrap`] returned it.
unsafe fn bootstrap_size(block: *mut c_void) -> usize {
    // SAFETY: `bootstrap` stored the size before the block.
    unsafe { block.cast::<usize>().sub(2).read() }
}

type Sized1 = unsafe extern "C" fn(usize) -> *mut c_void;
type Sized2 = unsafe extern "C" fn(usize, usize) -> *mut c_void;

lookups! { prepare:
    MALLOC = c"malloc": Sized1;
    CALLOC = c"calloc": Sized2;
    REALLOC = c"realloc": unsafe extern "C" fn(*mut c_void, usize) -> *mut c_void;
    FREE = c"free": unsafe extern "C" fn(*mut c_void);
    MEMALIGN = c"memalign": Sized2;
    ALIGNED_ALLOC = c"aligned_alloc": Sized2;
    POSIX_MEMALIGN = c"posix_memalign": unsafe extern "C" fn(*mut *mut c_void, usize, usize) -> c_int;
    VALLOC = c"valloc": Sized1;
    PVALLOC = c"pvalloc": Sized1;
    USABLE = c"malloc_usable_size": unsafe extern "C" fn(*mut c_void) -> usize;
    TRIM = c"malloc_trim": unsafe extern "C" fn(usize) -> c_int;
}

#[inline]
pub(crate) fn malloc(size: usize) -> *mut c_void {
    match MALLOC.get() {
        // SAFETY: it is the function of that name, which takes any size.
        Some(call) => unsafe { call(size) },
        None => bootstrap(size, 16),
    }
}

#[inline]
pub(crate) fn calloc(count: usize, size: usize) -> *mut c_void {
    match CALLOC.get() {
        // SAFETY: it is the function of that name, which takes any sizes.
        Some(call) => unsafe { call(count, size) },
        None => bootstrap(count.saturating_mul(size), 16),
    }
}

/// A block of `memalign` or `aligned_alloc`.
pub(crate) fn aligned(function: &Lazy<Sized2>, align: usize, size: usize) -> *mut c_void {
    match function.get() {
        // SAFETY: it is the function of that name, which refuses unsupported alignments.
        Some(call) => unsafe { call(align, size) },
        None => bootstrap(size, align.min(4096)),
    }
}

/// A block of `valloc` or `pvalloc`.
pub(crate) fn paged(function: &Lazy<Sized1>, size: usize) -> *mut c_void {
    match function.get() {
        // SAFETY: it is the function of that name, which takes any size.
        Some(call) => unsafe { call(size) },
        None => bootstrap(size, 4096),
    }
}

/// # Safety
///
/// `out` may be written.
pub(crate) unsafe fn posix_memalign(out: *mut *mut c_void, align: usize, size: usize) -> c_int {
    match POSIX_MEMALIGN.get() {
        // SAFETY: it is the function of that name; the caller guarantees that `out` may be written.
        Some(call) => unsafe { call(out, align, size) },
        None => libc::ENOMEM,
    }
}

/// # Safety
///
/// `block` is null, or a live block of this allocator.
#[inline]
pub(crate) unsafe fn free(block: *mut c_void) {
    if is_bootstrap(block) {
        return;
    }
    if let Some(call) = FREE.get() {
        // SAFETY: it is the function of that name; the caller guarantees that the block is its own.
        unsafe { call(block) };
    }
}

/// # Safety
///
/// As [`free`].
pub(crate) unsafe fn realloc(block: *mut c_void, size: usize) -> *mut c_void {
    if is_bootstrap(block) {
        let moved = malloc(size);
        if !moved.is_null() {
            // SAFETY: both blocks have at least this many bytes, and do not overlap.
            unsafe {
                ptr::copy_nonoverlapping(block.cast::<u8>(), moved.cast(), bootstrap_size(block).min(size));
            };
        }
        return moved;
    }
    match REALLOC.get() {
        // SAFETY: it is the function of that name; the caller guarantees that the block is its own.
        Some(call) => unsafe { call(block, size) },
        None if block.is_null() => bootstrap(size, 16),
        None => ptr::null_mut(),
    }
}

/// The least value of the word before a large block of glibc; 0: that word's meaning is unknown.
static LARGE_WORD: AtomicUsize = AtomicUsize::new(0);

/// Whether a block is smaller than [`set_large`] said, as far as that is known without a call.
///
/// # Safety
///
/// As [`free`].
#[inline]
pub(crate) unsafe fn is_small(block: *mut c_void) -> bool {
    let large = LARGE_WORD.load(Ordering::Relaxed);
    // SAFETY: `has_known_chunks` has checked that the word before a block of glibc holds its chunk's size, with flags
    // in the low bits. Before a block of the bootstrap arena this word lies in the arena, too, above the stored size.
    large > 0 && unsafe { block.cast::<usize>().sub(1).read() } < large
}

/// Blocks of at least this many bytes are large from now on.
pub(crate) fn set_large(bytes: usize) {
    if has_known_chunks() {
        LARGE_WORD.store(bytes, Ordering::Relaxed);
    }
}

/// Whether the real allocator is glibc's own, with the chunks that it has had since its first version.
fn has_known_chunks() -> bool {
    if !cfg!(all(target_arch = "x86_64", target_env = "gnu")) || !is_of_glibc() {
        return false;
    }
    [24, 1000, 100_000].into_iter().all(|size| {
        let block = malloc(size);
        if block.is_null() {
            return false;
        }
        // SAFETY: the block is live, and glibc's blocks have a word before them.
        unsafe {
            let word = block.cast::<usize>().sub(1).read();
            let usable = usable(block);
            free(block);
            // The usable size of a mapped chunk is one word smaller.
            word & !7 == usable + 8 || word & !7 == usable + 16
        }
    })
}

/// Whether `malloc` is in the library that reports glibc's version.
fn is_of_glibc() -> bool {
    // SAFETY: the name ends with a zero.
    let version = unsafe { libc::dlsym(libc::RTLD_NEXT, c"gnu_get_libc_version".as_ptr()) };
    let Some(malloc) = MALLOC.get().filter(|_| !version.is_null()) else { return false };
    let mut pair = [malloc as usize, version.addr()];
    // SAFETY: the function receives a pointer to such a pair, which outlives the call.
    unsafe { libc::dl_iterate_phdr(Some(holds_both), ptr::from_mut(&mut pair).cast()) == 1 }
}

/// 1 if a library contains both of a pair of addresses, which ends the search; 0 if it contains neither; otherwise 2.
unsafe extern "C" fn holds_both(info: *mut libc::dl_phdr_info, _size: usize, pair: *mut c_void) -> c_int {
    // SAFETY: the C library describes a loaded library, its segments and their number; the pair is the caller's.
    let (base, segments, pair) = unsafe {
        let segments = std::slice::from_raw_parts((*info).dlpi_phdr, (*info).dlpi_phnum.into());
        ((*info).dlpi_addr, segments, &*pair.cast::<[usize; 2]>())
    };
    let holds = |at: usize| {
        let is_in = |segment: &libc::Elf64_Phdr| {
            let begin = base.wrapping_add(segment.p_vaddr);
            segment.p_type == libc::PT_LOAD && (at as u64).wrapping_sub(begin) < segment.p_memsz
        };
        segments.iter().any(is_in)
    };
    match pair.map(holds) {
        [true, true] => 1,
        [false, false] => 0,
        _ => 2,
    }
}

/// The usable bytes of a block.
///
/// # Safety
///
/// As [`free`].
#[inline]
pub(crate) unsafe fn usable(block: *mut c_void) -> usize {
    if is_bootstrap(block) {
        // SAFETY: it is a block of the bootstrap arena.
        return unsafe { bootstrap_size(block) };
    }
    match USABLE.get() {
        // SAFETY: it is the function of that name; the caller guarantees that the block is its own.
        Some(call) => unsafe { call(block) },
        None => 0,
    }
}

/// The highest end of the heap before memory was given back.
static HEAP_END: AtomicUsize = AtomicUsize::new(0);

fn heap_end() -> usize {
    // SAFETY: an increment of 0 changes nothing.
    unsafe { libc::sbrk(0) }.addr()
}

/// Takes the memory again that [`trim`] gave back, and has the allocator keep it as free memory if it would.
pub(crate) fn untrim() {
    const PIECE: usize = 64 << 10;
    let missing = HEAP_END.load(Ordering::Relaxed).saturating_sub(heap_end());
    let mut last: *mut *mut c_void = ptr::null_mut();
    // The first pieces may come from free memory below.
    for _ in 0..missing.div_ceil(PIECE) * 2 {
        let piece: *mut *mut c_void = malloc(PIECE).cast();
        if piece.is_null() || heap_end() >= HEAP_END.load(Ordering::Relaxed) {
            // SAFETY: null, or a block that was just made.
            unsafe { free(piece.cast()) };
            break;
        }
        // SAFETY: the block has room for a pointer.
        unsafe { piece.write(last.cast()) };
        last = piece;
    }
    while !last.is_null() {
        // SAFETY: each block was made above, and holds the one before.
        unsafe {
            let before = last.read().cast();
            free(last.cast());
            last = before;
        }
    }
}

/// Gives free memory back to the kernel, if the allocator supports that.
pub(crate) fn trim() {
    if let Some(call) = TRIM.get() {
        HEAP_END.fetch_max(heap_end(), Ordering::Relaxed);
        // SAFETY: it is the function of that name, which takes any size.
        unsafe { call(0) };
    }
}
