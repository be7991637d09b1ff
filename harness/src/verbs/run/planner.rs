//! Plans the rounds of the programs of a `run`, so that none of them needs a thread for it.
//!
//! A process writes a round as a file of 64-bit words into the run's folder, and renames it when it is whole. The
//! offsets are written into the same file, and the state last; the process watches that word in its memory. The layout
//! stands in `interpose/src/planning/letter.rs`. The process checks the plan, so nothing here is trusted.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::mem::MaybeUninit;
use std::os::unix::fs::FileExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use planlab_dsa::{Alignment, Budget, Buffer, Bytes, CancelToken, Instance, LiveRange, Offset, execute};
use planlab_solvers::placement::Portfolio;
use rustix::fs::inotify::{self, CreateFlags, Reader, WatchFlags};

const MAGIC: u64 = u64::from_ne_bytes(*b"planlab1");
/// Words of the head: magic, state, patience in nanoseconds, buffers, bound, nanoseconds of planning.
const HEAD: usize = 6;
const WORDS_A_BUFFER: usize = 4;
const WORD: usize = size_of::<u64>();
/// Values of the state.
const PLANNED: u64 = 1;
const UNPLANNED: u64 = 2;
/// Longer patience than this is not granted: other processes wait.
const LONGEST: Duration = Duration::from_secs(10);
/// The stack that planning needs, in bytes.
const STACK: usize = 8 << 20;
/// The name of a whole round begins so.
const ROUND: &str = "round-";
/// A file of this name ends the thread.
const END: &str = "end";

/// Plans rounds in a thread until it is dropped.
pub(super) struct Planner {
    folder: PathBuf,
    cancel: CancelToken,
    thread: Option<JoinHandle<()>>,
}

impl Planner {
    /// Begins to wait for rounds in a folder.
    ///
    /// # Errors
    ///
    /// If the kernel cannot watch the folder, or starts no thread. Processes plan by themselves then.
    pub(super) fn start(folder: &Path) -> io::Result<Self> {
        let watch = inotify::init(CreateFlags::CLOEXEC)?;
        inotify::add_watch(&watch, folder, WatchFlags::MOVED_TO | WatchFlags::CREATE)?;
        let cancel = CancelToken::default();
        let (token, path) = (cancel.clone(), folder.to_owned());
        let builder = thread::Builder::new().name("planner".to_owned()).stack_size(STACK);
        let thread = builder.spawn(move || {
            let mut space = [MaybeUninit::uninit(); 4096];
            let mut events = Reader::new(watch, &mut space);
            while let Ok(event) = events.next() {
                let name = event.file_name().and_then(|name| name.to_str().ok()).unwrap_or_default();
                if token.is_cancelled() {
                    return;
                }
                if name.starts_with(ROUND) {
                    // The process is gone, or plans by itself after a while.
                    let _ = answer(&path.join(name), &token);
                }
            }
        })?;
        Ok(Self { folder: folder.to_owned(), cancel, thread: Some(thread) })
    }
}

impl Drop for Planner {
    fn drop(&mut self) {
        self.cancel.cancel();
        // Without the file the thread would wait on, so it is left to the end of the process.
        if File::create(self.folder.join(END)).is_ok()
            && let Some(thread) = self.thread.take()
        {
            let _ = thread.join();
        }
    }
}

/// Plans a round, and writes the answer into its file. The process has mapped the file, so it needs no name any more.
fn answer(path: &Path, cancel: &CancelToken) -> io::Result<()> {
    let begin = Instant::now();
    let file = OpenOptions::new().read(true).write(true).open(path)?;
    let words = read(&fs::read(path)?);
    fs::remove_file(path)?;
    let planned = catch_unwind(AssertUnwindSafe(|| plan(&words, cancel))).ok().flatten();
    let state = match planned {
        None => UNPLANNED,
        Some((bound, offsets)) => {
            let took = u64::try_from(begin.elapsed().as_nanos()).unwrap_or(u64::MAX);
            let at = HEAD + WORDS_A_BUFFER * offsets.len();
            write(&file, at, offsets.iter().map(|offset| offset.get()))?;
            write(&file, HEAD - 2, [bound.get(), took])?;
            PLANNED
        }
    };
    write(&file, 1, [state])
}

