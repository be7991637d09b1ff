//! The lines of an input.

use std::io::{self, BufRead, Read};

use super::unpacked::{BYTE_ORDER_MARK, Unpacked};
use crate::formats::{FormatError, InputLimits};

/// The lines of an input, one in memory at a time. Decompresses where it must, checks the encoding, takes the byte
/// order mark off.
pub(crate) struct Lines<'r> {
    file: String,
    input: Unpacked<'r>,
    limits: InputLimits,
    line: Vec<u8>,
    /// Of the line that was read last, from 1.
    number: u64,
    /// Bytes of the input up to the end of that line.
    read: u64,
}

impl<'r> Lines<'r> {
    pub(crate) fn from_input(file: &str, input: Unpacked<'r>, limits: InputLimits) -> Self {
        Self { file: file.to_owned(), input, limits, line: Vec::new(), number: 0, read: 0 }
    }

    /// The next line that is not blank, with its number from 1, without its end.
    pub(crate) fn next_line(&mut self) -> Result<Option<(u64, &str)>, FormatError> {
        let blank_from = self.read;
        loop {
            self.skip_line_feeds(blank_from)?;
            if !self.read_line()? {
                return Ok(None);
            }
            if !self.line.trim_ascii().is_empty() {
                break;
            }
        }
        let text = std::str::from_utf8(&self.line).map_err(|error| {
            let at = self.read - self.line.len() as u64 + error.valid_up_to() as u64;
            self.error_here(format!(
                "byte {at} of the file is not valid UTF-8: it is neither text nor a known recording"
            ))
        })?;
        let text = text.strip_suffix('\n').unwrap_or(text);
        Ok(Some((self.number, text.strip_suffix('\r').unwrap_or(text))))
    }

    fn error_here(&self, reason: impl Into<String>) -> FormatError {
        FormatError::new(&self.file, self.number.max(1), reason)
    }

    /// Passes empty lines by, as many as a line has bytes at most: nobody waits for a billion of them.
    fn skip_line_feeds(&mut self, blank_from: u64) -> Result<(), FormatError> {
        loop {
            let chunk = match self.input.input.fill_buf() {
                Ok(chunk) => chunk,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(self.error_here(self.input.error_reason(&error))),
            };
            let count = chunk.iter().take_while(|&&byte| byte == b'\n').count();
            let all = count == chunk.len() && count > 0;
            self.input.input.consume(count);
            self.number += count as u64;
            self.count_bytes(count)?;
            if self.read - blank_from > self.limits.line_bytes() {
                return Err(self.over_line("the blank lines here have"));
            }
            if !all {
                return Ok(());
            }
        }
    }

    /// Reads a line with its end; `false` after the last.
    fn read_line(&mut self) -> Result<bool, FormatError> {
        self.line.clear();
        self.number += 1;
        let most = self.limits.line_bytes().min(self.limits.unpacked_bytes() - self.read).saturating_add(1);
        let line = self.input.input.by_ref().take(most).read_until(b'\n', &mut self.line);
        let length = line.map_err(|error| self.error_here(self.input.error_reason(&error)))?;
        self.count_bytes(length)?;
        if self.number == 1 && self.line.starts_with(BYTE_ORDER_MARK) {
            self.line.drain(..BYTE_ORDER_MARK.len());
        }
        if length as u64 > self.limits.line_bytes() && self.line.last() != Some(&b'\n') {
            return Err(self.over_line("the line has"));
        }
        Ok(length > 0)
    }

    fn over_line(&self, what: &str) -> FormatError {
        let most = self.limits.line_bytes();
        self.error_here(format!(
            "{what} more than {most} bytes, the limit of a line (--input-limit raises it)"
        ))
    }

    fn count_bytes(&mut self, bytes: usize) -> Result<(), FormatError> {
        self.read += bytes as u64;
        let most = self.limits.unpacked_bytes();
        if self.read > most { Err(self.error_here(self.input.too_long(most))) } else { Ok(()) }
    }
}
