//! What a format says of itself, and what its reader is given: an input, unpacked, within its limits.

use std::io::BufRead;

use super::report::Imported;
use crate::formats::input::lines::Lines;
use crate::formats::input::unpacked::Unpacked;
use crate::formats::{FormatError, InputLimits, ReadOptions};

/// A format of another tool.
pub struct Reader {
    /// Its name on the command line.
    pub key: &'static str,
    /// What it is, a line.
    pub title: &'static str,
    /// The endings of its files' names. A file with such a name whose content is not recognised is a damaged one.
    pub endings: &'static [&'static str],
    /// Whether it is a text: errors name a line of it, and else a byte.
    pub has_lines: bool,
    /// Whether a file that begins with these bytes (64 KiB, or the whole file if it is shorter) is of this format.
    pub looks_like: fn(&[u8]) -> bool,
    /// Reads a file.
    pub read: fn(Input<'_>, &ReadOptions) -> Result<Imported, FormatError>,
}

/// An input to read once: as a stream, as bytes, as lines or as a text.
pub struct Input<'r> {
    file: String,
    unpacked: Unpacked<'r>,
    limits: InputLimits,
}

impl<'r> Input<'r> {
    pub(crate) fn new(file: &str, unpacked: Unpacked<'r>, limits: InputLimits) -> Self {
        Self { file: file.to_owned(), unpacked, limits }
    }

    /// What errors call it.
    #[must_use]
    pub fn file_name(&self) -> &str {
        &self.file
    }

    /// How much of it may be read.
    #[must_use]
    pub const fn limits(&self) -> InputLimits {
        self.limits
    }

    /// All of it in memory.
    ///
    /// # Errors
    ///
    /// If it cannot be read, or is longer than an input may be.
    pub fn read_bytes(self) -> Result<Vec<u8>, FormatError> {
        self.unpacked.read_bytes(&self.file, self.limits.whole_file_bytes())
    }

    /// All of it in memory as text, without a byte order mark.
    ///
    /// # Errors
    ///
    /// As [`Self::read_bytes`], and where it is not UTF-8.
    pub fn read_text(self) -> Result<String, FormatError> {
        self.unpacked.read_text(&self.file, self.limits.whole_file_bytes())
    }

    /// Its bytes one after the other. The reader ends with an error of kind `FileTooLarge` behind the limit; the words
    /// of an error of reading are [`Self::read_text`]'s.
    #[must_use]
    pub fn into_stream(self) -> impl BufRead + 'r {
        self.unpacked.into_limited(self.limits.unpacked_bytes())
    }

    /// Its lines one after the other.
    pub(crate) fn into_lines(self) -> Lines<'r> {
        Lines::from_input(&self.file, self.unpacked, self.limits)
    }
}
