//! Sends a placement problem to `planlab run`, which started the program, and reads the plan.
//!
//! A letter is a file with this [layout](planlab_dsa::letter), which the program maps. The launcher writes the state last, so a
//! program that waits for a plan only looks at a word of its memory.
#![allow(unsafe_code, reason = "a mapped file, and a limit of the process")]

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use planlab_dsa::letter::{
    BOUND, HEAD, MAGIC, PLANNED, ROUND, STATE, TOOK, WAITS, WORDS_A_BUFFER, letter_size,
};
use planlab_dsa::{Bytes, Instance, Offset, Plan};

use crate::signals::Undisturbed;

/// How much longer than its patience a letter waits: the launcher may plan for other processes first.
const DELAY: Duration = Duration::from_secs(3);
/// The number of looks at the state between two looks at the clock.
const STRIDE: u32 = 256;

/// Whether an answer failed to come.
static IS_LOST: AtomicBool = AtomicBool::new(false);

/// Whether the launcher has answered every letter in time.
pub(super) fn is_answered() -> bool {
    !IS_LOST.load(Ordering::Relaxed)
}

/// The launcher's plan.
pub(super) struct LetterAnswer {
    pub(super) plan: Plan,
    pub(super) bound: Bytes,
    pub(super) took: Duration,
}

/// A problem whose answer is awaited.
pub(super) struct Letter {
    /// The mapped file.
    words: *const AtomicU64,
    buffers: usize,
    looks: u32,
    until: SystemTime,
}

// SAFETY: the mapping is read-only and lives as long as the letter; the launcher changes it, so it is read atomically.
unsafe impl Send for Letter {}

impl Letter {
    /// Sends a problem; `None` if no launcher waits in this folder, or the process may not write there.
    pub(super) fn send_problem(folder: &Path, instance: &Instance, patience: Duration) -> Option<Self> {
        // `write` may be a cancellation point.
        let _undisturbed = Undisturbed::new();
        if !is_alive(folder) {
            return None;
        }
        let words = compose_letter(instance, patience);
        let buffers = instance.buffers().len();
        let all = letter_size(buffers);
        if all as u64 > most_file_size() {
            return None;
        }
        let name = format!("{}-{:x}", std::process::id(), wall_nanoseconds());
        let draft = folder.join(format!("draft-{name}"));
        let posted = write_letter(&draft, &words, all).and_then(|file| {
            let words = map_file(&file, all)?;
            let letter = Self { words, buffers, looks: 0, until: SystemTime::now() + patience + DELAY };
            fs::rename(&draft, folder.join(format!("{ROUND}{name}")))?;
            Ok(letter)
        });
        if posted.is_err() {
            // The launcher removes its folder at the end.
            let _ = fs::remove_file(&draft);
        }
        posted.ok()
    }

    fn word_at(&self, at: usize) -> u64 {
        // SAFETY: callers stay within the mapping; the launcher has written what they read.
        unsafe { &*self.words.add(at) }.load(Ordering::Acquire)
    }

    /// Whether the answer may still come.
    #[inline]
    pub(super) fn is_awaited(&mut self) -> bool {
        self.looks += 1;
        let is_due = self.looks.is_multiple_of(STRIDE) && SystemTime::now() > self.until;
        self.word_at(STATE) == WAITS && !is_due
    }

    /// Returns the launcher's answer, which may have no plan; `None` if no answer came.
    pub(super) fn read_answer(&self) -> Option<Option<LetterAnswer>> {
        match self.word_at(STATE) {
            WAITS => {
                IS_LOST.store(true, Ordering::Relaxed);
                None
            }
            PLANNED => Some(Some(self.read_plan())),
            _ => Some(None),
        }
    }

    fn read_plan(&self) -> LetterAnswer {
        let first = HEAD + WORDS_A_BUFFER * self.buffers;
        let offsets = (first..first + self.buffers).map(|at| Offset::new(self.word_at(at))).collect();
        LetterAnswer {
            plan: Plan { offsets, in_place: Vec::new() },
            bound: Bytes::new(self.word_at(BOUND)),
            took: Duration::from_nanos(self.word_at(TOOK)),
        }
    }
}

impl Drop for Letter {
    fn drop(&mut self) {
        // SAFETY: it is the whole mapping that `map` made, and nobody uses it from here on.
        unsafe { libc::munmap(self.words.cast_mut().cast(), letter_size(self.buffers)) };
    }
}

fn compose_letter(instance: &Instance, patience: Duration) -> Vec<u8> {
    let patience = u64::try_from(patience.as_nanos()).unwrap_or(u64::MAX);
    let head = [MAGIC, WAITS, patience, instance.buffers().len() as u64, 0, 0];
    let buffers = instance.buffers().iter().flat_map(|buffer| {
        let (begin, end) = (buffer.live.start().get(), buffer.live.end().get());
        [buffer.size.get(), begin.into(), end.into(), buffer.align.get()]
    });
    head.into_iter().chain(buffers).flat_map(u64::to_ne_bytes).collect()
}

/// Whether the launcher lives: it holds the lock of its folder.
fn is_alive(folder: &Path) -> bool {
    let lock = File::open(folder.join("lock"));
    lock.is_ok_and(|lock| lock.try_lock_shared().is_err())
}

fn wall_nanoseconds() -> u128 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_nanos())
}

/// The largest file that the process may write; a larger one would end it by a signal.
fn most_file_size() -> u64 {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: it writes only the local that it receives.
    if unsafe { libc::getrlimit(libc::RLIMIT_FSIZE, &raw mut limit) } == 0 { limit.rlim_cur } else { 0 }
}

fn write_letter(path: &Path, words: &[u8], all: usize) -> io::Result<File> {
    let mut file = OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(words)?;
    file.set_len(all as u64)?;
    Ok(file)
}

fn map_file(file: &File, bytes: usize) -> io::Result<*const AtomicU64> {
    // SAFETY: a new mapping at an address of the kernel's choice replaces nothing.
    let at =
        unsafe { libc::mmap(ptr::null_mut(), bytes, libc::PROT_READ, libc::MAP_SHARED, file.as_raw_fd(), 0) };
    if at == libc::MAP_FAILED { Err(io::Error::last_os_error()) } else { Ok(at.cast_const().cast()) }
}
