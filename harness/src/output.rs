//! Results go to stdout, all else to stderr.

use std::io::{self, Write};

use serde_json::Value;

use crate::exit::Failure;

/// Where results go, and in which shape.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Output {
    pub(crate) json: bool,
}

impl Output {
    /// Prints the JSON value, or the text.
    pub(crate) fn put(self, value: &Value, text: &str) -> Result<(), Failure> {
        if self.json { self.value(value) } else { self.text(text) }
    }

    /// Prints text as it is.
    pub(crate) fn text(self, text: &str) -> Result<(), Failure> {
        Ok(io::stdout().lock().write_all(text.as_bytes())?)
    }

    /// Prints one JSON value on a line.
    pub(crate) fn value(self, value: &Value) -> Result<(), Failure> {
        Ok(writeln!(io::stdout().lock(), "{value}")?)
    }
}

/// Says something on stderr.
pub(crate) fn note(text: &str) {
    // Nobody can be told that stderr is closed.
    let _ = writeln!(io::stderr().lock(), "planlab: {text}");
}
