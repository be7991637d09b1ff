//! Gives the pages of plans back when no round has come for a while, though the program may only wait.
//!
//! A program that waits calls nothing, and only a task in its address space can give its pages back. A thread would
//! change the program: `unshare` fails with it, and Python warns at forks. So the task is a process of its own that shares
//! the memory (`CLONE_VM`), as between `vfork` and `exec`. It exists from the end of a round to the end of the waiting
//! time, if no further round comes, and its child's end reaches no `wait` of the program. It has no files, no signals and
//! no system calls but the few that it needs, because the program could otherwise use its rights after it has dropped
//! its own.
//!
//! ```text
//!              unclaim           a while without a claim
//!   claimed ------------> idle ----------------------------> given back
//!      ^                   |                                     |
//!      +-------- claim ----+-------------------------------------+
//! ```
//!
//! The process runs on a stack of its own, with the thread-local variables of the thread that started it. So it calls no
//! function of the C library.
#![allow(unsafe_code, reason = "a process that shares the memory, and system calls")]

use std::ffi::{c_int, c_long, c_void};
use std::ptr;
use std::sync::atomic::{AtomicI32, AtomicPtr, AtomicU8, AtomicU64, Ordering};

use super::heap;
use super::process::keeping_errno;
use super::segments::{self, MOST, word};
use super::settings::settings;
use crate::course::Segment;
use crate::signals::Masked;

/// A process is started if a plan of at least this many bytes could be given back.
const LEAST_WATCHED: u64 = 16 << 20;
const STACK: usize = 64 << 10;
/// Looks between the last round and the time at which the pages go back.
const LOOKS: u8 = 4;

/// Whether there is a watching process.
static WATCHER: AtomicU8 = AtomicU8::new(ABSENT);
const ABSENT: u8 = 0;
const PRESENT: u8 = 1;
/// It could not be started, the kernel refused something that it needs, or it would do harm.
const IMPOSSIBLE: u8 = 2;
/// The number of the last watching process, unless the program has no such child.
static NUMBER: AtomicI32 = AtomicI32::new(0);
/// Its number while it uses this memory; the kernel clears it, however the process ends.
static ALIVE: AtomicI32 = AtomicI32::new(0);
static STACK_BEGIN: AtomicPtr<u8> = AtomicPtr::new(ptr::null_mut());
/// The thread that started the watching process.
static STARTER: AtomicI32 = AtomicI32::new(0);
/// Nanoseconds between two looks.
static PAUSE: AtomicU64 = AtomicU64::new(0);

/// Called when nothing is live any more in a segment of this many bytes.
#[inline]
pub(super) fn watch(bytes: u64) {
    if bytes >= LEAST_WATCHED && WATCHER.load(Ordering::Relaxed) == ABSENT {
        keeping_errno(start);
    }
}

/// From now on no such process is started. One that exists goes on.
pub(super) fn start_no_more() {
    WATCHER.store(IMPOSSIBLE, Ordering::Relaxed);
}

/// Whether no watching process uses this memory. Makes no system call.
pub(super) fn has_ended() -> bool {
    ALIVE.load(Ordering::Acquire) == 0
}

/// In the child of a fork, which has no such process.
pub(super) fn after_fork() {
    NUMBER.store(0, Ordering::Relaxed);
    ALIVE.store(0, Ordering::Relaxed);
    change_from_present(ABSENT);
}

/// Called in a thread that ends. A watching process ends with the thread that started it; another may start the next.
pub(super) fn thread_ends() {
    if WATCHER.load(Ordering::Relaxed) == PRESENT && STARTER.load(Ordering::Relaxed) == thread_number() {
        change_from_present(ABSENT);
    }
}

fn thread_number() -> i32 {
    // SAFETY: it has no arguments.
    unsafe { libc::gettid() }
}

#[cold]
fn start() {
    let Some(settings) = settings().filter(|settings| !settings.checks && !settings.idle.is_zero()) else {
        return start_no_more();
    };
    if WATCHER.compare_exchange(ABSENT, PRESENT, Ordering::Acquire, Ordering::Relaxed).is_err() {
        return;
    }
    if is_predecessor_alive() {
        return change_from_present(ABSENT);
    }
    segments::end_giving_back();
    let pause = u64::try_from(settings.idle.as_nanos()).unwrap_or(u64::MAX) / u64::from(LOOKS);
    PAUSE.store(pause.max(1_000_000), Ordering::Relaxed);
    STARTER.store(thread_number(), Ordering::Relaxed);
    if !clone() {
        start_no_more();
    }
}

