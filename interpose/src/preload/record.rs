//! Records every large request of all threads as a trace under `PLANLAB_RECORD=FILE`; nothing is planned then.
//!
//! The trace has one row for each request and free, in order, so every verb accepts it. The process number is appended
//! to the file's name. The child of a fork is not recorded; a program that it executes is.

use std::cell::UnsafeCell;
use std::fmt::{self, Write as _};
use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use rustc_hash::FxHashMap;

use super::settings::settings;
use crate::signals::Undisturbed;

/// The most bytes of text that are kept before they are written.
const KEPT: usize = 1 << 20;

#[derive(Default)]
struct Recorder {
    text: String,
    step: u64,
    /// The request number and size of each live block, by address.
    live: FxHashMap<u64, (u64, u64)>,
    requests: u64,
    is_begun: bool,
}

struct Shared(UnsafeCell<Option<Recorder>>);

#[allow(unsafe_code, reason = "the lock beside it")]
// SAFETY: only the holder of the lock accesses the contents.
unsafe impl Sync for Shared {}

static RECORDER: Shared = Shared(UnsafeCell::new(None));
static IS_LOCKED: AtomicBool = AtomicBool::new(false);
static IS_STOPPED: AtomicBool = AtomicBool::new(false);

/// Takes the lock; a fork takes it, too, so that no missing thread holds it in the child.
pub(super) extern "C" fn lock() {
    while IS_LOCKED.swap(true, Ordering::Acquire) {
        std::thread::yield_now();
    }
}

pub(super) extern "C" fn unlock() {
    IS_LOCKED.store(false, Ordering::Release);
}

/// Stops recording. The caller holds the lock.
pub(super) fn stop() {
    IS_STOPPED.store(true, Ordering::Relaxed);
}

fn with(work: impl FnOnce(&mut Recorder)) {
    let _undisturbed = Undisturbed::new();
    lock();
    if !IS_STOPPED.load(Ordering::Relaxed) {
        #[allow(unsafe_code, reason = "the lock is held")]
        // SAFETY: the lock is held.
        let recorder = unsafe { &mut *RECORDER.0.get() };
        work(recorder.get_or_insert_default());
    }
    unlock();
}

/// Records a block that was handed out. Must be called inside of the allocator.
pub(super) fn request(address: u64, bytes: u64, align: u64) {
    with(|recorder| {
        let number = recorder.requests;
        recorder.requests += 1;
        recorder.live.insert(address, (number, bytes));
        recorder.add_row(format_args!("alloc,{number},{bytes},{align}"));
    });
}

/// Records a block that is about to be freed.
pub(super) fn free(address: u64) {
    with(|recorder| {
        let Some((number, bytes)) = recorder.live.remove(&address) else { return };
        recorder.add_row(format_args!("free,{number},{bytes},"));
    });
}

/// Writes the remaining text at the end of the process.
pub(super) fn flush() {
    if settings().is_some_and(|settings| settings.record.is_some()) {
        with(|recorder| {
            if recorder.requests > 0 {
                recorder.write();
            }
        });
    }
}

impl Recorder {
    /// Adds a row with the next step and these cells; writes the rows once they are many.
    fn add_row(&mut self, cells: fmt::Arguments<'_>) {
        self.step += 1;
        let _ = writeln!(self.text, "{},{cells}", self.step);
        if self.text.len() >= KEPT {
            self.write();
        }
    }

    fn write(&mut self) {
        let Some(file) = settings().and_then(|settings| settings.record.as_deref()) else { return };
        let mut options = OpenOptions::new();
        let opened = options.create(true).append(true).truncate(false).open(of_process(file));
        let head = if std::mem::replace(&mut self.is_begun, true) { String::new() } else { head() };
        // There is nobody to report a full disk to; the verb finds an incomplete file.
        let _ = opened.and_then(|mut file| file.write_all((head + &self.text).as_bytes()));
        self.text.clear();
    }
}

fn head() -> String {
    let program = std::env::args_os().next().unwrap_or_default();
    let program: String = program.to_string_lossy().chars().filter(|letter| !letter.is_control()).collect();
    format!("# recorder: planlab run --record-only\n# program: {program}\nstep,event,id,size,alignment\n")
}

/// The file of this process.
fn of_process(file: &Path) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(format!(".{}", std::process::id()));
    name.into()
}
