//! The state of each thread, which a pthread key finds, with its machine.
//!
//! A key, because the first use of a library's thread-local variable may call `malloc`. States are never freed: the
//! state of an ended thread waits for the next thread, with its plans and with blocks that other threads still use.
#![allow(unsafe_code, reason = "states that one thread at a time has")]

use std::cell::UnsafeCell;
use std::ffi::c_void;
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};

use super::process::Process;
use super::{key, plans};
use crate::machine::Machine;
use crate::preload::segments::{idle, table};
use crate::preload::settings::{Settings, settings};
use crate::preload::system::is_frozen;
use crate::tally::Tally;

/// The part that one thread at a time accesses.
pub(crate) struct Inner {
    pub(crate) machine: Machine,
    pub(crate) process: Process,
}

pub(crate) struct Thread {
    inner: UnsafeCell<Inner>,
    /// Whether its thread is inside of the allocator. Only that thread and its signal handlers read it.
    is_busy: AtomicBool,
    /// The begin and the bytes of its thread's small stack for signals; no bytes if it has none.
    alternate: [AtomicUsize; 2],
    /// Whether its thread has ended, so that another may take it.
    is_resting: AtomicBool,
    pub(crate) tally: Arc<Tally>,
    /// The state that was made before this one.
    next: *const Thread,
}

/// The state that was made last.
static ALL: AtomicPtr<Thread> = AtomicPtr::new(ptr::null_mut());
/// The number of states whose threads have ended, and how many of these keep the pages of their plans.
static RESTING: AtomicUsize = AtomicUsize::new(0);
const MOST_WARM: usize = 8;
/// A stack for signals with fewer bytes is too small for the machine.
const MOST_SMALL: usize = 64 << 10;
const UNWATCHED: *mut Thread = key::UNWATCHED.cast();

/// Makes the key; whether that succeeded.
pub(crate) fn prepare() -> bool {
    key::prepare(end)
}

/// The calling thread's state, or [`UNWATCHED`], or null.
#[inline]
fn value() -> *mut Thread {
    key::value().cast()
}

/// Called at the end of a thread. The C library repeats the call while there is a value, at most four times.
extern "C" fn end(value: *mut c_void) {
    let state: *mut Thread = value.cast();
    key::set(key::UNWATCHED);
    if state == UNWATCHED || is_frozen() {
        return;
    }
    // SAFETY: states are never freed.
    let state = unsafe { &*state };
    let Some(mut inside) = Inside::of(state) else { return };
    let Inner { machine, process } = inside.get();
    machine.prepare_for_next_thread();
    if RESTING.load(Ordering::Relaxed) >= MOST_WARM {
        machine.give_back(process);
    }
    drop(inside);
    idle::thread_ends();
    RESTING.fetch_add(1, Ordering::Relaxed);
    state.is_resting.store(true, Ordering::Release);
}

/// Assigns a waiting or a new state to the calling thread.
#[cold]
fn begin() -> Option<&'static Thread> {
    let settings = settings()?;
    let alternate = alternate_now()?;
    // While this runs, the real allocator serves the thread.
    if !key::set(key::UNWATCHED) {
        return None;
    }
    let state = resting().unwrap_or_else(|| make(settings));
    state.set_alternate(&alternate);
    key::set(ptr::from_ref(state).cast_mut().cast());
    Some(state)
}

#[inline(never)]
fn make(settings: &'static Settings) -> &'static Thread {
    let tally = Arc::new(Tally::new());
    let machine = Machine::new(settings.machine, Arc::clone(&tally));
    let inner = UnsafeCell::new(Inner { machine, process: Process::new(0, settings) });
    let [is_busy, is_resting] = [const { AtomicBool::new(false) }; 2];
    let alternate = [const { AtomicUsize::new(0) }; 2];
    let state =
        Box::leak(Box::new(Thread { inner, is_busy, alternate, is_resting, tally, next: ptr::null() }));
    let number = ptr::from_mut(state).addr();
    state.inner.get_mut().process = Process::new(number, settings);
    enlist(state)
}

/// The calling thread's stack for signals; `None` while a handler runs on it.
fn alternate_now() -> Option<libc::stack_t> {
    let mut stack = MaybeUninit::uninit();
    // SAFETY: it writes the structure if it returns 0.
    let stack =
        unsafe { (libc::sigaltstack(ptr::null(), stack.as_mut_ptr()) == 0).then(|| stack.assume_init())? };
    (stack.ss_flags & libc::SS_ONSTACK == 0).then_some(stack)
}

/// Notes that the calling thread has another stack for signals from now on.
pub(crate) fn set_alternate(stack: &libc::stack_t) {
    let state = value();
    if state != UNWATCHED {
        // SAFETY: null, or a state; states are never freed.
        unsafe { state.as_ref() }.into_iter().for_each(|state| state.set_alternate(stack));
    }
}

impl Thread {
    fn set_alternate(&self, stack: &libc::stack_t) {
        let is_small = stack.ss_flags & libc::SS_DISABLE == 0 && stack.ss_size < MOST_SMALL;
        let bytes = if is_small { stack.ss_size } else { 0 };
        self.alternate[1].store(0, Ordering::Relaxed);
        self.alternate[0].store(stack.ss_sp.addr(), Ordering::Relaxed);
        self.alternate[1].store(bytes, Ordering::Relaxed);
    }

    /// Whether its thread, which calls, handles a signal on a small stack.
    #[inline]
    fn is_on_alternate(&self) -> bool {
        let here = 0_u8;
        let above = (&raw const here).addr().wrapping_sub(self.alternate[0].load(Ordering::Relaxed));
        above < self.alternate[1].load(Ordering::Relaxed)
    }
}

/// Takes a state whose thread has ended.
fn resting() -> Option<&'static Thread> {
    if RESTING.load(Ordering::Relaxed) == 0 {
        return None;
    }
    let is_free = |state: &&Thread| {
        state.is_resting.load(Ordering::Relaxed) && state.is_resting.swap(false, Ordering::Acquire)
    };
    let state = all().find(is_free)?;
    RESTING.fetch_sub(1, Ordering::Relaxed);
    Some(state)
}

