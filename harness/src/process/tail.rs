//! Keeps the end of a child's output, for error messages.

use std::collections::VecDeque;
use std::io::Read;
use std::thread::{self, JoinHandle};

/// Reads a stream to its end in a thread, and keeps its last `most` bytes; an empty text if there is no stream.
pub(crate) fn tail(stream: Option<impl Read + Send + 'static>, most: usize) -> JoinHandle<String> {
    thread::spawn(move || {
        let mut tail = VecDeque::new();
        let mut chunk = [0; 4096];
        let Some(mut stream) = stream else { return String::new() };
        while let Ok(count @ 1..) = stream.read(&mut chunk) {
            tail.extend(&chunk[..count]);
            tail.drain(..tail.len().saturating_sub(most));
        }
        String::from_utf8_lossy(tail.make_contiguous()).trim().to_owned()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_is_kept() {
        let words: Vec<u8> = (0..3000_u32).flat_map(|n| format!("{n} ").into_bytes()).collect();
        let of = |most| tail(Some(std::io::Cursor::new(words.clone())), most).join().expect("it reads");
        assert_eq!(of(10), "2998 2999");
        assert!(of(1 << 20).starts_with("0 1 2 "));
        assert_eq!(tail(None::<std::io::Empty>, 10).join().expect("it reads"), "");
    }
}
