//! The system calls of the program that concern the library, as C programs make them.
//!
//! - What the program does to the pages of a planned block ends with the block: see [`marks`].
//! - A program that has forbidden itself system calls (seccomp) would be killed for those of the library. So the library
//!   ends its work first.
//! - The first child in a new name space of processes is the one on which all others there depend. So the library
//!   starts none from then on: see [`idle`].
//! - A handler on a small stack of its own gets its memory from the real allocator, which needs little stack.
//!
//! A program that makes these calls without the C library is not noticed.
#![allow(unsafe_code, reason = "the interface of C")]
#![allow(unreachable_pub, reason = "symbols are seen by the linker, not by other modules")]

use std::ffi::{c_int, c_ulong, c_void};

use super::real::{Lazy, lookups};
use super::{idle, marks, symbols, thread};

lookups! { look_up:
    MADVISE = c"madvise": unsafe extern "C" fn(*mut c_void, usize, c_int) -> c_int;
    MPROTECT = c"mprotect": unsafe extern "C" fn(*mut c_void, usize, c_int) -> c_int;
    PKEY_MPROTECT = c"pkey_mprotect": unsafe extern "C" fn(*mut c_void, usize, c_int, c_int) -> c_int;
    MLOCK = c"mlock": unsafe extern "C" fn(*mut c_void, usize) -> c_int;
    MLOCK2 = c"mlock2": unsafe extern "C" fn(*mut c_void, usize, c_int) -> c_int;
    MMAP = c"mmap": unsafe extern "C" fn(*mut c_void, usize, c_int, c_int, c_int, libc::off_t) -> *mut c_void;
    MUNMAP = c"munmap": unsafe extern "C" fn(*mut c_void, usize) -> c_int;
    MREMAP = c"mremap": unsafe extern "C" fn(*mut c_void, usize, usize, c_int, *mut c_void) -> *mut c_void;
    PRCTL = c"prctl": unsafe extern "C" fn(c_int, c_ulong, c_ulong, c_ulong, c_ulong) -> c_int;
    SIGALTSTACK = c"sigaltstack": unsafe extern "C" fn(*const libc::stack_t, *mut libc::stack_t) -> c_int;
    UNSHARE = c"unshare": unsafe extern "C" fn(c_int) -> c_int;
    SETNS = c"setns": unsafe extern "C" fn(c_int, c_int) -> c_int;
}

/// Looks up all functions while there is only one thread.
pub(super) fn prepare() {
    look_up();
    #[cfg(target_arch = "x86_64")]
    system_call::prepare();
}

/// Calls the next function of a name; returns -1 and sets `errno` if there is no such function.
macro_rules! next {
    ($function:ident($($argument:expr),*)) => {
        match $function.get() {
            // SAFETY: it is the function of that name; the caller guarantees the arguments.
            Some(call) => unsafe { call($($argument),*) },
            None => {
                refuse(libc::ENOSYS);
                -1_i32 as _
            }
        }
    };
}

/// Sets `errno`; returns -1.
extern "C" fn refuse(reason: c_int) -> isize {
    // SAFETY: the result points to a variable of the calling thread.
    unsafe { libc::__errno_location().write(reason) };
    -1
}

/// Marks these bytes if a call succeeded; returns its result.
fn marked(result: c_int, at: *mut c_void, bytes: usize) -> c_int {
    if result == 0 {
        marks::mark(at.addr() as u64, bytes as u64);
    }
    result
}

/// Whether advice lasts, and would do harm to the next block.
const fn lasts(advice: c_int) -> bool {
    /// Guard pages, which the crate libc does not know yet.
    const GUARD_INSTALL: c_int = 102;
    matches!(
        advice,
        libc::MADV_DONTFORK
            | libc::MADV_WIPEONFORK
            | libc::MADV_DONTDUMP
            | libc::MADV_MERGEABLE
            | GUARD_INSTALL
    )
}

/// # Safety
///
/// As `madvise` of Linux.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn madvise(at: *mut c_void, bytes: usize, advice: c_int) -> c_int {
    let result = next!(MADVISE(at, bytes, advice));
    if lasts(advice) { marked(result, at, bytes) } else { result }
}

