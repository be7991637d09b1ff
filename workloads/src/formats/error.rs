//! What is wrong with a file, and where.

/// A file that cannot be read: `file:line: what is wrong`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{line}: {reason}")]
pub struct FormatError {
    file: String,
    line: u64,
    reason: String,
}

impl FormatError {
    /// An error at a line, from 1, of a file.
    #[must_use]
    pub fn new(file: impl Into<String>, line: u64, reason: impl Into<String>) -> Self {
        Self { file: file.into(), line, reason: reason.into() }
    }

    /// The name that the reader was given.
    #[must_use]
    pub fn file(&self) -> &str {
        &self.file
    }

    /// The line, from 1.
    #[must_use]
    pub const fn line(&self) -> u64 {
        self.line
    }

    /// What is wrong, without the place.
    #[must_use]
    pub fn reason(&self) -> &str {
        &self.reason
    }
}

/// A trace that another tool's format cannot hold.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{format} has no way to say {what}")]
#[non_exhaustive]
pub struct ExportError {
    /// The format.
    pub format: &'static str,
    /// What it lacks.
    pub what: String,
}

/// What a file said, for a message: escaped, and at most about 60 characters of it.
pub(super) fn excerpt(text: &str) -> String {
    const MOST: usize = 60;
    let mut shown = String::new();
    for letter in text.chars() {
        if shown.len() >= MOST {
            shown.push_str("...");
            break;
        }
        shown.extend(letter.escape_debug());
    }
    shown
}
