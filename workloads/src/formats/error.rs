//! Errors in files, and their position.

use planlab_dsa::is_unprintable;

use super::FormatError;

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

impl ExportError {
    pub(crate) fn new(format: &'static str, what: impl Into<String>) -> Self {
        Self { format, what: what.into() }
    }
}

/// Text of a file for a message: escaped, and shortened to about 60 characters.
pub(crate) fn quote_excerpt(text: &str) -> String {
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

/// The first `most` names in quotes, and how many more there are.
pub(crate) fn quote_names<'n>(names: impl ExactSizeIterator<Item = &'n String>, most: usize) -> String {
    let more = match names.len().saturating_sub(most) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let quoted: Vec<String> = names.take(most).map(|name| format!("`{}`", quote_excerpt(name))).collect();
    format!("{}{more}", quoted.join(", "))
}

/// Letters of a word that is kept, or of a reason: what recordings share, a hostile one shares a million times.
pub(crate) const LONGEST: usize = 160;

/// A text of anybody as a cell of a table: one line, not too long, no letter that a terminal obeys.
pub(crate) fn clip_to_cell(text: &str) -> String {
    let plain = |letter: char| if is_unprintable(letter) { ' ' } else { letter };
    let mut shown: String = text.chars().take(LONGEST).map(plain).collect();
    if text.chars().nth(LONGEST).is_some() {
        shown.push_str("...");
    }
    shown.trim_ascii().to_owned()
}

/// What is wrong with a JSON text. The reason repeats what was not expected, however long that is, and says the place again.
pub(crate) fn of_json(file: &str, error: &serde_json::Error) -> FormatError {
    let text = error.to_string();
    let reason = text.rsplit_once(" at line ").map_or(text.as_str(), |(reason, _)| reason);
    FormatError::new(file, (error.line() as u64).max(1), clip_to_cell(reason))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_anybody_become_cells() {
        assert_eq!(clip_to_cell("a\nb\x1b[2J "), "a b [2J");
        assert_eq!(clip_to_cell(&"é".repeat(LONGEST + 1)), "é".repeat(LONGEST) + "...");
    }
}