/// As `mprotect`, of pages whose marks are undone.
///
/// # Safety
///
/// As `mprotect` of POSIX.
pub(super) unsafe fn protect_unmarked(at: *mut c_void, bytes: usize, access: c_int) -> c_int {
    next!(MPROTECT(at, bytes, access))
}

/// # Safety
///
/// As `mprotect` of POSIX.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mprotect(at: *mut c_void, bytes: usize, access: c_int) -> c_int {
    // SAFETY: the caller guarantees it.
    marked(unsafe { protect_unmarked(at, bytes, access) }, at, bytes)
}

/// # Safety
///
/// As `pkey_mprotect` of Linux.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pkey_mprotect(at: *mut c_void, bytes: usize, access: c_int, key: c_int) -> c_int {
    let result = next!(PKEY_MPROTECT(at, bytes, access, key));
    marked(result, at, bytes)
}

/// # Safety
///
/// As `mlock` of POSIX.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mlock(at: *mut c_void, bytes: usize) -> c_int {
    marked(next!(MLOCK(at, bytes)), at, bytes)
}

/// # Safety
///
/// As `mlock2` of Linux.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mlock2(at: *mut c_void, bytes: usize, flags: c_int) -> c_int {
    marked(next!(MLOCK2(at, bytes, flags)), at, bytes)
}

/// # Safety
///
/// As `munmap` of POSIX.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn munmap(at: *mut c_void, bytes: usize) -> c_int {
    marked(next!(MUNMAP(at, bytes)), at, bytes)
}

/// As `mmap`, of pages whose marks are undone.
///
/// # Safety
///
/// As `mmap` of POSIX.
pub(super) unsafe fn map_unmarked(
    at: *mut c_void,
    bytes: usize,
    access: c_int,
    flags: c_int,
    file: c_int,
    offset: libc::off_t,
) -> *mut c_void {
    next!(MMAP(at, bytes, access, flags, file, offset))
}

/// # Safety
///
/// As `mmap` of POSIX.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mmap(
    at: *mut c_void,
    bytes: usize,
    access: c_int,
    flags: c_int,
    file: c_int,
    offset: libc::off_t,
) -> *mut c_void {
    // SAFETY: the caller guarantees it.
    let mapped = unsafe { map_unmarked(at, bytes, access, flags, file, offset) };
    if flags & libc::MAP_FIXED != 0 && mapped == at {
        marks::mark(at.addr() as u64, bytes as u64);
    }
    mapped
}

/// # Safety
///
/// As `mmap64` of Linux.
#[cfg(target_pointer_width = "64")]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mmap64(
    at: *mut c_void,
    bytes: usize,
    access: c_int,
    flags: c_int,
    file: c_int,
    offset: libc::off_t,
) -> *mut c_void {
    // SAFETY: the caller guarantees it.
    unsafe { mmap(at, bytes, access, flags, file, offset) }
}

/// # Safety
///
/// As `mremap` of Linux.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mremap(
    at: *mut c_void,
    before: usize,
    bytes: usize,
    flags: c_int,
    to: *mut c_void,
) -> *mut c_void {
    let moved = next!(MREMAP(at, before, bytes, flags, to));
    if moved != libc::MAP_FAILED {
        marks::mark(at.addr() as u64, before as u64);
        if flags & libc::MREMAP_FIXED != 0 {
            marks::mark(to.addr() as u64, bytes as u64);
        }
    }
    moved
}

/// # Safety
///
/// As `sigaltstack` of POSIX.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sigaltstack(new: *const libc::stack_t, old: *mut libc::stack_t) -> c_int {
    let result = next!(SIGALTSTACK(new, old));
    if result == 0 && !new.is_null() {
        // SAFETY: the kernel has read it, too.
        thread::set_alternate(unsafe { &*new });
    }
    result
}

/// Whether `PR_SET_SECCOMP` with these arguments forbids anything. Without a filter it only asks what the kernel knows.
const fn is_forbidding(mode: c_ulong, filter: c_ulong) -> bool {
    mode == libc::SECCOMP_MODE_STRICT as c_ulong
        || mode == libc::SECCOMP_MODE_FILTER as c_ulong && filter != 0
}

