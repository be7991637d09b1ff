//! Keeps the end of a child's output, for error messages.

use std::collections::VecDeque;
use std::io::Read;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::io::ioctl_fionread;

/// How long an empty stream may stay open after its writer has ended. A foreign process may hold it for ever.
const IDLE_TIMEOUT: Duration = Duration::from_millis(300);
/// How long the rest of a stream is read after its writer has ended. A foreign process may write for ever.
const LONGEST: Duration = Duration::from_secs(10);

/// The end of a stream that is being read.
pub(crate) struct Tail {
    kept: Arc<Mutex<VecDeque<u8>>>,
    /// The stream, to ask whether there is more to read.
    stream: Option<OwnedFd>,
    closed: Receiver<()>,
}

/// Reads a stream to its end in a thread, and keeps its last `most` bytes; an empty text if there is no stream.
pub(crate) fn read_tail(stream: Option<impl Read + AsFd + Send + 'static>, most: usize) -> Tail {
    let kept: Arc<Mutex<VecDeque<u8>>> = Arc::default();
    let (close, closed) = mpsc::channel();
    let copy = stream.as_ref().and_then(|stream| stream.as_fd().try_clone_to_owned().ok());
    let tail = Tail { kept: Arc::clone(&kept), stream: copy, closed };
    thread::spawn(move || {
        let mut chunk = [0; 4096];
        let Some(mut stream) = stream else { return };
        while let Ok(count @ 1..) = stream.read(&mut chunk) {
            let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
            kept.extend(&chunk[..count]);
            let excess = kept.len().saturating_sub(most);
            kept.drain(..excess);
        }
        // The receiver learns by this that the stream is closed.
        drop(close);
    });
    tail
}

impl Tail {
    /// The text, once the writer has ended. If another process holds the stream, what was written until now.
    pub(crate) fn finish_tail(self) -> String {
        let until = Instant::now() + LONGEST;
        while self.closed.recv_timeout(IDLE_TIMEOUT) == Err(RecvTimeoutError::Timeout)
            && self.has_more()
            && Instant::now() < until
        {}
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(kept.make_contiguous()).trim().to_owned()
    }

    /// Whether the reader has not yet taken all that was written.
    fn has_more(&self) -> bool {
        self.stream.as_ref().is_some_and(|stream| ioctl_fionread(stream).is_ok_and(|bytes| bytes > 0))
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::os::fd::BorrowedFd;

    use super::*;

    #[test]
    fn the_end_is_kept() {
        let words: Vec<u8> = (0..3000_u32).flat_map(|n| format!("{n} ").into_bytes()).collect();
        let of = |most| {
            let (reader, mut writer) = std::io::pipe().expect("a pipe");
            let tail = read_tail(Some(reader), most);
            writer.write_all(&words).expect("it is read");
            drop(writer);
            tail.finish_tail()
        };
        assert_eq!(of(10), "2998 2999");
        assert!(of(1 << 20).starts_with("0 1 2 "));
        assert_eq!(read_tail(None::<std::io::PipeReader>, 10).finish_tail(), "");
    }

    #[test]
    fn stream_that_stays_open_is_left() {
        let (reader, mut writer) = std::io::pipe().expect("a pipe");
        let (sender, seen) = mpsc::channel();
        let watched = Watched { reader, sender };
        let tail = read_tail(Some(watched), 10);
        writer.write_all(b"words").expect("it is read");
        // At its second call, the reader has kept the first text.
        seen.iter().nth(1).expect("it reads on");
        assert_eq!(tail.finish_tail(), "words");
        drop(writer);
    }

    #[test]
    fn what_was_written_is_read_however_slowly() {
        let (reader, mut writer) = std::io::pipe().expect("a pipe");
        writer.write_all(&[b'x'; 16000]).expect("it has room");
        let tail = read_tail(Some(Slow(reader)), 1 << 20);
        // Another process holds the stream.
        assert_eq!(tail.finish_tail().len(), 16000);
        drop(writer);
    }

    /// A stream whose reader gets little of a busy machine.
    struct Slow(std::io::PipeReader);

    impl Read for Slow {
        fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
            thread::sleep(Duration::from_millis(200));
            self.0.read(buffer)
        }
    }

    impl AsFd for Slow {
        fn as_fd(&self) -> BorrowedFd<'_> {
            self.0.as_fd()
        }
    }

    /// A stream that says when it is read.
    struct Watched {
        reader: std::io::PipeReader,
        sender: mpsc::Sender<()>,
    }

    impl AsFd for Watched {
        fn as_fd(&self) -> BorrowedFd<'_> {
            self.reader.as_fd()
        }
    }

    impl Read for Watched {
        fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
            let _ = self.sender.send(());
            self.reader.read(buffer)
        }
    }
}
