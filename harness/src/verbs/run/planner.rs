//! Plans the rounds of the programs of a `run`, so that none of them needs a thread for it.
//!
//! A process writes a round as a [letter](planlab_dsa::letter) into the run's folder. The plan is written into
//! the same file, and the state last; the process watches that word in its memory. It checks the plan, so nothing here is
//! trusted.

use std::fs::File;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use planlab_dsa::letter::{
    BOUND, BUFFERS, HEAD, MAGIC, MOST_BUFFERS, PLANNED, ROUND, STATE, TIME_LIMIT, UNPLANNED, WAITS,
    WORDS_A_BUFFER, letter_size,
};
use planlab_dsa::{Alignment, Budget, Buffer, Bytes, CancelToken, Instance, LiveRange, Offset};
use planlab_solvers::placement::plan_in_any_case;
use rustix::fs::inotify::{self, CreateFlags, ReadFlags, Reader, WatchFlags};
use rustix::fs::{AtFlags, Dir, Mode, OFlags, open, openat, unlinkat};

const WORD: usize = size_of::<u64>();
/// The longest time limit that a letter gets: other processes wait.
const LONGEST: Duration = Duration::from_secs(10);
/// The stack that planning needs, in bytes.
const STACK: usize = 8 << 20;
const THREAD: &str = "planner";

/// Plans rounds in a thread until it is dropped.
pub(super) struct Planner {
    inotify: Arc<OwnedFd>,
    watch: i32,
    cancel: CancelToken,
    thread: Option<JoinHandle<()>>,
}

impl Planner {
    /// Begins to wait for rounds in a folder.
    ///
    /// # Errors
    ///
    /// If the kernel cannot watch the folder, or starts no thread. Processes plan by themselves then.
    pub(super) fn start_waiting(folder: &Path) -> io::Result<Self> {
        hush_planner();
        let inotify = Arc::new(inotify::init(CreateFlags::CLOEXEC)?);
        let watch = inotify::add_watch(&inotify, folder, WatchFlags::MOVED_TO | WatchFlags::ONLYDIR)?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let post = Post { folder: open(folder, flags, Mode::empty())?, cancel: CancelToken::default() };
        let (cancel, events) = (post.cancel.clone(), Arc::clone(&inotify));
        let builder = thread::Builder::new().name(THREAD.to_owned()).stack_size(STACK);
        let thread = Some(builder.spawn(move || post.serve_rounds(events))?);
        Ok(Self { inotify, watch, cancel, thread })
    }
}

impl Drop for Planner {
    fn drop(&mut self) {
        self.cancel.cancel();
        // The thread reads the event that the watch is gone. If the queue is full, it reads another one. The watch of a
        // removed folder is gone already, and so is the thread.
        let _ = inotify::remove_watch(&self.inotify, self.watch);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Hides panics of the thread: the process plans by itself or goes without, and the terminal is the program's.
fn hush_planner() {
    let tell = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        if thread::current().name() != Some(THREAD) {
            tell(panic);
        }
    }));
}

/// The folder in which rounds arrive. A program may put anything there, move the folder or replace it.
struct Post {
    folder: OwnedFd,
    cancel: CancelToken,
}

impl Post {
    /// Answers rounds until the watch is gone or the token is cancelled.
    fn serve_rounds(&self, inotify: Arc<OwnedFd>) {
        let mut space = [MaybeUninit::uninit(); 4096];
        let mut events = Reader::new(inotify, &mut space);
        while let Ok(event) = events.next() {
            if self.cancel.is_cancelled() || event.events().contains(ReadFlags::IGNORED) {
                return;
            }
            if event.events().contains(ReadFlags::QUEUE_OVERFLOW) {
                self.answer_all();
            } else if let Some(Ok(name)) = event.file_name().map(std::ffi::CStr::to_str) {
                self.answer_if_round(name);
            }
        }
    }

    /// Answers what lies in the folder: the kernel has dropped events.
    fn answer_all(&self) {
        for entry in Dir::read_from(&self.folder).into_iter().flatten().map_while(Result::ok) {
            if self.cancel.is_cancelled() {
                return;
            }
            self.answer_if_round(entry.file_name().to_str().unwrap_or_default());
        }
    }

    fn answer_if_round(&self, name: &str) {
        if name.starts_with(ROUND) {
            // The process is gone, or plans by itself after a while.
            let _ = self.answer_round(name);
        }
    }

