//! Printing: results go to stdout, everything else to stderr.
//!
//! Ids, file names and output of other programs are untrusted. Their control characters are escaped here before they
//! reach a terminal, so that none can colour, move or erase text.

use std::io::{self, IsTerminal, Write};

use planlab_dsa::is_unprintable;
pub(crate) use planlab_dsa::printable_text as printable;
use serde_json::Value;

use crate::shell::exit::{Exit, Failure, Verdict};
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
    pub(crate) fn print_either(self, value: &Value, text: impl Into<Text>) -> Result<(), Failure> {
        if self.json { self.print_value(value) } else { self.print_text(text) }
    }

    /// Prints what a verb comes to, which ends it.
    pub(crate) fn print_result(self, value: &Value, text: impl Into<Text>, exit: Exit) -> Verdict {
        self.print_either(value, text).map(|()| exit)
    }

    /// Refuses to print JSON if a file goes to stdout as well.
    pub(crate) fn refuse_stdout(self, what: &str, path: &str) -> Result<(), Failure> {
        if self.json && path == "-" {
            let option = if what == "certificate" { "--certificate" } else { "-o" };
            return Err(Failure::from_usage(format!(
                "the {what} and the JSON cannot both go to stdout: name a file with {option}"
            )));
        }
        Ok(())
    }

    /// Prints text, made [printable](planlab_dsa::printable_text). If tables have a form of their own, stdout has nothing but them, and stderr the
    /// words.
    pub(crate) fn print_text(self, text: impl Into<Text>) -> Result<(), Failure> {
        let text = text.into();
        let tables = self.tables.and_then(|form| text.tables_as(form));
        if tables.is_some() {
            // If stderr is closed, there is no place to report it.
            let _ = io::stderr().lock().write_all(printable(&text.text_lines()).as_bytes());
        }
        let shown = tables.unwrap_or_else(|| text.plain());
        Ok(check_stdout(io::stdout().lock().write_all(printable(&shown).as_bytes()))?)
    }

    /// Prints one JSON value on a line.
    pub(crate) fn print_value(self, value: &Value) -> Result<(), Failure> {
        Ok(check_stdout(writeln!(io::stdout().lock(), "{}", json_line(value)))?)
    }
}

/// A JSON object with the fields of another one behind its own.
pub(crate) fn merge_objects(mut head: Value, more: &Value) -> Value {
    if let (Some(head), Some(more)) = (head.as_object_mut(), more.as_object()) {
        head.extend(more.clone());
    }
    head
}

/// Prints a note to stderr.
pub(crate) fn print_note(text: &str) {
    // If stderr is closed, there is no place to report it.
    let _ = writeln!(io::stderr().lock(), "planlab: {}", printable(text));
}

/// Writes the bytes of a file to stdout: unchanged, except to a terminal, where they are escaped.
pub(crate) fn print_bytes(bytes: &[u8]) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    match std::str::from_utf8(bytes) {
        Ok(text) if stdout.is_terminal() => check_stdout(stdout.write_all(printable(text).as_bytes())),
        _ => check_stdout(stdout.write_all(bytes)),
    }
}

/// Copies what a child of this program prints to stdout.
#[cfg_attr(not(feature = "reports"), expect(dead_code, reason = "for `query`"))]
pub(crate) fn copy_to_stdout(from: &mut impl io::Read) -> io::Result<()> {
    check_stdout(io::copy(from, &mut io::stdout().lock()).map(drop))
}

/// An error that says that it is of stdout.
fn check_stdout(written: io::Result<()>) -> io::Result<()> {
    written.map_err(|error| io::Error::new(error.kind(), format!("<stdout>: cannot be written: {error}")))
}

/// A JSON value on one line. JSON escapes the control characters of ASCII; terminals obey others as well.
fn json_line(value: &Value) -> String {
    let text = value.to_string();
    let Some(first) = text.find(is_unprintable) else { return text };
    let mut line = text[..first].to_owned();
    for letter in text[first..].chars() {
        if is_unprintable(letter) {
            line.extend(letter.encode_utf16(&mut [0; 2]).iter().map(|unit| format!("\\u{unit:04x}")));
        } else {
            line.push(letter);
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_says_the_same_without_controls() {
        let value = serde_json::json!({ "name": "\x1b[2J\u{9b}31m\u{7f}\u{202e}\u{1fffe}\n" });
        let line = json_line(&value);
        assert!(line.is_ascii(), "{line}");
        assert_eq!(serde_json::from_str::<Value>(&line).expect("JSON"), value);
    }
}
