//! Runs work in a thread of its own, while the thread that called looks for signals (Ctrl-C).

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, Builder, Thread};
use std::time::Duration;

use planlab_dsa::CancelToken;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

/// How often signals are looked for.
const TICK: Duration = Duration::from_millis(20);
/// Stack of the thread that works, in bytes.
const STACK: usize = 8 << 20;

/// Rings when a thread is over, also after a panic.
struct Bell<'b> {
    is_over: &'b AtomicBool,
    waits: Thread,
}

impl Drop for Bell<'_> {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Release);
        self.waits.unpark();
    }
}

/// Works in a thread, without the interpreter's lock, until that is done or Python raises something; `cancel` then ends it.
pub(crate) fn run_interruptibly<T: Send>(
    py: Python<'_>,
    worker_name: &str,
    cancel: &CancelToken,
    work: impl FnOnce() -> T + Send,
) -> PyResult<T> {
    let is_over = AtomicBool::new(false);
    let bell = Bell { is_over: &is_over, waits: thread::current() };
    thread::scope(|scope| {
        let rung = move || {
            let _bell = bell;
            work()
        };
        let worker = Builder::new().name("planlab".to_owned()).stack_size(STACK).spawn_scoped(scope, rung)?;
        let mut raised = Ok(());
        while raised.is_ok() && !is_over.load(Ordering::Acquire) {
            py.detach(|| thread::park_timeout(TICK));
            raised = py.check_signals();
        }
        if raised.is_err() {
            cancel.cancel();
        }
        let result = py.detach(|| worker.join());
        raised?;
        result.map_err(|_| PyRuntimeError::new_err(format!("{worker_name} panicked")))
    })
}
