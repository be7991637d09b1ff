//! A pthread key under which each thread keeps its state.
#![allow(unsafe_code, reason = "pthread keys")]

use std::ffi::c_void;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

static KEY: AtomicU32 = AtomicU32::new(0);
static HAS_KEY: AtomicBool = AtomicBool::new(false);
/// The key's value in threads that are not watched: ending threads and planning threads.
pub(super) const UNWATCHED: *mut c_void = ptr::without_provenance_mut(1);

/// Makes the key, whose values are given to `end` when their threads end; whether that succeeded.
pub(super) fn prepare(end: extern "C" fn(*mut c_void)) -> bool {
    let mut key = 0;
    // SAFETY: it writes the key to a local.
    let is_made = unsafe { libc::pthread_key_create(&raw mut key, Some(end)) == 0 };
    KEY.store(key, Ordering::Relaxed);
    HAS_KEY.store(is_made, Ordering::Release);
    is_made
}

pub(super) fn set(value: *mut c_void) -> bool {
    // SAFETY: the key was made.
    unsafe { libc::pthread_setspecific(KEY.load(Ordering::Relaxed), value) == 0 }
}

/// The calling thread's value, or [`UNWATCHED`], or null.
#[inline]
pub(super) fn value() -> *mut c_void {
    if !HAS_KEY.load(Ordering::Acquire) {
        return UNWATCHED;
    }
    // SAFETY: the key was made.
    unsafe { libc::pthread_getspecific(KEY.load(Ordering::Relaxed)) }
}

/// From now on the calling thread is never watched.
pub(crate) fn hand_through_all() {
    set(UNWATCHED);
}

/// Whether the calling thread is not watched.
pub(crate) fn hands_all_through() -> bool {
    value() == UNWATCHED
}