    /// Plans a round, and writes the answer into its file. The process has mapped the file, so it needs no name any
    /// more. A file that is no round is left as it is.
    fn answer_round(&self, name: &str) -> io::Result<()> {
        let begin = Instant::now();
        // Neither a link to a file of the user nor a pipe, whose opening or reading might wait for ever.
        let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = File::from(openat(&self.folder, name, flags, Mode::empty())?);
        let Some(words) = receive_round(&file)? else { return Ok(()) };
        let _ = unlinkat(&self.folder, name, AtFlags::empty());
        let planned = catch_unwind(AssertUnwindSafe(|| plan_round(&words, &self.cancel))).ok().flatten();
        let is_written = planned.is_some_and(|(bound, offsets)| {
            let took = u64::try_from(begin.elapsed().as_nanos()).unwrap_or(u64::MAX);
            let at = HEAD + WORDS_A_BUFFER * offsets.len();
            let written = write_words(&file, at, offsets.iter().map(|offset| offset.get()));
            written.and_then(|()| write_words(&file, BOUND, [bound.get(), took])).is_ok()
        });
        // Without an answer the process would wait in vain, and never ask again.
        write_words(&file, STATE, [if is_written { PLANNED } else { UNPLANNED }])
    }
}

/// The words of a round; `None` if the file is something else.
fn receive_round(file: &File) -> io::Result<Option<Vec<u64>>> {
    let metadata = file.metadata()?;
    // A file of two names may be the user's.
    if !metadata.is_file() || metadata.nlink() != 1 || metadata.len() < (HEAD * WORD) as u64 {
        return Ok(None);
    }
    let mut head = [0; HEAD * WORD];
    file.read_exact_at(&mut head, 0)?;
    let head = read_words(&head);
    let is_round = head[0] == MAGIC && head[STATE] == WAITS;
    let count = usize::try_from(head[BUFFERS]).ok().filter(|&count| is_round && count <= MOST_BUFFERS);
    let Some(bytes) = count.map(letter_size).filter(|&bytes| metadata.len() == bytes as u64) else {
        return Ok(None);
    };
    let mut bytes = vec![0; bytes];
    file.read_exact_at(&mut bytes, 0)?;
    Ok(Some(read_words(&bytes)))
}

fn read_words(bytes: &[u8]) -> Vec<u64> {
    bytes.as_chunks().0.iter().map(|word| u64::from_ne_bytes(*word)).collect()
}

fn write_words(file: &File, word: usize, values: impl IntoIterator<Item = u64>) -> io::Result<()> {
    let bytes: Vec<u8> = values.into_iter().flat_map(u64::to_ne_bytes).collect();
    file.write_all_at(&bytes, (word * WORD) as u64)
}

/// A bound and a plan; `None` if the words are no round, or there is no plan.
fn plan_round(words: &[u64], cancel: &CancelToken) -> Option<(Bytes, Vec<Offset>)> {
    let (head, rest) = words.split_at_checked(HEAD)?;
    let count = usize::try_from(head[BUFFERS]).ok()?;
    let words = count.checked_mul(WORDS_A_BUFFER)?;
    if head[0] != MAGIC || rest.len() != words.checked_add(count)? {
        return None;
    }
    let buffers: Option<Vec<Buffer>> = rest[..words].as_chunks().0.iter().map(round_buffer).collect();
    let instance = Instance::from_buffers(buffers?).ok()?;
    let wall = Some(Duration::from_nanos(head[TIME_LIMIT]).min(LONGEST));
    let budget = Budget { wall, cancel: cancel.child_token(), ..Budget::default() };
    let outcome = plan_in_any_case(&instance, budget);
    let bound = outcome.bound_claim().value;
    Some((bound, outcome.best?.as_plan().offsets.clone()))
}

