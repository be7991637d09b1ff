//! Errors in files, and their position.

/// A trace cannot be exported to another tool's format.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{format} has no way to say {what}")]
#[non_exhaustive]
pub struct ExportError {
    /// The format.
    pub format: &'static str,
    /// The feature that it lacks.
    pub what: String,
}

/// Text of a file for a message: escaped, and shortened to about 60 characters.
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
