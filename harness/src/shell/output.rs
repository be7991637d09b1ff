//! Printing: results go to stdout, everything else to stderr.
//!
//! Ids, file names and output of other programs are untrusted. Their control characters are escaped here before they
//! reach a terminal, so that none can colour, move or erase text.

use std::borrow::Cow;
use std::io::{self, IsTerminal, Write};

use serde_json::Value;

use crate::shell::exit::Failure;
use crate::shell::text::{TableForm, Text};

/// The destination and format of results.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Output {
    pub(crate) json: bool,
    /// The form of tables; without one they stand between the words.
    pub(crate) tables: Option<TableForm>,
}

impl Output {
    /// Prints the JSON value, or the text.
    pub(crate) fn put(self, value: &Value, text: impl Into<Text>) -> Result<(), Failure> {
        if self.json { self.value(value) } else { self.text(text) }
    }

    /// Refuses to print JSON if a file goes to stdout as well.
    pub(crate) fn refuse_stdout(self, what: &str, path: &str) -> Result<(), Failure> {
        if self.json && path == "-" {
            let option = if what == "certificate" { "--certificate" } else { "-o" };
            return Err(Failure::usage(format!(
                "the {what} and the JSON cannot both go to stdout: name a file with {option}"
            )));
        }
        Ok(())
    }

    /// Prints text, made [`printable`]. If tables have a form of their own, stdout has nothing but them, and stderr the
    /// words.
    pub(crate) fn text(self, text: impl Into<Text>) -> Result<(), Failure> {
        let text = text.into();
        let tables = self.tables.and_then(|form| text.tables(form));
        if tables.is_some() {
            // If stderr is closed, there is no place to report it.
            let _ = io::stderr().lock().write_all(printable(&text.words()).as_bytes());
        }
        let shown = tables.unwrap_or_else(|| text.plain());
        Ok(told(io::stdout().lock().write_all(printable(&shown).as_bytes()))?)
    }

    /// Prints one JSON value on a line.
    pub(crate) fn value(self, value: &Value) -> Result<(), Failure> {
        Ok(told(writeln!(io::stdout().lock(), "{}", json_line(value)))?)
    }
}

/// Prints a note to stderr.
pub(crate) fn note(text: &str) {
    // If stderr is closed, there is no place to report it.
    let _ = writeln!(io::stderr().lock(), "planlab: {}", printable(text));
}

/// Writes the bytes of a file to stdout: unchanged, except to a terminal, where they are escaped.
pub(crate) fn bytes(bytes: &[u8]) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    match std::str::from_utf8(bytes) {
        Ok(text) if stdout.is_terminal() => told(stdout.write_all(printable(text).as_bytes())),
        _ => told(stdout.write_all(bytes)),
    }
}

/// Copies what a child of this program prints to stdout.
#[cfg_attr(not(feature = "reports"), expect(dead_code, reason = "for `query`"))]
pub(crate) fn copy(from: &mut impl io::Read) -> io::Result<()> {
    told(io::copy(from, &mut io::stdout().lock()).map(drop))
}

/// An error that says that it is of stdout.
fn told(written: io::Result<()>) -> io::Result<()> {
    written.map_err(|error| io::Error::new(error.kind(), format!("<stdout>: cannot be written: {error}")))
}

/// The text with terminal control characters escaped, as `\u{1b}`. Line feeds and tabs stay.
pub(crate) fn printable(text: &str) -> Cow<'_, str> {
    let is_fine = |letter: char| matches!(letter, '\n' | '\t') || !is_control(letter);
    if text.chars().all(is_fine) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for letter in text.chars() {
        match letter {
            letter if is_fine(letter) => shown.push(letter),
            letter => shown.extend(letter.escape_unicode()),
        }
    }
    Cow::Owned(shown)
}

/// A JSON value on one line. JSON escapes the control characters of ASCII; terminals interpret others as well.
fn json_line(value: &Value) -> String {
    let text = value.to_string();
    if !text.chars().any(is_control) {
        return text;
    }
    let escape = |letter: char| match letter {
        letter if is_control(letter) => format!("\\u{:04x}", u32::from(letter)),
        letter => letter.to_string(),
    };
    text.chars().map(escape).collect()
}

/// Whether a terminal may interpret a character rather than show it: controls, and marks that change the text
/// direction.
fn is_control(letter: char) -> bool {
    let turns = matches!(letter, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    letter.is_control() || turns || matches!(letter, '\u{2028}' | '\u{2029}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_would_obey_is_written_out() {
        for (text, shown) in [
            ("plain é 漢\n\tnext", "plain é 漢\n\tnext"),
            ("\x1b[2J\x07", "\\u{1b}[2J\\u{7}"),
            ("over\rwritten\x08", "over\\u{d}written\\u{8}"),
            ("\u{9b}31m \u{7f} \u{202e}cba", "\\u{9b}31m \\u{7f} \\u{202e}cba"),
            ("C:\\u{1b}", "C:\\u{1b}"),
        ] {
            assert_eq!(printable(text), shown);
        }
    }

    #[test]
    fn json_says_the_same_without_controls() {
        let value = serde_json::json!({ "name": "\x1b[2J\u{9b}31m\u{7f}\u{202e}\n" });
        let line = json_line(&value);
        assert!(line.is_ascii(), "{line}");
        assert_eq!(serde_json::from_str::<Value>(&line).expect("JSON"), value);
    }
}