/// # Safety
///
/// As `prctl` of Linux.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn prctl(
    what: c_int,
    first: c_ulong,
    second: c_ulong,
    third: c_ulong,
    fourth: c_ulong,
) -> c_int {
    if what == libc::PR_SET_SECCOMP && is_forbidding(first, second) {
        symbols::freeze();
    }
    next!(PRCTL(what, first, second, third, fourth))
}

/// # Safety
///
/// As `unshare` of Linux.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn unshare(flags: c_int) -> c_int {
    if flags & libc::CLONE_NEWPID != 0 {
        idle::start_no_more();
    }
    next!(UNSHARE(flags))
}

/// # Safety
///
/// As `setns` of Linux.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn setns(file: c_int, kind: c_int) -> c_int {
    if kind == 0 || kind & libc::CLONE_NEWPID != 0 {
        idle::start_no_more();
    }
    next!(SETNS(file, kind))
}

/// `syscall` of the C library, which is how libseccomp installs a filter. The system call may return twice (`vfork`) or
/// on another stack (`clone`), so nothing may be on the stack that was not there before: this jumps.
#[cfg(target_arch = "x86_64")]
mod system_call {
    use std::arch::naked_asm;
    use std::ffi::{c_int, c_long, c_uint, c_ulong, c_void};
    use std::ptr;
    use std::sync::atomic::{AtomicPtr, Ordering};

    use super::{Lazy, is_forbidding, refuse, symbols};

    // SAFETY: it is a function; nobody calls it by this type.
    static SYSCALL: Lazy<extern "C" fn()> = unsafe { Lazy::new(c"syscall") };
    /// The next function of this name; null before it is known.
    static NEXT: AtomicPtr<c_void> = AtomicPtr::new(ptr::null_mut());

    pub(super) fn prepare() {
        NEXT.store(SYSCALL.get().map_or(ptr::null_mut(), |at| at as *mut c_void), Ordering::Release);
    }

    /// Sees the arguments of the system calls `seccomp` and `prctl`, which read as much of them as is kept here.
    #[expect(clippy::cast_possible_truncation, reason = "the kernel reads the low half, too")]
    extern "C" fn observe(number: c_long, first: c_ulong, second: c_ulong, third: c_ulong) {
        let is_noticed = if number == libc::SYS_prctl {
            first as c_int == libc::PR_SET_SECCOMP && is_forbidding(second, third)
        } else {
            match first as c_uint {
                libc::SECCOMP_SET_MODE_STRICT => second as c_uint == 0 && third == 0,
                // Without a filter it only asks what the kernel knows.
                libc::SECCOMP_SET_MODE_FILTER => third != 0,
                _ => false,
            }
        };
        if is_noticed {
            symbols::freeze();
        }
    }

    /// # Safety
    ///
    /// As `syscall` of the C library, whose arguments it passes on.
    #[unsafe(naked)]
    #[unsafe(no_mangle)]
    pub unsafe extern "C" fn syscall() {
        naked_asm!(
            "cmp rdi, {seccomp}",
            "je 3f",
            "cmp rdi, {prctl}",
            "je 3f",
            "2:",
            "mov rax, qword ptr [rip + {next}]",
            "test rax, rax",
            "jz 4f",
            "jmp rax",
            "3:",
            "push rdi",
            "push rsi",
            "push rdx",
            "push rcx",
            "push r8",
            "push r9",
            "sub rsp, 8",
            "call {observe}",
            "add rsp, 8",
            "pop r9",
            "pop r8",
            "pop rcx",
            "pop rdx",
            "pop rsi",
            "pop rdi",
            "jmp 2b",
            // Before the library is set up, the kernel is called at once.
            "4:",
            "mov rax, rdi",
            "mov rdi, rsi",
            "mov rsi, rdx",
            "mov rdx, rcx",
            "mov r10, r8",
            "mov r8, r9",
            "mov r9, qword ptr [rsp + 8]",
            "syscall",
            "cmp rax, -4095",
            "jae 5f",
            "ret",
            "5:",
            "neg eax",
            "mov edi, eax",
            "jmp {refuse}",
            seccomp = const libc::SYS_seccomp,
            prctl = const libc::SYS_prctl,
            next = sym NEXT,
            observe = sym observe,
            refuse = sym refuse,
        )
    }
}
