//! An input byte by byte.

use std::io::{self, BufRead, BufReader, Read};

/// Bytes read at a time.
const CHUNK: usize = 64 << 10;

/// Bytes of an input one after the other.
pub(crate) struct Bytes<R> {
    input: BufReader<R>,
    /// Bytes that were handed out.
    read: u64,
}

impl<R: Read> Bytes<R> {
    pub(crate) fn new(input: R) -> Self {
        Self { input: BufReader::with_capacity(CHUNK, input), read: 0 }
    }

    /// Bytes that were handed out.
    pub(crate) const fn bytes_read(&self) -> u64 {
        self.read
    }

    pub(crate) fn next_byte(&mut self) -> io::Result<Option<u8>> {
        loop {
            match self.input.fill_buf() {
                Ok([]) => return Ok(None),
                Ok(&[byte, ..]) => {
                    self.input.consume(1);
                    self.read += 1;
                    return Ok(Some(byte));
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Appends `count` bytes to a buffer, or all that are left; returns their number.
    pub(crate) fn copy_bytes(&mut self, count: u64, into: &mut Vec<u8>) -> io::Result<u64> {
        let before = into.len();
        let copied = self.input.by_ref().take(count).read_to_end(into);
        self.read += (into.len() - before) as u64;
        copied.map(|copied| copied as u64)
    }
}