fn read(bytes: &[u8]) -> Vec<u64> {
    bytes.as_chunks().0.iter().map(|word| u64::from_ne_bytes(*word)).collect()
}

fn write(file: &File, word: usize, values: impl IntoIterator<Item = u64>) -> io::Result<()> {
    let bytes: Vec<u8> = values.into_iter().flat_map(u64::to_ne_bytes).collect();
    file.write_all_at(&bytes, (word * WORD) as u64)
}

/// A bound and a plan; `None` if the words are no round, or there is no plan within its time.
fn plan(words: &[u64], cancel: &CancelToken) -> Option<(Bytes, Vec<Offset>)> {
    let (head, rest) = words.split_at_checked(HEAD)?;
    let count = usize::try_from(head[3]).ok()?;
    let words = count.checked_mul(WORDS_A_BUFFER)?;
    if head[0] != MAGIC || rest.len() != words.checked_add(count)? {
        return None;
    }
    let buffers: Option<Vec<Buffer>> = rest[..words].as_chunks().0.iter().map(buffer).collect();
    let instance = Instance::from_buffers(buffers?).ok()?;
    let wall = Some(Duration::from_nanos(head[2]).min(LONGEST));
    let budget = Budget { wall, cancel: cancel.child(), ..Budget::default() };
    let outcome = execute(&Portfolio, &instance, budget, 0);
    let bound = outcome.claim().value;
    Some((bound, outcome.best?.as_plan().offsets.clone()))
}

fn buffer(&[size, begin, end, align]: &[u64; WORDS_A_BUFFER]) -> Option<Buffer> {
    let live = LiveRange::new(u32::try_from(begin).ok()?, u32::try_from(end).ok()?).ok()?;
    Some(Buffer::new(Bytes::new(size), live).with_align(Alignment::new(align)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A round of two buffers that are live at once, and its answer's place.
    fn round() -> Vec<u64> {
        let head = [MAGIC, 0, 1_000_000_000, 2, 0, 0];
        head.into_iter().chain([4096, 0, 2, 64, 8192, 1, 3, 64, 0, 0]).collect()
    }

    fn store(path: &Path, words: &[u64]) {
        let bytes: Vec<u8> = words.iter().copied().flat_map(u64::to_ne_bytes).collect();
        fs::write(path, bytes).expect("writable");
    }

    #[test]
    fn a_renamed_round_gets_its_plan() {
        let folder = tempfile::tempdir().expect("writable");
        let planner = Planner::start(folder.path()).expect("the kernel watches folders");
        let (draft, whole) = (folder.path().join("draft-1"), folder.path().join("round-1"));
        store(&draft, &round());
        let file = File::open(&draft).expect("there");
        fs::rename(&draft, &whole).expect("ours");
        let until = Instant::now() + Duration::from_secs(60);
        let mut bytes = [0; 16 * WORD];
        while read(&bytes).get(1) != Some(&PLANNED) {
            assert!(Instant::now() < until, "no answer");
            thread::sleep(Duration::from_millis(1));
            file.read_exact_at(&mut bytes, 0).expect("whole");
        }
        let words = read(&bytes);
        assert_eq!(
            (words[4], words[14].abs_diff(words[15])),
            (12288, if words[14] == 0 { 4096 } else { 8192 })
        );
        drop(planner);
        assert!(!whole.exists());
    }

    #[test]
    fn what_is_no_round_has_no_plan() {
        let cancel = CancelToken::default();
        let with = |at: usize, word: u64| {
            let mut words = round();
            words[at] = word;
            plan(&words, &cancel)
        };
        assert!(with(0, MAGIC).is_some());
        for (at, word) in [(0, 0), (3, 3), (3, u64::MAX), (7, 5), (8, 1 << 40), (9, 3), (6, u64::MAX)] {
            assert!(with(at, word).is_none(), "word {at}: {word}");
        }
        assert!(plan(&[MAGIC], &cancel).is_none());
    }
}