/// Changes the state if there is such a process. If none may be started any more, that stays so.
fn change_from_present(to: u8) {
    let _ = WATCHER.compare_exchange(PRESENT, to, Ordering::Release, Ordering::Relaxed);
}

/// Whether the last watching process, which no longer watches, still uses its stack. If not, nothing is left of it.
fn is_predecessor_alive() -> bool {
    let before = NUMBER.load(Ordering::Relaxed);
    // Not a child that the program has forked, and that may have the number now.
    let how = (libc::WNOHANG | libc::__WCLONE).unsigned_abs() as usize;
    // `waitpid` of the C library would be a cancellation point.
    // SAFETY: it takes note of the end of that child alone.
    !has_ended()
        || before != 0
            && unsafe { system_call(libc::SYS_wait4, [before.unsigned_abs() as usize, 0, how, 0, 0]) == 0 }
}

fn clone() -> bool {
    if STACK_BEGIN.load(Ordering::Relaxed).is_null() {
        STACK_BEGIN.store(heap::map(STACK, libc::MAP_NORESERVE), Ordering::Relaxed);
    }
    let stack = STACK_BEGIN.load(Ordering::Relaxed);
    if stack.is_null() {
        return false;
    }
    // The process never runs a handler of the program.
    let _masked = Masked::new();
    // SAFETY: the stack is used by this process alone; what it runs touches atomic variables and idle segments.
    let number = unsafe {
        let program = ptr::without_provenance_mut(libc::getpid().unsigned_abs() as usize);
        let flags = libc::CLONE_VM | libc::CLONE_PARENT_SETTID | libc::CLONE_CHILD_CLEARTID;
        let (alive, locals) = (ALIVE.as_ptr(), ptr::null_mut::<c_void>());
        libc::clone(run, stack.add(STACK).cast(), flags, program, alive, locals, alive)
    };
    NUMBER.store(number.max(0), Ordering::Relaxed);
    number > 0
}

extern "C" fn run(program: *mut c_void) -> c_int {
    let program = program.addr();
    let after = match confine(program) {
        Some(own) => look(program, own),
        None => IMPOSSIBLE,
    };
    change_from_present(after);
    0
}

/// Looks at the segments until there is nothing to give back, or the program has replaced itself.
fn look(program: usize, own: usize) -> u8 {
    let mut seen = [(0_u32, 0_u8); MOST];
    loop {
        pause();
        if !shares_memory(program, own) {
            return ABSENT;
        }
        let mut is_watching = false;
        for (entry, (claims, looks)) in segments::all().iter().zip(&mut seen) {
            let now = entry.claims();
            *looks = if now == *claims && entry.is_idle() { looks.saturating_add(1) } else { 0 };
            *claims = now;
            if *looks >= LOOKS {
                entry.give_back_idle(discard);
            }
            is_watching |= entry.holds_pages();
        }
        if !is_watching {
            return ABSENT;
        }
    }
}

fn pause() {
    const MONOTONIC: usize = 1;
    let nanoseconds = PAUSE.load(Ordering::Relaxed);
    let time = [nanoseconds / 1_000_000_000, nanoseconds % 1_000_000_000];
    // SAFETY: the kernel reads the time, which has the two parts of a `timespec`.
    unsafe {
        system_call(libc::SYS_clock_nanosleep, [MONOTONIC, 0, time.as_ptr().expose_provenance(), 0, 0])
    };
}

/// Gives back the pages of a segment that nobody uses meanwhile.
fn discard(segment: Segment) {
    let advice = libc::MADV_DONTNEED.unsigned_abs() as usize;
    // SAFETY: nothing is live in the segment.
    unsafe { system_call(libc::SYS_madvise, [word(segment.base), word(segment.len), advice, 0, 0]) };
}

/// Whether the program still has this memory; not after `exec`.
fn shares_memory(program: usize, own: usize) -> bool {
    const MEMORY: usize = 1;
    // SAFETY: it only compares two processes.
    unsafe { system_call(libc::SYS_kcmp, [program, own, MEMORY, 0, 0]) == 0 }
}