fn enlist(state: &'static mut Thread) -> &'static Thread {
    ALL.update(Ordering::Release, Ordering::Relaxed, |before| {
        state.next = before;
        ptr::from_mut(state)
    });
    state
}

/// All states, the newest first.
fn all() -> impl Iterator<Item = &'static Thread> {
    // SAFETY: states are never freed, and their places in the list are fixed.
    let thread = |state: *const Thread| unsafe { state.as_ref() };
    std::iter::successors(thread(ALL.load(Ordering::Acquire)), move |state| thread(state.next))
}

/// The tallies of all threads so far.
pub(crate) fn tallies() -> Vec<Arc<Tally>> {
    all().map(|thread| Arc::clone(&thread.tally)).collect()
}

/// The calling thread's state, while the thread is inside of the allocator.
pub(crate) struct Inside(&'static Thread);

impl Inside {
    /// Enters with the calling thread's state; `None` if the thread is not watched, or is inside already.
    #[inline]
    pub(crate) fn enter() -> Option<Self> {
        let state = value();
        if state == UNWATCHED {
            return None;
        }
        // SAFETY: states are never freed.
        let thread = match unsafe { state.as_ref() } {
            Some(thread) => thread,
            None => begin()?,
        };
        let inside = Self::of(thread);
        if inside.is_none() {
            // The owner is at the point that this call interrupted; at worst one of the two counts is lost.
            thread.tally.requests.add(1);
            thread.tally.reentrant.add(1);
        }
        inside
    }

    /// As `enter`, but only if the thread already has a state.
    #[inline]
    pub(crate) fn enter_known() -> Option<Self> {
        let state = value();
        if state == UNWATCHED {
            return None;
        }
        // SAFETY: states are never freed.
        unsafe { state.as_ref() }.and_then(Self::of)
    }

    #[inline]
    fn of(thread: &'static Thread) -> Option<Self> {
        if thread.is_busy.load(Ordering::Relaxed) || thread.is_on_alternate() {
            return None;
        }
        thread.is_busy.store(true, Ordering::Relaxed);
        Some(Self(thread))
    }

    #[inline]
    pub(crate) fn get(&mut self) -> &mut Inner {
        // SAFETY: a state belongs to one thread, which is inside only once at a time: the flag ensures that.
        unsafe { &mut *self.0.inner.get() }
    }

    pub(crate) fn tally(&self) -> &Tally {
        &self.0.tally
    }

    /// The number by which segments identify their owner.
    pub(crate) fn number(&self) -> usize {
        ptr::from_ref(self.0).addr()
    }
}

impl Drop for Inside {
    #[inline]
    fn drop(&mut self) {
        self.0.is_busy.store(false, Ordering::Relaxed);
    }
}

/// Called in the child of a fork, which has one thread: forgets pending plans and resets the statistics.
pub(crate) fn after_fork() {
    table::after_fork();
    idle::after_fork();
    plans::after_fork();
    let own = value();
    for state in all() {
        state.tally.reset();
        // States of threads that do not exist here stay busy, or are never used again.
        let is_of_use = ptr::eq(state, own) || state.is_resting.load(Ordering::Relaxed);
        if let Some(mut inside) = is_of_use.then(|| Inside::of(state)).flatten() {
            inside.get().process.forget_job();
            inside.get().machine.forget_pending();
        }
    }
}