fn round_buffer(&[size, begin, end, align]: &[u64; WORDS_A_BUFFER]) -> Option<Buffer> {
    let live = LiveRange::new(u32::try_from(begin).ok()?, u32::try_from(end).ok()?).ok()?;
    Some(Buffer::new(Bytes::new(size), live).with_align(Alignment::new(align)?))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::sync::mpsc;

    use rustix::fs::{CWD, FileType, mknodat};

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

    /// Puts a round into a folder under its name, and opens it.
    fn post(folder: &Path, name: &str) -> File {
        let draft = folder.join("draft");
        store(&draft, &round());
        let file = File::open(&draft).expect("there");
        fs::rename(&draft, folder.join(name)).expect("ours");
        file
    }

    /// Waits for the plan of [`round`]; returns its words.
    fn planned(file: &File) -> Vec<u64> {
        let until = Instant::now() + Duration::from_secs(60);
        let mut bytes = [0; 16 * WORD];
        while read_words(&bytes).get(1) != Some(&PLANNED) {
            assert!(Instant::now() < until, "no answer");
            thread::sleep(Duration::from_millis(1));
            file.read_exact_at(&mut bytes, 0).expect("whole");
        }
        read_words(&bytes)
    }

    /// Drops a planner; fails if it does not end.
    fn end(planner: Planner) {
        let (sender, ended) = mpsc::channel();
        thread::spawn(move || {
            drop(planner);
            let _ = sender.send(());
        });
        ended.recv_timeout(Duration::from_secs(60)).expect("the planner ends");
    }

    fn make_pipe(path: &Path) {
        mknodat(CWD, path, FileType::Fifo, Mode::RWXU, 0).expect("the folder is writable");
    }

    #[test]
    fn a_renamed_round_gets_its_plan() {
        let folder = tempfile::tempdir().expect("writable");
        let planner = Planner::start_waiting(folder.path()).expect("the kernel watches folders");
        let words = planned(&post(folder.path(), "round-1"));
        assert_eq!(
            (words[4], words[14].abs_diff(words[15])),
            (12288, if words[14] == 0 { 4096 } else { 8192 })
        );
        end(planner);
        assert!(!folder.path().join("round-1").exists());
    }

    #[test]
    fn a_planner_ends_whatever_is_called_end() {
        for make in [make_pipe, |path: &Path| store(path, &[])] {
            let folder = tempfile::tempdir().expect("writable");
            let planner = Planner::start_waiting(folder.path()).expect("the kernel watches folders");
            make(&folder.path().join("end"));
            end(planner);
        }
    }

    #[test]
    fn a_planner_ends_whose_folder_was_replaced() {
        let folder = tempfile::tempdir().expect("writable");
        let path = folder.path().join("first");
        fs::create_dir(&path).expect("ours");
        let planner = Planner::start_waiting(&path).expect("the kernel watches folders");
        fs::rename(&path, folder.path().join("second")).expect("ours");
        fs::create_dir(&path).expect("ours");
        end(planner);
        let planner = Planner::start_waiting(&path).expect("the kernel watches folders");
        fs::remove_dir(&path).expect("ours");
        end(planner);
    }

    #[test]
    fn a_pipe_for_a_round_delays_nobody() {
        let folder = tempfile::tempdir().expect("writable");
        let planner = Planner::start_waiting(folder.path()).expect("the kernel watches folders");
        make_pipe(&folder.path().join("draft-1"));
        fs::rename(folder.path().join("draft-1"), folder.path().join("round-1")).expect("ours");
        planned(&post(folder.path(), "round-2"));
        end(planner);
    }

    #[test]
    fn files_of_the_user_stay_as_they_are() {
        let folder = tempfile::tempdir().expect("writable");
        let planner = Planner::start_waiting(folder.path()).expect("the kernel watches folders");
        let at = |name: &str| folder.path().join(name);
        let mut wrong = round();
        wrong[0] = 0;
        store(&at("other"), &wrong);
        store(&at("linked"), &round());
        fs::hard_link(at("linked"), at("twice")).expect("ours");
        symlink(at("linked"), at("link")).expect("ours");
        symlink("/dev/zero", at("endless")).expect("ours");
        File::create(at("sparse")).and_then(|file| file.set_len(100 << 30)).expect("ours");
        let before = (fs::read(at("other")).expect("ours"), fs::read(at("linked")).expect("ours"));
        for name in ["other", "twice", "link", "endless", "sparse"] {
            fs::rename(at(name), at(&format!("round-{name}"))).expect("ours");
        }
        planned(&post(folder.path(), "round-last"));
        end(planner);
        assert_eq!(before.0, fs::read(at("round-other")).expect("left"));
        assert_eq!(before.1, fs::read(at("linked")).expect("left"));
    }

    #[test]
    fn rounds_whose_events_are_lost_get_their_plans() {
        let folder = tempfile::tempdir().expect("writable");
        let files = ["round-1", "round-2"].map(|name| post(folder.path(), name));
        let flags = OFlags::RDONLY | OFlags::DIRECTORY;
        let of = open(folder.path(), flags, Mode::empty()).expect("there");
        Post { folder: of, cancel: CancelToken::default() }.answer_all();
        for file in &files {
            planned(file);
        }
    }

    #[test]
    fn what_is_no_round_has_no_plan() {
        let cancel = CancelToken::default();
        let with = |at: usize, word: u64| {
            let mut words = round();
            words[at] = word;
            plan_round(&words, &cancel)
        };
        assert!(with(0, MAGIC).is_some());
        for (at, word) in [(0, 0), (3, 3), (3, u64::MAX), (7, 5), (8, 1 << 40), (9, 0), (6, u64::MAX)] {
            assert!(with(at, word).is_none(), "word {at}: {word}");
        }
        assert!(plan_round(&[MAGIC], &cancel).is_none());
    }
}
