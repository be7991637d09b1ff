//! Plans a round in a thread of the program, which ends with the plan.
//!
//! The C library starts it. `std::thread` would set up a thread-local variable of the calling thread. For that the C
//! library takes the lock of the dynamic linker, and a thread that waits for this one may hold that lock.
#![allow(unsafe_code, reason = "threads of the C library")]

use std::ffi::{c_int, c_void};
use std::mem::MaybeUninit;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use super::settings::Planning;
use super::solve::{Solved, Unsolved, solve};
use crate::calls::Round;
use crate::signals::Masked;

const STACK: usize = 8 << 20;

/// The result of a thread.
#[derive(Default)]
pub(super) struct Planned {
    is_done: AtomicBool,
    /// Written once, before `is_done`.
    result: Mutex<Option<Result<Solved, Unsolved>>>,
}

impl Planned {
    fn plan_round(&self, round: Round, how: Planning) {
        let plan = || solve(round, how.least_load, how.patience);
        let result = catch_unwind(AssertUnwindSafe(plan))
            .unwrap_or_else(|_| Err(Unsolved::NoPlan("the planner panicked".to_owned())));
        *self.result.lock().unwrap_or_else(PoisonError::into_inner) = Some(result);
        self.is_done.store(true, Ordering::Release);
    }

    /// The result, once planning has ended.
    #[inline]
    pub(super) fn collect_result(&self) -> Option<Result<Solved, Unsolved>> {
        if !self.is_done.load(Ordering::Acquire) {
            return None;
        }
        self.result.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// Starts a thread that plans a round; `None` if no thread can be started.
pub(super) fn start_planning(round: Round, how: Planning) -> Option<Arc<Planned>> {
    let planned = Arc::new(Planned::default());
    let task = Box::new(Task { planned: Arc::clone(&planned), round, how });
    // The new thread leaves the program's signals to the program's own threads.
    let _masked = Masked::new();
    start_detached(task).then_some(planned)
}

/// The argument of a new thread.
struct Task {
    planned: Arc<Planned>,
    round: Round,
    how: Planning,
}

/// Starts a detached thread; whether that succeeded.
fn start_detached(task: Box<Task>) -> bool {
    let mut attributes = MaybeUninit::uninit();
    let mut thread = MaybeUninit::uninit();
    let raw = Box::into_raw(task);
    // SAFETY: the attributes are initialised before they are used, and destroyed afterwards. The thread gets the task,
    // whose ownership moves to it and whose type may be sent.
    let is_started = unsafe {
        if libc::pthread_attr_init(attributes.as_mut_ptr()) != 0 {
            drop(Box::from_raw(raw));
            return false;
        }
        let attributes = attributes.as_mut_ptr();
        let set: c_int = libc::pthread_attr_setstacksize(attributes, STACK)
            | libc::pthread_attr_setdetachstate(attributes, libc::PTHREAD_CREATE_DETACHED);
        let is_started =
            set == 0 && libc::pthread_create(thread.as_mut_ptr(), attributes, run_task, raw.cast()) == 0;
        libc::pthread_attr_destroy(attributes);
        is_started
    };
    if !is_started {
        // SAFETY: no thread was started, so nobody else has it.
        drop(unsafe { Box::from_raw(raw) });
    }
    is_started
}

extern "C" fn run_task(task: *mut c_void) -> *mut c_void {
    // SAFETY: it is the task from `start`, which only this thread has.
    let task = unsafe { Box::from_raw(task.cast::<Task>()) };
    (task.how.prepare)();
    // SAFETY: the name ends with a zero.
    unsafe { libc::pthread_setname_np(libc::pthread_self(), c"planlab".as_ptr()) };
    let Task { planned, round, how } = *task;
    planned.plan_round(round, how);
    ptr::null_mut()
}