/// Gives up all that the process does not need, and returns its number; `None` if that failed.
fn confine(program: usize) -> Option<usize> {
    let filter = libc::sock_fprog {
        len: u16::try_from(FILTER.len()).unwrap_or(0),
        filter: FILTER.as_ptr().cast_mut(),
    };
    let prctl = |what: c_int, first: usize, second: usize| {
        // SAFETY: the options used here change this process alone; the filter outlives the call.
        unsafe { system_call(libc::SYS_prctl, [what.unsigned_abs() as usize, first, second, 0, 0]) == 0 }
    };
    // SAFETY: these concern the process's own numbers, files and folder.
    let (own, parent, is_apart) = unsafe {
        let own = system_call(libc::SYS_getpid, [0; 5]);
        // The process ends with the thread that started it; it may have ended already.
        let ends = prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL.unsigned_abs() as usize, 0);
        let parent = system_call(libc::SYS_getppid, [0; 5]);
        let closes = system_call(libc::SYS_close_range, [0, u32::MAX as usize, 0, 0, 0]) == 0;
        let root = c"/".as_ptr().expose_provenance();
        let leaves = system_call(libc::SYS_chdir, [root, 0, 0, 0, 0]) == 0;
        (usize::try_from(own).ok()?, usize::try_from(parent).ok()?, ends && closes && leaves)
    };
    let is_confined = is_apart
        && parent == program
        && shares_memory(program, own)
        && prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0)
        && prctl(libc::PR_SET_SECCOMP, 2, ptr::from_ref(&filter).expose_provenance());
    is_confined.then_some(own)
}

#[expect(clippy::cast_possible_truncation, reason = "codes have 16 bits")]
const fn statement(code: u32, value: u32, unless: [u8; 2]) -> libc::sock_filter {
    libc::sock_filter { code: code as u16, jt: unless[0], jf: unless[1], k: value }
}

const LOAD: u32 = libc::BPF_LD | libc::BPF_W | libc::BPF_ABS;
const EQUALS: u32 = libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K;
const RETURN: u32 = libc::BPF_RET | libc::BPF_K;
const ALLOW: libc::sock_filter = statement(RETURN, libc::SECCOMP_RET_ALLOW, [0, 0]);
/// `EPERM`.
const REFUSE: libc::sock_filter = statement(RETURN, libc::SECCOMP_RET_ERRNO | 1, [0, 0]);

/// Continues with the next statement if this is the system call, otherwise with the one after.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "numbers of calls are small")]
const fn is_call(number: c_long) -> libc::sock_filter {
    statement(EQUALS, number as u32, [0, 1])
}

/// The system calls that the process may make from then on, of the processor's own kind.
static FILTER: [libc::sock_filter; 13] = [
    statement(LOAD, 4, [0, 0]),
    statement(EQUALS, PROCESSOR, [1, 0]),
    REFUSE,
    statement(LOAD, 0, [0, 0]),
    is_call(libc::SYS_madvise),
    ALLOW,
    is_call(libc::SYS_clock_nanosleep),
    ALLOW,
    is_call(libc::SYS_kcmp),
    ALLOW,
    is_call(libc::SYS_exit),
    ALLOW,
    REFUSE,
];

/// The kernel's number of this processor's kind of system calls.
const PROCESSOR: u32 = if cfg!(target_arch = "x86_64") { 0xc000_003e } else { 0xc000_00b7 };

/// A system call; a negative error number on failure.
///
/// # Safety
///
/// As that system call.
#[cfg(target_arch = "x86_64")]
unsafe fn system_call(number: c_long, [first, second, third, fourth, fifth]: [usize; 5]) -> c_long {
    let mut result = number;
    // SAFETY: as the caller promises; the kernel changes these registers alone.
    unsafe {
        std::arch::asm!("syscall", inlateout("rax") result, in("rdi") first, in("rsi") second, in("rdx") third,
            in("r10") fourth, in("r8") fifth, lateout("rcx") _, lateout("r11") _, options(nostack));
    }
    result
}

/// A system call; a negative error number on failure.
///
/// # Safety
///
/// As that system call.
#[cfg(target_arch = "aarch64")]
unsafe fn system_call(number: c_long, [first, second, third, fourth, fifth]: [usize; 5]) -> c_long {
    let result;
    // SAFETY: as the caller promises.
    unsafe {
        std::arch::asm!("svc 0", in("x8") number, inlateout("x0") first => result, in("x1") second, in("x2") third,
            in("x3") fourth, in("x4") fifth, options(nostack));
    }
    result
}

/// Fails: there is no watching process on other processors.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
unsafe fn system_call(_: c_long, _: [usize; 5]) -> c_long {
    -1
}
