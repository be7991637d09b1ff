//! An input byte by byte.

use std::io::{self, Read};

/// Bytes read at a time.
const CHUNK: usize = 64 << 10;

/// Bytes of an input one after the other.
pub(crate) struct Bytes<R> {
    input: R,
    buffer: Box<[u8]>,
    from: usize,
    to: usize,
    /// Bytes that were handed out.
    read: u64,
}

impl<R: Read> Bytes<R> {
    pub(crate) fn new(input: R) -> Self {
        Self { input, buffer: vec![0; CHUNK].into(), from: 0, to: 0, read: 0 }
    }

    /// Bytes that were handed out.
    pub(crate) const fn read(&self) -> u64 {
        self.read
    }

    /// Reads on where the buffer is empty; `false` at the end of the input.
    fn fill(&mut self) -> io::Result<bool> {
        while self.from == self.to {
            match self.input.read(&mut self.buffer) {
                Ok(0) => return Ok(false),
                Ok(count) => (self.from, self.to) = (0, count),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }

    pub(crate) fn next(&mut self) -> io::Result<Option<u8>> {
        if !self.fill()? {
            return Ok(None);
        }
        let byte = self.buffer[self.from];
        self.from += 1;
        self.read += 1;
        Ok(Some(byte))
    }

    /// Appends `count` bytes to a buffer, or all that are left; returns their number.
    pub(crate) fn copy(&mut self, count: u64, into: &mut Vec<u8>) -> io::Result<u64> {
        let mut left = count;
        while left > 0 && self.fill()? {
            let chunk = &self.buffer[self.from..self.to];
            let chunk = &chunk[..chunk.len().min(usize::try_from(left).unwrap_or(usize::MAX))];
            into.extend_from_slice(chunk);
            self.from += chunk.len();
            self.read += chunk.len() as u64;
            left -= chunk.len() as u64;
        }
        Ok(count - left)
    }
}
