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

use std::ffi::{c_int, c_void};
use std::ptr;
use std::sync::atomic::{AtomicI32, AtomicPtr, AtomicU8, AtomicU64, Ordering};

use super::confine::{confine, shares_memory};
use super::entry::{self, has_watcher_ended};
use super::table::{self, MOST};
use crate::plans::Segment;
use crate::preload::settings::settings;
use crate::preload::system::{keeping_errno, map, system_call, word};
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
static STACK_BEGIN: AtomicPtr<u8> = AtomicPtr::new(ptr::null_mut());
/// The thread that started the watching process.
static STARTER: AtomicI32 = AtomicI32::new(0);
/// Nanoseconds between two looks.
static PAUSE: AtomicU64 = AtomicU64::new(0);

/// Called when nothing is live any more in a segment of this many bytes.
#[inline]
pub(crate) fn watch(bytes: u64) {
    if bytes >= LEAST_WATCHED && WATCHER.load(Ordering::Relaxed) == ABSENT {
        keeping_errno(start);
    }
}

/// From now on no such process is started. One that exists goes on.
pub(crate) fn start_no_more() {
    WATCHER.store(IMPOSSIBLE, Ordering::Relaxed);
}

/// In the child of a fork, which has no such process.
pub(crate) fn after_fork() {
    NUMBER.store(0, Ordering::Relaxed);
    entry::ALIVE.store(0, Ordering::Relaxed);
    change_from_present(ABSENT);
}

/// Called in a thread that ends. A watching process ends with the thread that started it; another may start the next.
pub(crate) fn thread_ends() {
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
    table::end_giving_back();
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
    !has_watcher_ended()
        || before != 0
            && unsafe { system_call(libc::SYS_wait4, [before.unsigned_abs() as usize, 0, how, 0, 0]) == 0 }
}

fn clone() -> bool {
    if STACK_BEGIN.load(Ordering::Relaxed).is_null() {
        STACK_BEGIN.store(map(STACK, libc::MAP_NORESERVE), Ordering::Relaxed);
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
        let (alive, locals) = (entry::ALIVE.as_ptr(), ptr::null_mut::<c_void>());
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
        for (entry, (claims, looks)) in table::all().iter().zip(&mut seen) {
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
