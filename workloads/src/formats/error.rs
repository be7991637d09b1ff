//! What is wrong with a file, and where.

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
