//! What a format has to say for itself.

use super::input::Input;
use super::report::Imported;
use crate::formats::{FormatError, ReadOptions};

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
