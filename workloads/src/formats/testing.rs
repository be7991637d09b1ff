//! What the tests of traces share.

use super::{ReadOptions, Trace, read_trace};

/// Reads a table that is valid.
pub(crate) fn trace(text: &str) -> Trace {
    read_trace("t.csv", text.as_bytes(), &ReadOptions::default()).expect("valid")
}
