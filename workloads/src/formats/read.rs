//! Reads a trace, whatever its format.

use std::io::{self, Read};

use super::error::quote_excerpt;
use super::input::lines::Lines;
use super::input::unpacked::Unpacked;
use super::{FormatError, InputLimits, ReadOptions, Trace, csv, import, own};

/// Reads a trace, a graph as the trace that it lowers to, or a file of another tool (see [`import`]) that
/// holds one trace, or whose trace the options name. `file` is what errors call it.
///
/// # Errors
///
/// The first thing that is wrong, with its line.
pub fn read_trace(file: &str, bytes: &[u8], options: &ReadOptions) -> Result<Trace, FormatError> {
    read_trace_from(file, bytes, options)
}

/// The same from what need not be in memory as a whole: a file, a pipe.
///
/// # Errors
///
/// As [`read_trace`].
pub fn read_trace_from(file: &str, input: impl Read, options: &ReadOptions) -> Result<Trace, FormatError> {
    let mut input = Unpacked::new(file, input)?;
    if let Some(reader) = import::recognise(file, input.peek_start()) {
        return import::read_one(reader, file, input, options);
    }
    if let Some(part) = &options.part {
        let reason = format!("it holds one trace, and no part `{}`", quote_excerpt(part));
        return Err(FormatError::new(file, 1, reason));
    }
    own::read_own(file, input, options)
}

/// A document (JSON, text), or what the file holds instead.
pub enum Document<'r> {
    /// The text of a document.
    Text(String),
    /// A table of the lab: a trace or a plan.
    Table,
    /// A file of another tool, which is not read yet.
    Foreign(&'static import::Reader, import::Input<'r>),
}

/// Reads a document, which is held in memory as a whole, unless the file is known to be something else.
///
/// # Errors
///
/// What is wrong, and on which line: a limit, the encoding, the compression.
pub fn recognise_document<'r>(
    file: &str,
    input: impl Read + 'r,
    limits: InputLimits,
) -> Result<Document<'r>, FormatError> {
    let mut input = Unpacked::new(file, input)?;
    let start = input.peek_start();
    if csv::table::is_table(start) {
        return Ok(Document::Table);
    }
    match import::recognise(file, start) {
        Some(reader) => Ok(Document::Foreign(reader, import::Input::new(file, input, limits))),
        None => Ok(Document::Text(input.read_document(file, limits)?)),
    }
}

/// Reads to the end, and keeps nothing: says whether an input is a file of another tool, or text, within the limits.
///
/// # Errors
///
/// The first thing that is wrong, with its line: a limit, the encoding, the compression.
pub fn check_input(file: &str, input: impl Read, limits: InputLimits) -> Result<(), FormatError> {
    let mut unpacked = Unpacked::new(file, input)?;
    if import::recognise(file, unpacked.peek_start()).is_some() {
        let read = io::copy(&mut unpacked.into_limited(limits.unpacked_bytes()), &mut io::sink());
        return read.map(drop).map_err(|error| FormatError::new(file, 1, error.to_string()));
    }
    let mut lines = Lines::from_input(file, unpacked, limits);
    while lines.next_line()?.is_some() {}
    Ok(())
}
