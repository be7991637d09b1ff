//! Plans a round in a thread of its own, which ends with the plan.
//!
//! Not in the thread that asks: a plan takes the portfolio's stack, and milliseconds where a round has thousands of
//! requests. And not in a thread that stays: a process with one thread more behaves otherwise (`unshare`, warnings at
//! forks), so it is there only while there is something to plan.
#![allow(unsafe_code, reason = "signal masks")]

use std::mem::MaybeUninit;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::Builder;
use std::time::Duration;

use planlab_dsa::Bytes;

use crate::round::Round;
use crate::solve::{Solved, Unsolved};

const STACK: usize = 8 << 20;

/// How rounds are planned.
#[derive(Clone, Copy, Debug)]
pub struct Planning {
    /// Rounds with fewer bytes live at once are not planned. Default: 131,072.
    pub least_load: Bytes,
    /// How long a plan may take. Default: 200 ms.
    pub patience: Duration,
    /// What the thread does first. Default: nothing.
    pub prepare: fn(),
}

impl Default for Planning {
    fn default() -> Self {
        Self { least_load: Bytes::new(128 << 10), patience: Duration::from_millis(200), prepare: || {} }
    }
}

/// A round that is being planned.
#[derive(Default)]
pub(crate) struct Job {
    is_done: AtomicBool,
    /// Written once, before `is_done`.
    result: Mutex<Option<Result<Solved, Unsolved>>>,
}

impl Job {
    /// Starts a thread that plans a round; `None` where there is no thread to be had.
    pub(crate) fn start(round: Round, how: Planning) -> Option<Arc<Self>> {
        let job = Arc::new(Self::default());
        let of_thread = Arc::clone(&job);
        let work = move || {
            (how.prepare)();
            of_thread.run(round, how);
        };
        without_signals(|| Builder::new().name("planlab".to_owned()).stack_size(STACK).spawn(work).ok())?;
        Some(job)
    }

    fn run(&self, round: Round, how: Planning) {
        let solve = || Solved::new(round, how.least_load, how.patience);
        let result = catch_unwind(AssertUnwindSafe(solve))
            .unwrap_or_else(|_| Err(Unsolved::NoPlan("the planner panicked".to_owned())));
        *self.result.lock().unwrap_or_else(PoisonError::into_inner) = Some(result);
        self.is_done.store(true, Ordering::Release);
    }

    /// What came of it, once it is done.
    #[inline]
    pub(crate) fn collect(&self) -> Option<Result<Solved, Unsolved>> {
        if !self.is_done.load(Ordering::Acquire) {
            return None;
        }
        self.result.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// Threads that are started meanwhile leave the program's signals to its own threads.
fn without_signals<T>(start: impl FnOnce() -> T) -> T {
    let (mut all, mut old) = (MaybeUninit::uninit(), MaybeUninit::uninit());
    // SAFETY: `sigfillset` writes the set, and `pthread_sigmask` reads it and writes the other.
    let is_blocked = unsafe {
        libc::sigfillset(all.as_mut_ptr());
        libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), old.as_mut_ptr()) == 0
    };
    let started = start();
    if is_blocked {
        // SAFETY: it was written when the signals were blocked.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, old.as_ptr(), std::ptr::null_mut()) };
    }
    started
}
